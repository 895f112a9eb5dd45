"""What operators do to jobs: per action one table, from a job's situation to an effect.

The table travels with the call. An engine finds the situation of each job under its locks, carries
out the effect that the table names there, and returns the situations; what is answered follows from
them. So the rule stands here alone.
"""

from __future__ import annotations

from enum import StrEnum, unique
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from lamplighter.model.job import TERMINAL, JobState, Status, status_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lamplighter.model.job import JobRecord


@unique
class Action(StrEnum):
    """What an operator asks for."""

    CANCEL = "cancel"
    HOLD = "hold"
    UNHOLD = "unhold"
    RETRY = "retry"
    REPLAY = "replay"
    PURGE = "purge"
    ERASE = "erase"


class ChangeAnswer(StrEnum):
    """What came of an action on one job."""

    DONE = "done"
    """It was done."""
    REQUESTED = "requested"
    """Cancel of a running job: noted, decided once by settle."""
    ALREADY = "already"
    """It was so before."""
    CONFLICT = "conflict"
    """The job's state forbids it; nothing was changed."""
    UNKNOWN = "unknown"
    """No such job."""


@unique
class Effect(StrEnum):
    """What is written about a job; its letter stands for it in a table."""

    NOTHING = "-"
    END = "c"
    """It ends as cancelled."""
    ASK = "a"
    """A cancel request is noted; settle decides."""
    HOLD = "h"
    UNHOLD = "u"
    DUE_NOW = "d"
    RESUME = "g"
    """A dead job goes on in the same life.

    Due now; generation, attempts, logs and progress stay; the counters are at zero, and what made
    it dead is gone: reason, error, suspicion, hold.
    """
    RESTART = "r"
    """A new life from the start: as `RESUME`, but generation + 1, without result and progress."""
    REMOVE = "x"
    """It goes with all that is kept about it; its idempotency key stays and answers `gone`."""
    ERASE = "e"
    """As `REMOVE`, with its idempotency key."""


STATES = tuple(JobState)
"""In the order in which `Situation.number` counts them; engines count in the same order."""


class Situation(NamedTuple):
    """All of a job that an action depends on."""

    state: JobState
    held: bool = False
    cancelling: bool = False
    due: bool = True
    """Its due time has come."""

    @property
    def number(self) -> int:
        """Its place in a table."""
        return 8 * STATES.index(self.state) + 4 * self.held + 2 * self.cancelling + self.due


_NO_YES = (False, True)
SITUATIONS = tuple(
    Situation(state, held, cancelling, due)
    for state, held, cancelling, due in product(STATES, _NO_YES, _NO_YES, _NO_YES)
)


class Decision(NamedTuple):
    """What to write, and what to answer."""

    effect: Effect
    answer: ChangeAnswer


class Changed(NamedTuple):
    """Answer for one job; ``state`` is its state afterwards, None where there is no such job."""

    id: str
    answer: ChangeAnswer
    state: JobState | None


_ALREADY = Decision(Effect.NOTHING, ChangeAnswer.ALREADY)
_CONFLICT = Decision(Effect.NOTHING, ChangeAnswer.CONFLICT)


def decide(action: Action, job: Situation) -> Decision:
    """Return what an action does to a job in this situation."""
    match action:
        case Action.CANCEL:
            return _cancel(job)
        case Action.HOLD:
            return _unless_ended(job, Effect.HOLD, already=job.held)
        case Action.UNHOLD:
            return _unless_ended(job, Effect.UNHOLD, already=not job.held)
        case Action.RETRY:
            return _retry(job)
        case Action.REPLAY:
            return _if_ended(job, Effect.RESTART)
        case Action.PURGE:
            return _if_ended(job, Effect.REMOVE)
        case Action.ERASE:
            return _if_ended(job, Effect.ERASE)


def _cancel(job: Situation) -> Decision:
    if job.state is JobState.RUNNING:
        return _ALREADY if job.cancelling else Decision(Effect.ASK, ChangeAnswer.REQUESTED)
    return _unless_ended(job, Effect.END) if job.state is not JobState.CANCELLED else _ALREADY


def _retry(job: Situation) -> Decision:
    if job.state is JobState.DEAD:
        return Decision(Effect.RESUME, ChangeAnswer.DONE)
    if job.state is not JobState.WAITING:
        return _CONFLICT
    return _ALREADY if job.due else Decision(Effect.DUE_NOW, ChangeAnswer.DONE)


def _unless_ended(job: Situation, effect: Effect, *, already: bool = False) -> Decision:
    if job.state in TERMINAL:
        return _CONFLICT
    return _ALREADY if already else Decision(effect, ChangeAnswer.DONE)


def _if_ended(job: Situation, effect: Effect) -> Decision:
    return Decision(effect, ChangeAnswer.DONE) if job.state in TERMINAL else _CONFLICT


def after(job: Situation, effect: Effect) -> Situation | None:
    """Return the situation of a job after an effect; None when it is gone."""
    match effect:
        case Effect.NOTHING:
            return job
        case Effect.END:
            return Situation(JobState.CANCELLED)
        case Effect.ASK:
            return job._replace(cancelling=True)
        case Effect.HOLD:
            return job._replace(held=True)
        case Effect.UNHOLD:
            return job._replace(held=False)
        case Effect.DUE_NOW:
            return job._replace(due=True)
        case Effect.RESUME | Effect.RESTART:
            return Situation(JobState.WAITING)
        case Effect.REMOVE | Effect.ERASE:
            return None


# ── what travels with a call ─────────────────────────────────────────────────────────────────


class Table(NamedTuple):
    """An action as engines know it, and what it answers."""

    effects: str
    """The letter of the effect for each situation, by its number."""
    locks_queues: bool
    """Whether it acts on jobs that have not ended, which claims may be looking at."""
    answers: tuple[ChangeAnswer, ...]
    """What is answered in each situation, by its number."""


@cache
def table_of(action: Action, statuses: frozenset[str] = frozenset()) -> Table:
    """Return the table of an action; with shown statuses, other jobs are a `conflict`."""
    decisions = [
        decide(action, job) if not statuses or statuses & shown_as(job) else _CONFLICT
        for job in SITUATIONS
    ]
    live = any(
        decision.effect is not Effect.NOTHING and job.state not in TERMINAL
        for decision, job in zip(decisions, SITUATIONS, strict=True)
    )
    effects = "".join(decision.effect for decision in decisions)
    return Table(effects, live, tuple(decision.answer for decision in decisions))


def shown_as(job: Situation) -> frozenset[str]:
    """Return the statuses in which a job in this situation may be shown."""
    return frozenset(
        status_of(
            job.state,
            due=job.due,
            attempt=attempt,
            held=job.held,
            cancel_requested=job.cancelling,
            started=started,
        ).value
        for attempt, started in product((0, 1), _NO_YES)
    )


@cache
def acts_on(action: Action) -> frozenset[str]:
    """Return the statuses in which an action does something to a job."""
    acted = [job for job in SITUATIONS if decide(action, job).effect is not Effect.NOTHING]
    return frozenset(status for job in acted for status in shown_as(job))


def situation_of(record: JobRecord) -> Situation:
    """Return the situation of a job as it was read."""
    state, later = record.state, (Status.SCHEDULED, Status.RETRYING)
    if state in TERMINAL:
        return Situation(state)
    return Situation(
        state, record.hold is not None, record.cancel is not None, record.status not in later
    )


def answers(table: Table, ids: Iterable[str], found: Mapping[str, int]) -> list[Changed]:
    """Return what came of a call, in the order of the ids.

    ``found`` has the numbers of the situations in which jobs were found; others are unknown. An id
    that is named twice is answered the second time as a call after it would be.
    """
    now: dict[str, Situation | None] = {
        job_id: SITUATIONS[number] for job_id, number in found.items()
    }
    answered: list[Changed] = []
    for job_id in ids:
        job = now.get(job_id)
        if job is None:
            answered.append(Changed(job_id, ChangeAnswer.UNKNOWN, None))
            continue
        answer = table.answers[job.number]
        job = now[job_id] = after(job, Effect(table.effects[job.number]))
        answered.append(Changed(job_id, answer, None if job is None else job.state))
    return answered
