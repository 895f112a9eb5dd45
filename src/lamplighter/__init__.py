"""Lamplighter: a distributed job scheduler. Every lamp lit, on time, once."""

from importlib import import_module
from typing import TYPE_CHECKING

from lamplighter.model import errors
from lamplighter.model.errors import (
    InvalidInput,
    JobFailed,
    KeyConflict,
    LamplighterError,
    ResultOmitted,
    ResultTimeout,
    StoreError,
    UnknownJob,
    UnknownSchedule,
    WrongState,
)

if TYPE_CHECKING:
    from lamplighter.app import App
    from lamplighter.config import Settings
    from lamplighter.context import CancelRequested, Context, TimedOut
    from lamplighter.handle import Handle
    from lamplighter.hooks import JobReport
    from lamplighter.inspection.views import (
        AttemptView,
        DeadLetterCause,
        JobView,
        LogLine,
        Note,
        QueueView,
        TenantView,
        TypeView,
        WorkerView,
    )
    from lamplighter.job import Call, Job
    from lamplighter.middleware import CallNext, Middleware
    from lamplighter.model.isolation import Limits
    from lamplighter.model.job import Claim, ErrorInfo, JobRecord, Status
    from lamplighter.model.journal import Progress
    from lamplighter.model.outcome import Outcome, Reject, Snooze
    from lamplighter.model.retry import Retry
    from lamplighter.model.schedule import Cron, Days, Except, Interval, Once, RRule, Union
    from lamplighter.port.values import QueueSettings, TenantSettings, TypeSettings
    from lamplighter.providers import provided

__all__ = [
    "App",
    "AttemptView",
    "Call",
    "CallNext",
    "CancelRequested",
    "Claim",
    "Context",
    "Cron",
    "Days",
    "DeadLetterCause",
    "ErrorInfo",
    "Except",
    "Handle",
    "Interval",
    "InvalidInput",
    "Job",
    "JobFailed",
    "JobRecord",
    "JobReport",
    "JobView",
    "KeyConflict",
    "LamplighterError",
    "Limits",
    "LogLine",
    "Middleware",
    "Note",
    "Once",
    "Outcome",
    "Progress",
    "QueueSettings",
    "QueueView",
    "RRule",
    "Reject",
    "ResultOmitted",
    "ResultTimeout",
    "Retry",
    "Settings",
    "Snooze",
    "Status",
    "StoreError",
    "TenantSettings",
    "TenantView",
    "TimedOut",
    "TypeSettings",
    "TypeView",
    "Union",
    "UnknownJob",
    "UnknownSchedule",
    "WorkerView",
    "WrongState",
    "errors",
    "provided",
]

_HOMES = {
    "app": ("App",),
    "config": ("Settings",),
    "context": ("CancelRequested", "Context", "TimedOut"),
    "handle": ("Handle",),
    "hooks": ("JobReport",),
    "inspection.views": (
        "AttemptView",
        "DeadLetterCause",
        "JobView",
        "LogLine",
        "Note",
        "QueueView",
        "TenantView",
        "TypeView",
        "WorkerView",
    ),
    "job": ("Call", "Job"),
    "middleware": ("CallNext", "Middleware"),
    "model.isolation": ("Limits",),
    "model.job": ("Claim", "ErrorInfo", "JobRecord", "Status"),
    "model.journal": ("Progress",),
    "model.outcome": ("Outcome", "Reject", "Snooze"),
    "model.retry": ("Retry",),
    "model.schedule": ("Cron", "Days", "Except", "Interval", "Once", "RRule", "Union"),
    "port.values": ("QueueSettings", "TenantSettings", "TypeSettings"),
    "providers": ("provided",),
}
"""Where public names are. They are imported when they are first asked for, so that a program that
needs a part of the package, as the command line at its very beginning, loads that part alone."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        for module, names in _HOMES.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
