from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.model.job import (
    TERMINAL,
    Claim,
    Delivery,
    ErrorInfo,
    Extras,
    Fence,
    Job,
    JobState,
    Level,
)
from lamplighter.model.lifecycle import (
    CRASH_BUDGET,
    LOSS_BUDGET,
    LOSS_SUSPECT,
    TRANSITIONS,
    allowed,
    milliseconds,
    name_of,
    settle,
    settle_all,
)
from lamplighter.model.outcome import (
    AbandonCause,
    Abandoned,
    Cancelled,
    Failed,
    Held,
    Rejected,
    Released,
    Snoozed,
    Succeeded,
    TimedOut,
)
from lamplighter.model.retry import Retry

LEAST = Delivery.AT_LEAST_ONCE
SHARED = Abandoned(AbandonCause.CHILD_DIED)
ERROR = ErrorInfo(type="ValueError", message="boom", kinds=("ValueError", "Exception"))
JOB = Job(
    id="0" * 26,
    type="work",
    args=b"{}",
    queue="default",
    level=Level.NORMAL,
    tenant="default",
    due_at_ms=0,
    created_at_ms=0,
)
CLAIM = Claim(job=JOB, fence=Fence(1, "0" * 16), worker="w", handout=1)

counters = st.integers(0, 12)
claims = st.builds(
    lambda *, started, **facts: replace(CLAIM, job=replace(JOB, **facts), started=started),
    started=st.booleans(),
    attempt=counters,
    crashes=counters,
    losses=counters,
    suspect=st.booleans(),
    delivery=st.sampled_from(Delivery),
    extras=st.sampled_from([Extras(), Extras(retry=Retry(max_attempts=2, fixed=1))]),
)
errors = st.builds(
    ErrorInfo, type=st.just("E"), message=st.text(), kinds=st.just(("E", "Exception"))
)
outcomes = st.one_of(
    st.builds(Succeeded, st.none() | st.binary(), st.none() | st.text()),
    st.builds(Failed, errors, began=st.booleans()),
    st.builds(TimedOut, errors),
    st.builds(Rejected, st.text(), st.none() | errors),
    st.builds(Snoozed, st.floats(0, 10**6)),
    st.just(Cancelled()),
    st.builds(Released, st.booleans(), st.booleans()),
    st.just(Held()),
    st.builds(Abandoned, st.sampled_from(AbandonCause)),
)
retries = st.one_of(
    st.builds(Retry, max_attempts=st.integers(1, 10)),
    st.just(Retry(no_retry_on=["E"])),
    st.just(Retry(delays=[1, 2, 3])),
)
chances = st.floats(0, 1, exclude_max=True)


def at_most_once(claim):
    return replace(claim, job=replace(claim.job, delivery=Delivery.AT_MOST_ONCE))


def never_ran(claim, outcome):
    """Tell whether an at-most-once job was abandoned by nobody's fault before it ran."""
    return (
        isinstance(outcome, Abandoned)
        and outcome.cause is not AbandonCause.CRASHED_ALONE
        and claim.job.delivery is Delivery.AT_MOST_ONCE
        and not claim.started
    )


# ── the table ────────────────────────────────────────────────────────────────────────────────


def test_the_table_has_no_move_twice():
    moves = [(move.source, move.event, move.target) for move in TRANSITIONS]

    assert len(moves) == len(set(moves))
    assert all(move.meaning for move in TRANSITIONS)


def test_a_terminal_state_is_left_only_by_an_operator_or_by_retention():
    events = {move.event for move in TRANSITIONS if move.source in TERMINAL}

    assert events == {"retry", "replay", "purge", "erase", "prune"}


def test_every_state_can_be_reached_and_left():
    targets = {move.target for move in TRANSITIONS}
    sources = {move.source for move in TRANSITIONS}

    assert set(JobState) <= targets
    assert set(JobState) <= sources


def test_a_move_that_is_not_in_the_table_is_not_allowed():
    assert allowed(JobState.WAITING, "claim", JobState.RUNNING)
    assert not allowed(JobState.SUCCEEDED, "claim", JobState.RUNNING)
    assert not allowed(JobState.WAITING, "purge", None)


# ── settle, for any claim and outcome ────────────────────────────────────────────────────────


@given(claims, outcomes, retries, chances)
def test_settle_only_makes_moves_of_the_table(claim, outcome, retry, chance):
    settlement = settle(claim, outcome, retry=retry, chance=chance)

    unstarted = never_ran(claim, outcome)
    assert settlement.outcome == ("released" if unstarted else name_of(outcome))
    assert allowed(JobState.RUNNING, settlement.outcome, settlement.next.state)
    if settlement.cancelled is not None:
        assert allowed(JobState.RUNNING, settlement.outcome, settlement.cancelled.state)


@given(claims, outcomes, retries, chances)
def test_only_a_success_stands_against_a_cancel(claim, outcome, retry, chance):
    settlement = settle(claim, outcome, retry=retry, chance=chance)

    if isinstance(outcome, Succeeded):
        assert settlement.cancelled is None
        assert settlement.next.state is JobState.SUCCEEDED
    else:
        assert settlement.cancelled is not None
        assert settlement.cancelled.state is JobState.CANCELLED
        assert settlement.cancelled.reason
        assert settlement.cancelled.delay_ms == 0


@given(claims, outcomes, retries, chances)
def test_settle_carries_the_claims_identity_and_no_negative_delay(claim, outcome, retry, chance):
    settlement = settle(claim, outcome, retry=retry, chance=chance)

    assert (settlement.id, settlement.fence) == (claim.job.id, claim.fence)
    assert settlement.next.delay_ms >= 0
    if settlement.next.state is not JobState.WAITING:
        assert settlement.next.delay_ms == 0


@given(claims, outcomes, retries, chances)
def test_counters_never_go_down_and_by_one_at_most(claim, outcome, retry, chance):
    following = settle(claim, outcome, retry=retry, chance=chance).next
    job = claim.job
    raised = (
        following.attempt - job.attempt,
        following.crashes - job.crashes,
        following.losses - job.losses,
    )

    assert min(raised) >= 0
    charged = isinstance(outcome, (Failed, TimedOut, Abandoned)) and outcome != SHARED
    if never_ran(claim, outcome):
        charged = False
    assert sum(raised) == (1 if charged else 0)
    assert following.suspect or not job.suspect


@given(claims, outcomes, retries, chances)
def test_what_is_dead_says_why(claim, outcome, retry, chance):
    following = settle(claim, outcome, retry=retry, chance=chance).next

    assert (following.state is JobState.DEAD) <= bool(following.reason)


@given(claims, outcomes, retries, chances)
def test_at_most_once_never_runs_twice_after_a_start(claim, outcome, retry, chance):
    following = settle(at_most_once(claim), outcome, retry=retry, chance=chance).next
    came_back_unstarted = (
        isinstance(outcome, (Snoozed, Held))
        or (isinstance(outcome, Released) and not outcome.started)
        or (isinstance(outcome, Abandoned) and not claim.started)
        or (isinstance(outcome, Failed) and not outcome.began)
    )

    assert following.state is not JobState.WAITING or came_back_unstarted


# ── each outcome ─────────────────────────────────────────────────────────────────────────────


def test_a_success_keeps_result_and_note():
    following = settle(CLAIM, Succeeded(b"1", "note")).next

    assert (following.state, following.result, following.result_note) == (
        JobState.SUCCEEDED,
        b"1",
        "note",
    )
    assert not settle(CLAIM, Succeeded()).history


@pytest.mark.parametrize("outcome", [Failed(ERROR), TimedOut(ERROR)])
def test_a_failure_is_retried_until_its_attempts_are_used_up(outcome):
    claim, delays = CLAIM, []
    while True:
        settlement = settle(claim, outcome, retry=Retry(max_attempts=3, jitter=0))
        assert settlement.history
        assert settlement.next.error == ERROR
        if settlement.next.state is JobState.DEAD:
            break
        delays.append(settlement.next.delay_ms)
        claim = replace(claim, job=replace(claim.job, attempt=settlement.next.attempt))

    assert delays == [1_000, 2_000]
    assert settlement.next.reason == "failed 3 of 3 attempts"


def test_one_attempt_is_not_told_as_several():
    settlement = settle(CLAIM, Failed(ERROR), retry=Retry(max_attempts=1))
    assert settlement.next.reason == "failed 1 of 1 attempt"


def test_the_submissions_own_policy_goes_before_the_types():
    extras = Extras(retry=Retry(fixed=7, max_attempts=9))
    claim = replace(CLAIM, job=replace(JOB, extras=extras))

    following = settle(claim, Failed(ERROR), retry=Retry(max_attempts=1)).next

    assert (following.state, following.delay_ms) == (JobState.WAITING, 7_000)


def test_an_error_that_is_not_retried_kills_at_once():
    following = settle(CLAIM, Failed(ERROR), retry=Retry(no_retry_on=[Exception])).next

    assert (following.state, following.reason) == (JobState.DEAD, "not retried: ValueError")


def test_a_rejected_job_is_dead_at_once():
    following = settle(CLAIM, Rejected("why", ERROR)).next

    assert (following.state, following.reason) == (JobState.DEAD, "rejected: why")
    assert (following.attempt, following.error) == (0, ERROR)


def test_a_snoozed_job_costs_nothing_and_waits():
    following = settle(CLAIM, Snoozed(2.5)).next

    assert (following.state, following.delay_ms, following.attempt) == (JobState.WAITING, 2_500, 0)


def test_a_started_job_given_back_is_dead_only_when_it_may_run_at_most_once():
    assert settle(CLAIM, Released(started=True)).next.state is JobState.WAITING
    assert settle(at_most_once(CLAIM), Released(started=True)).next.state is JobState.DEAD
    assert settle(at_most_once(CLAIM), Released()).next.state is JobState.WAITING


@pytest.mark.parametrize("cause", [AbandonCause.WORKER_LOST, AbandonCause.CHILD_DIED])
def test_an_abandoned_at_most_once_job_is_dead_only_with_its_start_mark(cause):
    claim = at_most_once(CLAIM)
    unstarted = settle(claim, Abandoned(cause), only_if_expired=True)
    started = settle(replace(claim, started=True), Abandoned(cause), only_if_expired=True)

    assert (unstarted.outcome, unstarted.next.state) == ("released", JobState.WAITING)
    assert (unstarted.next.losses, unstarted.next.crashes, unstarted.next.suspect) == (0, 0, False)
    assert unstarted.only_if_unstarted
    assert not unstarted.history
    assert (started.outcome, started.next.state) == ("abandoned", JobState.DEAD)
    assert not started.only_if_unstarted
    assert unstarted.only_if_expired
    assert started.only_if_expired


def test_an_at_most_once_job_that_failed_before_its_handler_was_called_is_tried_again():
    claim = at_most_once(CLAIM)
    retry = Retry(max_attempts=2, jitter=0)
    first = settle(claim, Failed(ERROR, began=False), retry=retry)
    again = replace(claim, job=replace(claim.job, attempt=first.next.attempt))
    last = settle(again, Failed(ERROR, began=False), retry=retry)
    called = settle(again, Failed(ERROR), retry=Retry())

    assert (first.next.state, first.next.delay_ms) == (JobState.WAITING, 1_000)
    assert first.history
    assert last.next.state is JobState.DEAD
    assert last.next.reason == "failed 2 of 2 attempts; its handler was never called: boom"
    assert (called.next.state, called.next.delay_ms) == (JobState.DEAD, 0)
    assert "at most once" in called.next.reason


def test_an_at_most_once_job_whose_processes_die_while_they_start_is_poison_like_any_other():
    claim, died = at_most_once(CLAIM), Abandoned(AbandonCause.CRASHED_ALONE, how="killed")
    for _ in range(CRASH_BUDGET - 1):
        following = settle(claim, died).next
        assert (
            following == settle(replace(claim, job=replace(claim.job, delivery=LEAST)), died).next
        )
        assert following.state is JobState.WAITING
        assert following.delay_ms > 0
        claim = replace(claim, job=replace(claim.job, crashes=following.crashes))
    last = settle(claim, died).next

    assert last.state is JobState.DEAD
    assert last.reason.startswith("poison: it killed its process 3 times")
    assert last.reason.endswith("; its handler was never called: killed")
    assert settle(replace(at_most_once(CLAIM), started=True), died).next.state is JobState.DEAD


def test_who_is_not_certain_that_a_job_never_started_leaves_it_to_the_mark():
    assert settle(CLAIM, Released(certain=False)).only_if_unstarted
    assert not settle(CLAIM, Released()).only_if_unstarted


def test_a_vanished_worker_is_a_loss_and_makes_suspect_before_it_kills():
    claim, states = CLAIM, []
    while True:
        following = settle(claim, Abandoned()).next
        assert following.suspect == (following.losses >= LOSS_SUSPECT)
        states.append(following.state)
        if following.state is JobState.DEAD:
            break
        counters = {"losses": following.losses, "suspect": following.suspect}
        claim = replace(claim, job=replace(claim.job, **counters))

    assert states == [JobState.WAITING] * (LOSS_BUDGET - 1) + [JobState.DEAD]


def test_the_death_of_a_shared_process_charges_nobody_and_makes_everybody_suspect():
    settlement = settle(CLAIM, Abandoned(AbandonCause.CHILD_DIED, how="killed by signal 11"))
    following = settlement.next

    assert (following.state, following.delay_ms) == (JobState.WAITING, 0)
    assert (following.attempt, following.crashes, following.losses) == (0, 0, 0)
    assert following.suspect
    assert settlement.history
    assert following.error is not None
    assert "killed by signal 11" in following.error.message


def test_what_a_dying_process_said_is_kept():
    outcome = Abandoned(AbandonCause.CRASHED_ALONE, how="ended with code 3", last_words="File x")
    error = settle(CLAIM, outcome).next.error

    assert error is not None
    assert error.message.endswith(": ended with code 3")
    assert error.traceback == "File x"


def test_a_job_that_kills_its_own_process_is_poison_after_three_times():
    claim = CLAIM
    for crashes in range(1, CRASH_BUDGET + 1):
        following = settle(claim, Abandoned(AbandonCause.CRASHED_ALONE)).next
        assert (following.crashes, following.losses) == (crashes, 0)
        claim = replace(claim, job=replace(claim.job, crashes=crashes))

    assert following.state is JobState.DEAD
    assert (following.reason or "").startswith("poison")


def test_an_abandoned_job_never_asks_a_users_function():
    def function(_):
        raise AssertionError("asked")

    following = settle(CLAIM, Abandoned(), retry=Retry(function=function)).next

    assert (following.state, following.delay_ms) == (JobState.WAITING, 500)


def test_the_same_outcome_for_many_claims():
    settlements = settle_all([CLAIM, CLAIM], Abandoned(), only_if_expired=True)

    assert settlements == [settle(CLAIM, Abandoned(), only_if_expired=True)] * 2


@given(st.floats(0, 10**7))
def test_a_duration_is_rounded_up_never_down(seconds):
    assert 0 <= milliseconds(seconds) - seconds * 1000 <= 1
