"""One claim on its way through a child."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum

from lamplighter.model.job import Claim
from lamplighter.registry import JobType

BATCH = 500
"""Most jobs in one call of the store: no call should keep others waiting for long."""


def margin(lease: float) -> float:
    """How long before the end of a lease we stop believing in it."""
    return min(2.0, lease / 5)


class Stop(Enum):
    """Why a handler is told to stop."""

    CANCEL = "cancel"
    TIMEOUT = "timeout"
    DRAIN = "drain"
    LOST = "lost"
    """The claim belongs to somebody else: whatever the handler does, nothing is written."""


@dataclass(slots=True, eq=False)
class Run:
    """A claim, its handler, and how far it has come."""

    number: int
    claim: Claim
    type: JobType
    timeout: float
    vouched_at: float
    """No silence of the loop before this instant can have cost us the claim."""
    started_at: float = 0.0
    hard_end: float = 0.0
    entered: bool = False
    """The handler's task has taken its first step, so that cancelling it is seen inside."""
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    stop: Stop | None = None

    def is_set(self) -> bool:
        """Tell the handler, wherever it runs, that it should come to an end: `context.Flag`."""
        return self.stop is not None
