"""What the pure model keeps of a job's attempts: how they went and what they said."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lamplighter.model.job import Attempt, JobState
from lamplighter.model.journal import Piece
from lamplighter.port.values import LogPiece

if TYPE_CHECKING:
    from lamplighter.model.job import Claim
    from lamplighter.model.journal import Journal, Progress
    from lamplighter.model.lifecycle import Next, Settlement


@dataclass(slots=True)
class Story:
    """The attempts of one job; it ends with the job."""

    attempts: list[Attempt] = field(default_factory=list[Attempt])
    progress: Progress | None = None
    pieces: dict[tuple[int, int], bytes] = field(default_factory=dict[tuple[int, int], bytes])

    def begin(self, claim: Claim, now: int) -> None:
        """An attempt begins, without progress."""
        self.progress = None
        self.attempts.append(
            Attempt(
                job_id=claim.job.id,
                generation=claim.job.generation,
                number=claim.job.attempt + 1,
                lease=claim.fence.lease,
                nonce=claim.fence.nonce,
                worker=claim.worker,
                outcome="running",
                started_at_ms=now,
                finished_at_ms=None,
                error=None,
            )
        )

    def end(self, settlement: Settlement, chosen: Next, now: int) -> None:
        """The attempt ends; it is forgotten if it neither failed nor ended the job."""
        if settlement.journal is not None:
            self.keep(settlement.fence.lease, settlement.journal)
        attempt = self.attempts.pop()
        if chosen.state is JobState.WAITING and not settlement.history:
            return
        stopped = chosen.state is JobState.CANCELLED and not settlement.history
        outcome = "cancelled" if stopped else settlement.outcome
        self.attempts.append(
            replace(attempt, outcome=outcome, finished_at_ms=now, error=chosen.error)
        )

    def keep(self, lease: int, journal: Journal) -> None:
        """An attempt says something."""
        self.progress = journal.progress or self.progress
        for piece in journal.pieces:
            self.pieces.setdefault((lease, piece.number), piece.data)
        for number in range(*journal.drop):
            self.pieces.pop((lease, number), None)

    def logs(self) -> list[LogPiece]:
        """Return all pieces in their order."""
        return [
            LogPiece(lease, Piece(number, data))
            for (lease, number), data in sorted(self.pieces.items())
        ]
