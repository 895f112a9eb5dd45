"""What a claim came to. The worker makes one of these; `lifecycle.settle` decides what follows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lamplighter.model.job import ErrorInfo


class Reject(Exception):
    """Raised by a handler: this job can never succeed, do not try again."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Snooze(Exception):
    """Raised by a handler: not now, run it again after ``delay`` seconds. Costs no attempt."""

    def __init__(self, delay: float) -> None:
        super().__init__(f"snoozed for {delay} s")
        self.delay = delay


class AbandonCause(StrEnum):
    """How a claim was abandoned, which decides what is charged."""

    WORKER_LOST = "worker_lost"
    """The lease ended with its whole worker."""
    CHILD_DIED = "child_died"
    """The process that ran it beside others died: nobody is charged, everybody is a suspect."""
    CRASHED_ALONE = "crashed_alone"
    """The process that ran it and nothing else died: the job did it."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned; ``result`` is JSON, or absent with a note that says why."""

    result: bytes | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised."""

    error: ErrorInfo


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The handler was still running at the end of its time."""

    error: ErrorInfo


@dataclass(frozen=True, slots=True)
class Rejected:
    """The handler said that trying again is useless, or its bytes were not JSON."""

    reason: str
    error: ErrorInfo | None = None


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler asked to be run later."""

    delay: float


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The handler was stopped because a cancel had been requested."""


@dataclass(frozen=True, slots=True)
class Released:
    """The worker gives the job back, uncharged: it drains or has no room."""

    started: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """Claimed, then found held before it started: back, uncharged."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Nobody can say what became of it: the lease ended, or the process died."""

    cause: AbandonCause = AbandonCause.WORKER_LOST
    how: str = ""
    """How the process ended, as far as known, as in "killed by signal 11 (SIGSEGV)"."""
    last_words: str = ""
    """What the dying process could still say."""


Outcome = (
    Succeeded | Failed | TimedOut | Rejected | Snoozed | Cancelled | Released | Held | Abandoned
)
