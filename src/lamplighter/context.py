"""What a handler is told about the job it runs, and how it asks whether to go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Protocol

from lamplighter.model.job import Claim, Extras, Fence, Job, Level
from lamplighter.model.names import DEFAULT_QUEUE, DEFAULT_TENANT, check_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CancelRequested(BaseException):
    """Raised by ``Context.raise_if_cancelled``: this run should come to an end.

    Like ``asyncio.CancelledError`` it is no ``Exception``, so that a handler's own
    ``except Exception`` does not swallow the wish.
    """


class Flag(Protocol):
    """A switch that somebody else turns on; ``threading.Event`` is one."""

    def is_set(self) -> bool:
        """Tell whether it is on."""
        ...


class Context:
    """The job a handler runs. It is the handler's first parameter when it wants one."""

    __slots__ = ("_cancelled", "_fence", "_job")

    def __init__(self, job: Job, fence: Fence, cancelled: Flag) -> None:
        self._job = job
        self._fence = fence
        self._cancelled = cancelled

    @classmethod
    def of(cls, claim: Claim, cancelled: Flag) -> Context:
        """Build the context of a claim; ``cancelled`` turns on when the run should end."""
        return cls(claim.job, claim.fence, cancelled)

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

        The same in every attempt of one life; another one after a replay, because whoever
        replays a job that has ended wants its effects again.
        """
        return f"{self._job.id}:{self._job.generation}:{check_name('effect', name)}"

    @property
    def cancel_requested(self) -> bool:
        """True once this run should end: a cancel, the end of its time, or of its worker."""
        return self._cancelled.is_set()

    def raise_if_cancelled(self) -> None:
        """Stop here if this run should end; long handlers in threads call it now and then."""
        if self._cancelled.is_set():
            raise CancelRequested(self._job.id)

    def __repr__(self) -> str:
        return f"<Context {self._job.type} {self._job.id} attempt {self.attempt}>"


def _instant(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)
