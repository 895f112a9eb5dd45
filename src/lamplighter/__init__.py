"""Lamplighter: a distributed job scheduler. Every lamp lit, on time, once."""

from lamplighter.app import App
from lamplighter.config import Settings
from lamplighter.context import CancelRequested, Context, TimedOut
from lamplighter.handle import Handle
from lamplighter.hooks import JobReport
from lamplighter.job import Call, Job
from lamplighter.middleware import CallNext, Middleware
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
from lamplighter.model.isolation import Limits
from lamplighter.model.job import Claim, JobRecord, Status
from lamplighter.model.outcome import Outcome, Reject, Snooze
from lamplighter.model.retry import Retry
from lamplighter.model.schedule import Cron, Days, Except, Interval, Once, RRule, Union
from lamplighter.port.values import QueueSettings, TenantSettings, TypeSettings
from lamplighter.providers import provided

__all__ = [
    "App",
    "Call",
    "CallNext",
    "CancelRequested",
    "Claim",
    "Context",
    "Cron",
    "Days",
    "Except",
    "Handle",
    "Interval",
    "InvalidInput",
    "Job",
    "JobFailed",
    "JobRecord",
    "JobReport",
    "KeyConflict",
    "LamplighterError",
    "Limits",
    "Middleware",
    "Once",
    "Outcome",
    "QueueSettings",
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
    "TimedOut",
    "TypeSettings",
    "Union",
    "UnknownJob",
    "UnknownSchedule",
    "WrongState",
    "errors",
    "provided",
]
