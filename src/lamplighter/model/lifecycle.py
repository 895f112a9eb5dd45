"""A job's life: the table of allowed moves, and the one function that decides what follows a claim.

Decisions live here and nowhere else. The store only checks the fence, looks whether a cancel was
requested meanwhile, and writes what the Settlement says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from lamplighter.model.counts import counted
from lamplighter.model.job import NO_VERSION, Claim, Delivery, ErrorInfo, Fence, JobState
from lamplighter.model.outcome import (
    AbandonCause,
    Abandoned,
    Cancelled,
    Failed,
    Held,
    Misfit,
    Outcome,
    Rejected,
    Released,
    Snoozed,
    Succeeded,
    TimedOut,
)
from lamplighter.model.quick import quick
from lamplighter.model.retry import Retry, abandoned_delay

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lamplighter.model.journal import Journal

CRASH_BUDGET = 3
"""Deaths of a process that ran nothing but this job, before the job is called poison."""
LOSS_SUSPECT = 2
"""Vanished workers from which on a job is suspected of having killed them. Suspects run alone."""
LOSS_BUDGET = 10
"""Vanished workers before the job is given up."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One allowed move. ``source`` None: the job did not exist; ``target`` None: it is gone."""

    source: JobState | None
    event: str
    target: JobState | None
    meaning: str


S = JobState
TRANSITIONS: tuple[Transition, ...] = (
    Transition(None, "submit", S.WAITING, "accepted; due now or later"),
    Transition(None, "submit", S.BLOCKED, "accepted; waits for its parents"),
    Transition(S.BLOCKED, "unblock", S.WAITING, "the last parent succeeded"),
    Transition(S.BLOCKED, "cancel", S.CANCELLED, "cancelled before its parents were done"),
    Transition(S.WAITING, "claim", S.RUNNING, "handed to a worker under a new fence"),
    Transition(S.WAITING, "cancel", S.CANCELLED, "cancelled before it ran"),
    Transition(S.WAITING, "expire", S.EXPIRED, "its start deadline passed"),
    Transition(S.WAITING, "retry", S.WAITING, "an operator makes it due now"),
    Transition(S.RUNNING, "cancel", S.RUNNING, "the request is noted; settle decides"),
    Transition(S.RUNNING, "succeeded", S.SUCCEEDED, "the handler returned"),
    Transition(S.RUNNING, "failed", S.WAITING, "the handler raised; attempts are left"),
    Transition(S.RUNNING, "failed", S.DEAD, "the handler raised; no attempt is left"),
    Transition(S.RUNNING, "failed", S.CANCELLED, "the handler raised; a cancel was requested"),
    Transition(S.RUNNING, "timed_out", S.WAITING, "out of time; attempts are left"),
    Transition(S.RUNNING, "timed_out", S.DEAD, "out of time; no attempt is left"),
    Transition(S.RUNNING, "timed_out", S.CANCELLED, "out of time; a cancel was requested"),
    Transition(S.RUNNING, "rejected", S.DEAD, "the handler said never, or the bytes are not JSON"),
    Transition(S.RUNNING, "rejected", S.CANCELLED, "rejected; a cancel was requested"),
    Transition(S.RUNNING, "misfit", S.WAITING, "the arguments fit another version, or none yet"),
    Transition(S.RUNNING, "misfit", S.DEAD, "no live version took the arguments for too long"),
    Transition(S.RUNNING, "misfit", S.CANCELLED, "it did not fit; a cancel was requested"),
    Transition(S.RUNNING, "snoozed", S.WAITING, "the handler asked for later"),
    Transition(S.RUNNING, "snoozed", S.CANCELLED, "snoozed; a cancel was requested"),
    Transition(S.RUNNING, "cancelled", S.CANCELLED, "the handler was stopped by the request"),
    Transition(
        S.RUNNING, "released", S.WAITING, "given back uncharged; at most once: it had not started"
    ),
    Transition(S.RUNNING, "released", S.DEAD, "given back after it had started, at most once"),
    Transition(S.RUNNING, "released", S.CANCELLED, "given back; a cancel was requested"),
    Transition(S.RUNNING, "held", S.WAITING, "found held before it started"),
    Transition(S.RUNNING, "held", S.CANCELLED, "found held; a cancel was requested"),
    Transition(S.RUNNING, "abandoned", S.WAITING, "its worker vanished; budget is left"),
    Transition(
        S.RUNNING, "abandoned", S.DEAD, "its worker vanished; budget used up, or at most once"
    ),
    Transition(S.RUNNING, "abandoned", S.CANCELLED, "its worker vanished; a cancel was requested"),
    Transition(S.DEAD, "retry", S.WAITING, "goes on: same generation, all attempts anew"),
    *(
        move
        for end in (S.SUCCEEDED, S.DEAD, S.CANCELLED, S.EXPIRED)
        for move in (
            Transition(end, "replay", S.WAITING, "run again: same id, generation + 1"),
            Transition(end, "purge", None, "removed by an operator"),
            Transition(end, "erase", None, "removed by an operator, with its idempotency key"),
            Transition(end, "prune", None, "removed by retention"),
        )
    ),
)
del S

_ALLOWED = frozenset((t.source, t.event, t.target) for t in TRANSITIONS)


def allowed(source: JobState | None, event: str, target: JobState | None) -> bool:
    """Tell whether the table has this move."""
    return (source, event, target) in _ALLOWED


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What a job becomes. Times are delays; the store adds its own clock."""

    state: JobState
    delay_ms: int = 0
    reason: str | None = None
    attempt: int = 0
    crashes: int = 0
    losses: int = 0
    suspect: bool = False
    version: str | None = None
    """Part of the requirement that says which versions of its type take it; None: as before."""
    result: bytes | None = None
    result_note: str | None = None
    error: ErrorInfo | None = None


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What to write about a claim, if its fence still holds."""

    id: str
    fence: Fence
    outcome: str
    """Name of the outcome, an event of the transition table."""
    next: Next
    cancelled: Next | None
    """What to write instead when a cancel was requested; None: success stands."""
    history: bool = False
    """Keep a row of this attempt: it failed, and the record will be overwritten."""
    only_if_expired: bool = False
    """Write only if the lease has ended in store time: rescue must not hit a renewed lease."""
    only_if_unstarted: bool = False
    """Write only if the store has no start mark of the claim: the handler may have been called
    since somebody looked."""
    journal: Journal | None = None
    """The last the attempt had to say, written with its end."""


_RETRY = Retry()
_PLAIN_SUCCESS = Next(state=JobState.SUCCEEDED)
"""What most jobs come to; it is decided first because that is felt in the cost of every job."""


def settle(
    claim: Claim,
    outcome: Outcome,
    *,
    retry: Retry = _RETRY,
    chance: float = 0.0,
    only_if_expired: bool = False,
) -> Settlement:
    """Decide what follows ``outcome``.

    ``retry`` is the policy of the job's type; the submission's own policy goes before it.
    ``chance`` in [0, 1) is the dice for jitter. An at-most-once job whose process did not start is
    charged and tried again like any other: its handler was not called. One that was abandoned in
    any other way without a start mark never ran: it is released, unless the mark arrives before
    that is written.
    """
    if isinstance(outcome, Succeeded) and _is_plain(claim, outcome):
        return Settlement(
            id=claim.job.id,
            fence=claim.fence,
            outcome="succeeded",
            next=_PLAIN_SUCCESS,
            cancelled=None,
            only_if_expired=only_if_expired,
        )
    if isinstance(outcome, Abandoned) and _never_ran(claim) and not _is_crash(outcome):
        outcome = Released(certain=False)
    following = _next(claim, outcome, claim.job.extras.retry or retry, chance)
    return Settlement(
        id=claim.job.id,
        fence=claim.fence,
        outcome=name_of(outcome),
        next=following,
        cancelled=_cancelled(following),
        history=isinstance(outcome, (Failed, TimedOut, Abandoned, Rejected)),
        only_if_expired=only_if_expired,
        only_if_unstarted=isinstance(outcome, Released) and not outcome.certain,
    )


def _is_plain(claim: Claim, outcome: Succeeded) -> bool:
    return outcome.result is None and outcome.note is None and claim.job.is_untroubled


def settle_all(
    claims: Iterable[Claim], outcome: Outcome, *, only_if_expired: bool = False
) -> list[Settlement]:
    """Decide the same outcome for many claims."""
    return [settle(claim, outcome, only_if_expired=only_if_expired) for claim in claims]


def name_of(outcome: Outcome) -> str:
    """Return the outcome's event in the transition table."""
    return _NAMES[type(outcome)]


_NAMES: dict[type[Outcome], str] = {
    Succeeded: "succeeded",
    Failed: "failed",
    TimedOut: "timed_out",
    Rejected: "rejected",
    Misfit: "misfit",
    Snoozed: "snoozed",
    Cancelled: "cancelled",
    Released: "released",
    Held: "held",
    Abandoned: "abandoned",
}


def _next(claim: Claim, outcome: Outcome, retry: Retry, chance: float) -> Next:
    match outcome:
        case Succeeded(result, note):
            return _keep(claim, JobState.SUCCEEDED, result=result, result_note=note)
        case Failed(error=error, began=began):
            return _retry_or_die(claim, error, retry, chance, began=began)
        case TimedOut(error=error):
            return _retry_or_die(claim, error, retry, chance)
        case Rejected(reason=reason, error=error):
            return _keep(claim, JobState.DEAD, reason=f"rejected: {reason}", error=error)
        case Misfit():
            return _moved_or_dead(claim, outcome)
        case Snoozed(delay):
            return _keep(claim, JobState.WAITING, delay_ms=milliseconds(delay))
        case Cancelled():
            return _keep(claim, JobState.CANCELLED, reason="cancelled while running")
        case Released(started):
            if started and _at_most_once(claim):
                return _dead_at_most_once(claim, "given back after it had started")
            return _keep(claim, JobState.WAITING)
        case Held():
            return _keep(claim, JobState.WAITING)
        case Abandoned():
            return _rescue_or_die(claim, outcome, chance)
        case _:
            assert_never(outcome)


def _moved_or_dead(claim: Claim, misfit: Misfit) -> Next:
    if misfit.dead is not None:
        return _keep(claim, JobState.DEAD, reason=misfit.dead, error=misfit.error)
    return replace(_keep(claim, JobState.WAITING, error=misfit.error), version=misfit.version)


def _retry_or_die(
    claim: Claim, error: ErrorInfo, retry: Retry, chance: float, *, began: bool = True
) -> Next:
    attempt = claim.job.attempt + 1
    failed = replace(_keep(claim, JobState.DEAD, error=error), attempt=attempt)
    if _at_most_once(claim) and began:
        return replace(failed, reason="at most once: the only attempt failed")
    delay = retry.delay_after(attempt, error.kinds, chance)
    if delay is not None:
        return replace(failed, state=JobState.WAITING, delay_ms=milliseconds(delay))
    if attempt < retry.max_attempts:
        why = f"not retried: {error.type}"
    else:
        why = f"failed {attempt} of {counted(retry.max_attempts, 'attempt')}"
    return replace(failed, reason=_with_cause(claim, why, error.message))


def _rescue_or_die(claim: Claim, outcome: Abandoned, chance: float) -> Next:
    job, cause = claim.job, outcome.cause
    crashes = job.crashes + (cause is AbandonCause.CRASHED_ALONE)
    losses = job.losses + (cause is AbandonCause.WORKER_LOST)
    shared = cause is AbandonCause.CHILD_DIED
    left = replace(
        _keep(claim, JobState.DEAD, error=_abandoned_error(outcome)),
        crashes=crashes,
        losses=losses,
        suspect=job.suspect or shared or crashes > 0 or losses >= LOSS_SUSPECT,
    )
    if _at_most_once(claim) and not _never_ran(claim):
        return replace(left, reason="at most once: nobody saw the end of its only run")
    if crashes >= CRASH_BUDGET:
        why = f"poison: it killed its process {counted(crashes, 'time')}"
        return replace(left, reason=_with_cause(claim, why, outcome.how))
    if losses >= LOSS_BUDGET:
        return replace(left, reason=f"lost: its worker vanished {counted(losses, 'time')}")
    if shared:
        # Nobody knows which job did it. It runs alone from now on, so there is no need to wait.
        return replace(left, state=JobState.WAITING)
    delay = milliseconds(abandoned_delay(crashes + losses - 1, chance))
    return replace(left, state=JobState.WAITING, delay_ms=delay)


_ABANDONED = {
    AbandonCause.WORKER_LOST: "the worker vanished and its lease ended",
    AbandonCause.CHILD_DIED: "the process that ran it beside others died; it runs alone now",
    AbandonCause.CRASHED_ALONE: "the process that ran only this job died",
}


def _abandoned_error(outcome: Abandoned) -> ErrorInfo:
    how = f": {outcome.how}" if outcome.how else ""
    return ErrorInfo(
        type="Abandoned",
        message=_ABANDONED[outcome.cause] + how,
        traceback=outcome.last_words,
        fingerprint=f"abandoned-{outcome.cause.value}",
    )


def _cancelled(following: Next) -> Next | None:
    if following.state is JobState.SUCCEEDED:
        return None
    return replace(
        following,
        state=JobState.CANCELLED,
        delay_ms=0,
        reason=following.reason or "cancelled while running",
    )


def _dead_at_most_once(claim: Claim, why: str) -> Next:
    return _keep(claim, JobState.DEAD, reason=f"at most once: {why}")


def _at_most_once(claim: Claim) -> bool:
    return claim.job.delivery is Delivery.AT_MOST_ONCE


def _never_ran(claim: Claim) -> bool:
    """Tell whether it is known that the handler was not called: at-most-once jobs have marks."""
    return _at_most_once(claim) and not claim.started


def _is_crash(outcome: Abandoned) -> bool:
    """Tell whether a worker that lives saw it: then the lack of a mark is certain."""
    return outcome.cause is AbandonCause.CRASHED_ALONE


def _with_cause(claim: Claim, why: str, cause: str) -> str:
    """Say of an at-most-once job that it never ran: whoever replays it wants to know that."""
    return f"{why}; its handler was never called: {cause}" if _at_most_once(claim) else why


def _keep(
    claim: Claim,
    state: JobState,
    *,
    delay_ms: int = 0,
    reason: str | None = None,
    result: bytes | None = None,
    result_note: str | None = None,
    error: ErrorInfo | None = None,
) -> Next:
    """Build a Next with the counters as they are."""
    job = claim.job
    return Next(
        state=state,
        delay_ms=delay_ms,
        reason=reason,
        attempt=job.attempt,
        crashes=job.crashes,
        losses=job.losses,
        suspect=job.suspect,
        result=result,
        result_note=result_note,
        error=error,
    )


def is_claimable(following: Next) -> bool:
    """Tell whether a job that goes back to waiting can be taken by a worker at once."""
    return following.delay_ms == 0 and following.version != NO_VERSION


def milliseconds(seconds: float) -> int:
    """Round a duration up to whole milliseconds, so that nothing is ever early."""
    return -int(-seconds * 1000 // 1)
