"""What came of the jobs that a test ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from lamplighter.model.counts import counted
from lamplighter.model.job import ErrorInfo, JobState
from lamplighter.model.journal import Progress
from lamplighter.model.outcome import (
    Cancelled,
    Failed,
    Misfit,
    Outcome,
    Rejected,
    Snoozed,
    TimedOut,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One attempt of one job."""

    id: str
    type: str
    attempt: int
    """1 is the first."""
    outcome: Outcome | None
    """None: the job was taken away while the handler ran, so nothing was written."""
    state: JobState | None
    """What the job became."""
    exception: BaseException | None
    """What the handler raised, itself."""
    progress: Progress | None = None
    """How far the handler said it had come, when it last did."""

    @property
    def error(self) -> ErrorInfo | None:
        """What the store keeps of it, if the attempt failed."""
        return getattr(self.outcome, "error", None)

    def __str__(self) -> str:
        text = f"{self.type} attempt {self.attempt} {_word(self.outcome)}"
        if isinstance(self.outcome, Rejected):
            text += f" ({self.outcome.reason})"
        elif self.error is not None:
            text += f" ({self.error.text})"
        return text if self.state is None else f"{text}, now {self.state.value}"


@dataclass(frozen=True, slots=True)
class Summary:
    """Attempts in the order they ran, and what they came to. Counts are of attempts."""

    runs: tuple[Ran, ...] = ()
    passed: timedelta = timedelta()
    """How far ``run_until_idle`` moved the clock."""
    idle: bool = True
    """False: jobs are left that are due, or, after ``run_until_idle``, will fall due."""

    @property
    def ran(self) -> int:
        """How many attempts there were."""
        return len(self.runs)

    @property
    def succeeded(self) -> int:
        """How many attempts made their job succeed."""
        return sum(run.state is JobState.SUCCEEDED for run in self.runs)

    @property
    def failed(self) -> int:
        """How many attempts failed, by an exception or by their timeout."""
        return sum(isinstance(run.outcome, (Failed, TimedOut)) for run in self.runs)

    @property
    def rejected(self) -> int:
        """How many attempts said that trying again is useless."""
        return sum(isinstance(run.outcome, Rejected) for run in self.runs)

    @property
    def misfits(self) -> int:
        """How many jobs had arguments that their handler does not take: it was not called."""
        return sum(isinstance(run.outcome, Misfit) for run in self.runs)

    @property
    def snoozed(self) -> int:
        """How many attempts asked for later."""
        return sum(isinstance(run.outcome, Snoozed) for run in self.runs)

    @property
    def cancelled(self) -> int:
        """How many attempts ended with their job cancelled."""
        return sum(run.state is JobState.CANCELLED for run in self.runs)

    @property
    def dead(self) -> int:
        """How many attempts were the last of a job that is dead now."""
        return sum(run.state is JobState.DEAD for run in self.runs)

    @property
    def retrying(self) -> int:
        """How many failed attempts have their job wait for another."""
        waiting = (run for run in self.runs if run.state is JobState.WAITING)
        return sum(isinstance(run.outcome, (Failed, TimedOut)) for run in waiting)

    def raise_error(self) -> None:
        """Raise what the first failed handler raised; do nothing if none failed."""
        for run in self.runs:
            if run.exception is not None and isinstance(run.outcome, (Failed, Rejected)):
                raise run.exception

    def __iter__(self) -> Iterator[Ran]:
        return iter(self.runs)

    def __repr__(self) -> str:
        return f"<Summary of {described(self.runs)}>"


def described(runs: Iterable[Ran]) -> str:
    """Name the last few attempts."""
    runs = tuple(runs)
    told = "; ".join(str(run) for run in runs[-_TOLD:])
    many = counted(len(runs), "attempt")
    before = "…; " if len(runs) > _TOLD else ""
    return f"{many}: {before}{told}" if runs else many


_TOLD = 10


def _word(outcome: Outcome | None) -> str:
    match outcome:
        case None:
            return "taken away"
        case TimedOut():
            return "timed out"
        case Cancelled():
            return "was cancelled"
        case _:
            return type(outcome).__name__.lower()
