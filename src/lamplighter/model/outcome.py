"""What a claim came to. The worker makes one of these; `lifecycle.settle` decides what follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from lamplighter.model.job import NO_VERSION

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
    """The handler raised, or could not be called."""

    error: ErrorInfo
    exception: BaseException | None = field(default=None, compare=False, repr=False)
    """What it raised, for code in the same process; it is never stored, nor redacted."""
    began: bool = True
    """Whether the handler may have been called; False: surely not, its process did not start."""


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The handler was still running at the end of its time."""

    error: ErrorInfo


@dataclass(frozen=True, slots=True)
class Rejected:
    """The handler said that trying again is useless, or its bytes were not JSON."""

    reason: str
    error: ErrorInfo | None = None
    exception: BaseException | None = field(default=None, compare=False, repr=False)
    """What the handler raised, for code in the same process."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """The arguments do not fit this worker's version of the type: nothing was run or is charged."""

    error: ErrorInfo | None = None
    version: str = NO_VERSION
    """Part of the requirement under which it waits from now on: see `model.versions.place`."""
    dead: str | None = None
    """Why it waits no longer."""


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
    certain: bool = True
    """Whether who says so knows it, or only has not heard of a start: then a start mark in the
    store is believed before it."""


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
    Succeeded
    | Failed
    | TimedOut
    | Rejected
    | Misfit
    | Snoozed
    | Cancelled
    | Released
    | Held
    | Abandoned
)
"""What became of one run of a job."""
