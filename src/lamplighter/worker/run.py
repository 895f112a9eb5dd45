"""One claim on its way through a child."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from lamplighter import runtime
from lamplighter.model.job import Claim
from lamplighter.model.journal import Journal
from lamplighter.registry import JobType

_beginning = threading.Lock()
"""Two threads of one run may say the first word at once."""

LONGEST_ROUND = 2.0

BATCH = 500
"""Most jobs in one call of the store: no call should keep others waiting for long."""


def margin(lease: float) -> float:
    """How long before the end of a lease we stop believing in it."""
    return min(2.0, lease / 5)


def renewal_round(lease: float) -> float:
    """Time between two rounds of renewals; a cancel of which nobody is told comes within it."""
    return min(lease / 3, LONGEST_ROUND)


class Stop(Enum):
    """Why a handler is told to stop."""

    CANCEL = "cancel"
    TIMEOUT = "timeout"
    DRAIN = "drain"
    LOST = "lost"
    """The claim belongs to somebody else: whatever the handler does, nothing is written."""


class Notes(Protocol):
    """What a run has to say; from any thread."""

    def write(self, level: str, text: str) -> None:
        """Take in text that was logged or printed; it may have many lines or half of one."""
        ...

    def progress(self, done: float, total: float | None, note: str) -> None:
        """Take in how far it has come."""
        ...

    def take(self, *, last: bool = False) -> Journal | None:
        """Return what is new since the last time; ``last``: with the half line at the end."""
        ...


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
    soft_end: float = 0.0
    """When it is told that its time is over."""
    hard_end: float = 0.0
    """When whoever runs it is killed for it."""
    progressed_at: float = 0.0
    """When it last said how far it has come."""
    entered: bool = False
    """The handler's task has taken its first step, so that cancelling it is seen inside."""
    isolated: bool = False
    """It runs in a process of its own."""
    cold: bool = False
    """That process has to be started first."""
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    stop: Stop | None = None
    notes: Notes | None = None
    """What it has said so far; made when it first says something."""
    make_notes: Callable[[Run], Notes] | None = None
    redact: Callable[[str], str] | None = None
    """Hides the values of its secret arguments in a text."""
    exception: BaseException | None = None
    """What its handler raised, kept if hooks want to know."""

    def is_set(self) -> bool:
        """Tell the handler, wherever it runs, that it should come to an end: `context.Flag`."""
        return self.stop is not None

    @property
    def timed_out(self) -> bool:
        """Whether it should end because its time is over."""
        return self.stop is Stop.TIMEOUT

    def write(self, level: str, text: str) -> None:
        """Take in what it logs or prints."""
        notes = self.notes or self._begin_notes()
        if notes is not None:
            notes.write(level, text)

    def progress(self, done: float, total: float | None, note: str) -> None:
        """Take in how far it has come: `context.Control`."""
        self.progressed_at = runtime.boottime()
        notes = self.notes or self._begin_notes()
        if notes is not None:
            notes.progress(done, total, note)

    def _begin_notes(self) -> Notes | None:
        with _beginning:
            if self.notes is None and self.make_notes is not None:
                self.notes = self.make_notes(self)
            return self.notes
