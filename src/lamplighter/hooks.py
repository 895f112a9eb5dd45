"""Functions that are told how jobs went, after the store has accepted it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from lamplighter import secrecy
from lamplighter.model.errors import InvalidHandler
from lamplighter.model.job import JobState
from lamplighter.model.lifecycle import Settlement
from lamplighter.model.names import shown
from lamplighter.observability import events

TIME = 30.0
"""Seconds an ``async`` hook has."""

_FAILURES = frozenset({"failed", "timed_out"})


Redact = Callable[[str], str]
"""Hides the values of secret arguments in a text."""


def unchanged(text: str) -> str:
    """Redact nothing."""
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """How one attempt of a job went, as its hooks are told."""

    job_id: str
    """Id of the job."""
    type: str
    """Name of its job type."""
    tenant: str
    """On whose behalf it runs."""
    queue: str
    """The queue it came from."""
    attempt: int
    """Number of the attempt: 1 is the first."""
    outcome: str
    """`succeeded`, `failed`, `timed_out`, `rejected`, …"""
    error: str | None = None
    """Type and message of what was raised, or the reason of a death."""
    state: str | None = None
    """What the job has become: `waiting`, `succeeded`, `dead` or `cancelled`."""
    traceback: str = ""
    """The traceback as text; like `error` without the values of secret arguments."""
    fingerprint: str = ""
    """The same for failures of the same cause."""
    exception: BaseException | None = field(default=None, compare=False, repr=False)
    """What the handler raised, itself: neither it nor the variables of its frames are redacted.
    None for a job that ran in a process of its own, and after a timeout."""
    args: bytes = field(default=b"{}", repr=False)
    """The arguments as JSON, the values of secret ones hidden."""
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    """The metadata of the submission."""
    tags: tuple[str, ...] = ()
    """The tags of the submission."""
    redact: Redact = field(default=unchanged, compare=False, repr=False)
    """Hides the values of the job's secret arguments in a text."""

    @property
    def arguments(self) -> Mapping[str, object]:
        """The arguments, the values of secret ones hidden; empty if they cannot be read."""
        return secrecy.readable(self.args)


Hook = Callable[[JobReport], Awaitable[None] | None]
"""A plain function, which runs in a thread, or an ``async`` one."""


class Hooks:
    """The hooks of one program."""

    def __init__(self) -> None:
        self.success: list[Hook] = []
        self.failure: list[Hook] = []
        self.death: list[Hook] = []

    def __bool__(self) -> bool:
        return bool(self.success or self.failure or self.death)

    def wanted(self, settlement: Settlement, state: JobState | None) -> list[Hook]:
        """Return the hooks for what was written; ``state`` is what the job has become."""
        hooks: list[Hook] = []
        if settlement.outcome == "succeeded":
            hooks += self.success
        elif settlement.outcome in _FAILURES:
            hooks += self.failure
        if state is JobState.DEAD:
            hooks += self.death
        return hooks


def check(hook: object) -> None:
    """Refuse what cannot be called with a report."""
    try:
        inspect.signature(cast("Callable[..., object]", hook)).bind(None)
    except (TypeError, ValueError):
        raise InvalidHandler(
            f"{shown(hook)} cannot be called with one JobReport",
            hint="write for example `async def alert(report: JobReport) -> None`",
            value=hook,
        ) from None


async def call(hook: Hook, report: JobReport) -> None:
    """Call a hook; that it fails is told and disturbs nobody."""
    try:
        if inspect.iscoroutinefunction(hook):
            async with asyncio.timeout(TIME):
                await hook(report)
            return
        waiting = await asyncio.to_thread(hook, report)
        if inspect.isawaitable(waiting):
            async with asyncio.timeout(TIME):
                await waiting
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        events.emit(
            events.SERVICE_ERROR,
            service="hooks",
            error=f"{_name(hook)}: {type(error).__name__}: {_text(error)}",
            expected=False,
            job_id=report.job_id,
        )


def _name(hook: Hook) -> str:
    return str(getattr(hook, "__qualname__", type(hook).__name__))


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - __str__ is user code
        return "(cannot be shown)"
