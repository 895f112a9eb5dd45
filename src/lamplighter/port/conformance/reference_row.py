"""A job as the pure model keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lamplighter.model.job import (
    Claim,
    Delivery,
    Fence,
    Job,
    JobState,
    Mark,
    requirement_of,
    status_of,
)
from lamplighter.port.conformance.reference_line import TurnKey
from lamplighter.port.conformance.reference_story import Story

if TYPE_CHECKING:
    from lamplighter.model.job import ErrorInfo, NewJob, Status


@dataclass(slots=True)
class Row:
    """A job as the model keeps it."""

    new: NewJob
    sequence: int
    created_at_ms: int
    due_at_ms: int
    state: JobState = JobState.WAITING
    attempt: int = 0
    crashes: int = 0
    losses: int = 0
    suspect: bool = False
    version: str = ""
    generation: int = 0
    fence: Fence = field(default_factory=lambda: Fence(0, ""))
    worker: str = ""
    handout: int = 0
    claimed_at_ms: int = 0
    expires_at_ms: int = 0
    lease_ms: int = 0
    marked: int = 0
    """Lease number of the last claim that got a start mark."""
    finished_at_ms: int | None = None
    hold: Mark | None = None
    cancel: Mark | None = None
    reason: str | None = None
    result: bytes | None = None
    error: ErrorInfo | None = None
    story: Story = field(default_factory=Story)

    @property
    def turn(self) -> TurnKey:
        """The (lane, tenant) it waits in."""
        new = self.new
        requirement = requirement_of(new.requirement, suspect=self.suspect, version=self.version)
        return TurnKey(new.queue, new.level, new.type, requirement, new.tenant)

    def in_turn(self) -> bool:
        """Whether it stands in its turn: it waits and is not held itself."""
        return self.state is JobState.WAITING and self.hold is None

    def job(self) -> Job:
        """The job as a worker sees it."""
        new = self.new
        return Job(
            id=new.id,
            type=new.type,
            args=new.args,
            queue=new.queue,
            level=new.level,
            tenant=new.tenant,
            due_at_ms=self.due_at_ms,
            created_at_ms=self.created_at_ms,
            delivery=new.delivery,
            extras=new.extras,
            attempt=self.attempt,
            crashes=self.crashes,
            losses=self.losses,
            suspect=self.suspect,
            generation=self.generation,
            cost=new.cost,
            schedule=new.schedule,
        )

    def claim(self) -> Claim:
        """The claim under which it runs."""
        return Claim(job=self.job(), fence=self.fence, worker=self.worker, handout=self.handout)

    @property
    def started(self) -> bool:
        """Whether the present claim has its start mark."""
        return self.marked == self.fence.lease

    def held(self) -> Claim:
        """The claim as those see it who look after other workers."""
        return replace(self.claim(), started=self.started)

    def status(self, now: int) -> Status:
        """What people are shown."""
        return status_of(
            self.state,
            due=self.due_at_ms <= now,
            attempt=self.attempt,
            held=self.hold is not None,
            cancel_requested=self.cancel is not None,
            # Nothing is known of the others: no worker has said anything about them.
            started=self.started or self.new.delivery is not Delivery.AT_MOST_ONCE,
        )


@dataclass(slots=True)
class Key:
    """An idempotency key and the job it made."""

    body: str
    job_id: str
    created_at_ms: int
