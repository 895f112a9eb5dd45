"""What a handler is told about the job it runs, and how it asks whether to go on."""

from __future__ import annotations

from asyncio import CancelledError
from datetime import UTC, datetime, timedelta
from math import isfinite
from threading import Event
from typing import TYPE_CHECKING, Protocol, cast

from lamplighter.model.errors import InvalidOption
from lamplighter.model.job import Claim, Extras, Fence, Job, Level
from lamplighter.model.names import DEFAULT_QUEUE, DEFAULT_TENANT, check_name, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CancelRequested(BaseException):
    """Raised by ``Context.raise_if_cancelled``: this run should come to an end.

    Like ``asyncio.CancelledError`` it is no ``Exception``, so that a handler's own
    ``except Exception`` does not swallow the wish.
    """


class TimedOut(CancelRequested, CancelledError):
    """This run should come to an end because its time is over.

    Raised where an ``async def`` handler waits, inside of a plain function that runs in a process
    of its own, and by ``Context.raise_if_cancelled``. It is a cancellation, too: what cleans up
    after those cleans up after this.
    """


class Flag(Protocol):
    """A switch that somebody else turns on; ``threading.Event`` is one."""

    def is_set(self) -> bool:
        """Tell whether it is on."""
        ...


class Control(Protocol):
    """The worker's side of a run."""

    @property
    def timed_out(self) -> bool:
        """Whether the run should end because its time is over."""
        ...

    def write(self, level: str, text: str) -> None:
        """Take in text for the run's log."""
        ...

    def progress(self, done: float, total: float | None, note: str) -> None:
        """Take in how far the run has come."""
        ...


class Context:
    """The job a handler runs. It is the handler's first parameter when it wants one."""

    __slots__ = ("_cancelled", "_control", "_fence", "_job")

    def __init__(
        self, job: Job, fence: Fence, cancelled: Flag, control: Control | None = None
    ) -> None:
        self._job = job
        self._fence = fence
        self._cancelled = cancelled
        self._control = control

    @classmethod
    def of(cls, claim: Claim, cancelled: Flag, control: Control | None = None) -> Context:
        """Build the context of a claim; ``cancelled`` turns on when the run should end."""
        return cls(claim.job, claim.fence, cancelled, control)

    @classmethod
    def sample(
        cls,
        *,
        type: str = "sample",
        job_id: str = "00000000000000000000000000",
        tenant: str = DEFAULT_TENANT,
        attempt: int = 1,
        metadata: Mapping[str, object] | None = None,
        cancelled: Flag | None = None,
    ) -> Context:
        """Make a context out of nothing, for calling a handler directly in a test."""
        job = Job(
            id=job_id,
            type=type,
            args=b"{}",
            queue=DEFAULT_QUEUE,
            level=Level.NORMAL,
            tenant=tenant,
            due_at_ms=0,
            created_at_ms=0,
            attempt=attempt - 1,
            extras=Extras(metadata=metadata or {}),
        )
        return cls(job, Fence(1, "0" * 16), cancelled or Event())

    @property
    def job_id(self) -> str:
        """The job's id, the same in every attempt."""
        return self._job.id

    @property
    def type(self) -> str:
        """The job type's name."""
        return self._job.type

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self._job.queue

    @property
    def tenant(self) -> str:
        """On whose behalf it runs."""
        return self._job.tenant

    @property
    def attempt(self) -> int:
        """Number of this attempt by the handler's own failures: 1 is the first."""
        return self._job.attempt + 1

    @property
    def generation(self) -> int:
        """How often the job was replayed after it had ended."""
        return self._job.generation

    @property
    def lease(self) -> int:
        """Number of this claim. It only grows: a sink that keeps the largest refuses late ones."""
        return self._fence.lease

    @property
    def tags(self) -> tuple[str, ...]:
        """What the submission wants to be found by."""
        return self._job.extras.tags

    @property
    def metadata(self) -> Mapping[str, object]:
        """What the submission carried beside the arguments."""
        return self._job.extras.metadata

    @property
    def created_at(self) -> datetime:
        """When the job was submitted, by the store's clock, in UTC."""
        return _instant(self._job.created_at_ms)

    @property
    def due_at(self) -> datetime:
        """When this attempt was due, by the store's clock, in UTC."""
        return _instant(self._job.due_at_ms)

    def effect_key(self, name: str) -> str:
        """Name one outside effect of this job, for the sink's own idempotency.

        The same in every attempt of one life, also when a dead job is retried; another one after
        a replay, which is meant to have the effects again.
        """
        return f"{self._job.id}:{self._job.generation}:{check_name('effect', name)}"

    @property
    def cancel_requested(self) -> bool:
        """True once this run should end: a cancel, the end of its time, or of its worker."""
        return self._cancelled.is_set()

    def raise_if_cancelled(self) -> None:
        """Stop here if this run should end; long handlers in threads call it now and then."""
        if self._cancelled.is_set():
            if self._control is not None and self._control.timed_out:
                raise TimedOut(self._job.id)
            raise CancelRequested(self._job.id)

    def log(self, text: str, *, level: str = "info") -> None:
        """Write into this attempt's log, from any thread.

        Not needed for what the handler itself prints or logs, which is kept anyway; threads that
        it starts are not known to be its own.
        """
        if self._control is not None:
            self._control.write(level, text if text.endswith("\n") else text + "\n")

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Say how far this run has come: ``ctx.progress(30, 200, "invoices")``.

        Call it as often as you like, from any thread: the store hears of it about once a second.
        With ``stalled_after`` each call starts that time anew.
        """
        checked = _checked_progress(done, total, note)
        if self._control is not None:
            self._control.progress(*checked)

    def __repr__(self) -> str:
        return f"<Context {self._job.type} {self._job.id} attempt {self.attempt}>"


def _checked_progress(done: object, total: object, note: object) -> tuple[float, float | None, str]:
    for name, value in (("done", done), ("total", total)):
        if name == "total" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_finite(value):
            raise InvalidOption(
                f"the progress {name} is {shown(value)}, not a finite number",
                hint="give numbers, as in ctx.progress(30, 200)",
                value=value,
            )
    if not isinstance(note, str):
        raise InvalidOption(
            f"the note {shown(note)} is no text",
            hint='give text, as in ctx.progress(30, 200, "invoices")',
            value=note,
        )
    return cast("float", done), cast("float | None", total), note


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:
        return False


def _instant(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)
