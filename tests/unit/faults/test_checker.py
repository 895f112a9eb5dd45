"""The checker must see a violation when there is one, and none when there is none."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.faults import checker
from tests.faults.checker import Rules
from tests.faults.history import Cancel, Ending, History, Pause, Run, Submission, Write

RULES = Rules(max_attempts={"work": 3}, may_die=frozenset({"doomed"}))


def submission(job_id="a", **given):
    return Submission(job_id, "work", "default", answer="created", answered_id=job_id, **given)


def ending(job_id="a", state="succeeded", **given):
    return Ending(
        **{"job_id": job_id, "type": "work", "tenant": "default", "state": state, **given}
    )


def submitted(number=1, job_id="a", **given):
    return Write(number=number, job_id=job_id, old_state=None, new_state="waiting", **given)


def claimed(number, lease, job_id="a", **given):
    return Write(
        number=number,
        job_id=job_id,
        old_state="waiting",
        new_state="running",
        lease=lease,
        old_lease=lease - 1,
        nonce=f"n{lease}",
        worker="w",
        **given,
    )


def settled(number, lease, new_state, job_id="a", **given):
    return Write(
        number=number,
        job_id=job_id,
        old_state="running",
        new_state=new_state,
        lease=lease,
        old_lease=lease,
        nonce=f"n{lease}",
        old_nonce=f"n{lease}",
        worker="w",
        **given,
    )


def good():
    """One job that was lost once, failed once and then succeeded."""
    return History(
        submissions=[submission(key="k")],
        keyed={("default", "k"): ["a"]},
        runs=[
            Run("a", "work", 1, 10, started=1.0, started_ms=1_000, due_ms=900, ended=2.0),
            Run("a", "work", 2, 11, started=5.0, started_ms=5_000, due_ms=4_900, ended=6.0),
        ],
        writes=[
            submitted(),
            claimed(2, 1, due_ms=900, claimed_ms=1_000),
            settled(3, 1, "waiting", abandoned=True, old_expires_ms=3_000, now_ms=3_100),
            claimed(4, 2, due_ms=4_900, claimed_ms=5_000),
            settled(5, 2, "succeeded", author={"lease": 2, "nonce": "n2"}),
        ],
        endings={"a": ending(losses=1)},
        end=10.0,
    )


def names(found):
    return {one.invariant for one in found}


def test_a_good_history_violates_nothing():
    found = checker.check(good(), RULES)

    assert [one for mine in found.values() for one in mine] == []
    assert len(found) == 10


# ── I1 ───────────────────────────────────────────────────────────────────────────────────────


def test_an_acknowledged_job_that_is_gone_is_a_loss():
    history = good()
    history.endings.clear()

    assert names(checker.no_loss(history)) == {"I1"}


@pytest.mark.parametrize("state", ["waiting", "running", "blocked"])
def test_an_acknowledged_job_without_an_end_is_a_loss(state):
    history = good()
    history.endings["a"] = ending(state=state)

    assert names(checker.no_loss(history)) == {"I1"}


def test_a_job_that_the_store_has_twice_is_seen():
    history = good()
    history.doubled.append("a")

    assert names(checker.no_loss(history)) == {"I1"}


def test_a_job_nobody_was_told_about_may_be_there_or_not():
    history = History(submissions=[replace(submission(), answer=None, answered_id=None)])
    assert checker.no_loss(history) == []

    history.endings["a"] = ending()
    assert checker.no_loss(history) == []


def test_a_job_nobody_was_told_about_may_not_stay_half_way():
    history = History(endings={"a": ending(state="running")})

    assert names(checker.no_loss(history)) == {"I1"}


# ── I2 ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lease", [1, 0])
def test_a_lease_number_that_does_not_grow_is_seen(lease):
    history = History(
        writes=[claimed(1, 1), settled(2, 1, "waiting"), claimed(3, lease)],
    )

    assert names(checker.exclusive_leases(history)) == {"I2"}


def test_a_lease_that_changes_hands_while_it_runs_is_seen():
    stolen = replace(settled(2, 1, "running"), lease=2, nonce="n2")

    assert names(checker.exclusive_leases(History(writes=[claimed(1, 1), stolen]))) == {"I2"}


def test_a_renewal_is_no_change_of_hands():
    history = History(writes=[claimed(1, 1), settled(2, 1, "running")])

    assert checker.exclusive_leases(history) == []


def test_a_claim_taken_from_a_living_holder_before_its_end_is_seen():
    early = settled(2, 1, "waiting", abandoned=True, old_expires_ms=3_000, now_ms=2_900)
    history = History(writes=[claimed(1, 1), early])

    assert names(checker.exclusive_leases(history)) == {"I2"}
    history.dead_workers.add("w")
    assert checker.exclusive_leases(history) == []


# ── I3 ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("author", [{"lease": 1, "nonce": "n1"}, {"lease": 2, "nonce": "other"}])
def test_a_result_accepted_under_another_fence_is_seen(author):
    history = History(writes=[settled(1, 2, "succeeded", author=author)])

    assert names(checker.fencing(history)) == {"I3"}


def test_a_result_written_after_the_end_is_seen():
    late = replace(
        settled(1, 2, "succeeded", author={"lease": 2, "nonce": "n2"}), old_state="succeeded"
    )

    assert names(checker.fencing(History(writes=[late]))) == {"I3"}


def test_two_ends_in_one_generation_are_seen():
    ends = [settled(1, 1, "succeeded"), settled(2, 1, "dead")]
    again = [ends[0], replace(ends[1], generation=1)]

    assert names(checker.fencing(History(writes=ends))) == {"I3"}
    assert checker.fencing(History(writes=again)) == []


# ── I4 ───────────────────────────────────────────────────────────────────────────────────────


def overlapping(seconds):
    history = good()
    history.runs[0].ended = history.runs[1].started + seconds
    history.runs[1].ended = 60.0
    return history


def test_runs_side_by_side_beyond_the_grace_are_seen():
    assert names(checker.bounded_overlap(overlapping(5.5))) == {"I4"}
    assert checker.bounded_overlap(overlapping(4.5)) == []


def test_overlaps_are_measured():
    assert [one.seconds for one in checker.overlaps(overlapping(4.5))] == [4.5]
    assert checker.overlaps(good()) == []


def test_a_run_without_an_end_lasts_to_the_end():
    history = good()
    history.runs[0].ended = None
    history.runs[1].ended = 30.0
    history.end = 40.0

    assert [one.seconds for one in checker.overlaps(history)] == [25.0]


def test_time_stopped_by_a_signal_does_not_count():
    history = overlapping(20.0)
    history.pauses = [Pause(10, 0.0, 24.0), Pause(99, 0.0, 60.0)]

    assert [one.seconds for one in checker.overlaps(history)] == [1.0]


# ── I6 ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "bad", [{"attempt": 4}, {"crashes": 4}, {"state": "dead", "reason": "lost"}]
)
def test_a_budget_that_is_exceeded_is_seen(bad):
    history = History(endings={"a": ending(**bad)})

    assert names(checker.bounded_attempts(history, RULES)) == {"I6"}


def test_a_job_that_fails_for_good_may_die():
    history = History(endings={"a": ending(type="doomed", state="dead", attempt=1)})

    assert checker.bounded_attempts(history, RULES) == []


def test_a_hand_out_after_the_end_is_seen():
    writes = [settled(1, 1, "succeeded"), claimed(2, 2)]

    assert names(checker.bounded_attempts(History(writes=writes), RULES)) == {"I6"}
    replayed = [writes[0], replace(writes[1], generation=1)]
    assert checker.bounded_attempts(History(writes=replayed), RULES) == []


def test_a_second_start_of_a_job_that_may_start_once_is_seen():
    rules = Rules(max_attempts={}, at_most_once=frozenset({"work"}))

    assert names(checker.second_starts(good(), rules)) == {"at most once"}
    assert checker.second_starts(good(), RULES) == []


# ── I8, I9 ───────────────────────────────────────────────────────────────────────────────────


def test_an_early_start_is_seen():
    history = History(runs=[Run("a", "work", 1, 1, 1.0, started_ms=999, due_ms=1_000)])

    assert names(checker.never_early(history)) == {"I8"}


def test_an_early_hand_out_is_seen():
    history = History(writes=[claimed(1, 1, due_ms=1_000, claimed_ms=999)])

    assert names(checker.never_early(history)) == {"I8"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("waiting", "succeeded"),
        ("waiting", "dead"),
        ("succeeded", "cancelled"),
        ("cancelled", "running"),
        (None, "running"),
        ("running", None),
    ],
)
def test_a_move_that_is_not_in_the_table_is_seen(old, new):
    history = History(writes=[Write(number=1, job_id="a", old_state=old, new_state=new)])

    assert names(checker.state_machine(history)) == {"I9"}


def test_only_a_new_generation_leaves_an_end():
    back = Write(number=1, job_id="a", old_state="succeeded", new_state="waiting")

    assert names(checker.state_machine(History(writes=[back]))) == {"I9"}
    assert checker.state_machine(History(writes=[replace(back, generation=1)])) == []


# ── I10, I12 ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "state"),
    [("done", "succeeded"), ("done", "waiting"), ("requested", "dead"), ("requested", "waiting")],
)
def test_a_cancel_that_was_promised_and_not_kept_is_seen(answer, state):
    history = History(cancels=[Cancel("a", answer)], endings={"a": ending(state=state)})

    assert names(checker.cancels(history)) == {"I10"}


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("done", "cancelled"),
        ("requested", "cancelled"),
        ("requested", "succeeded"),
        ("conflict", "succeeded"),
        (None, "dead"),
    ],
)
def test_a_cancel_that_was_kept_is_fine(answer, state):
    history = History(cancels=[Cancel("a", answer)], endings={"a": ending(state=state)})

    assert checker.cancels(history) == []


def test_a_hand_out_after_a_cancel_is_seen():
    history = History(
        cancels=[Cancel("a", "done", answered_ms=100)],
        endings={"a": ending(state="cancelled")},
        writes=[claimed(1, 1, now_ms=101)],
    )

    assert names(checker.cancels(history)) == {"I10"}


def test_two_jobs_under_one_key_are_seen():
    history = History(submissions=[submission("a", key="k"), submission("b", key="k")])

    assert names(checker.idempotent_submits(history)) == {"I12"}


def test_a_stored_job_that_is_not_the_acknowledged_one_is_seen():
    history = History(submissions=[submission("a", key="k")], keyed={("default", "k"): ["b"]})

    assert names(checker.idempotent_submits(history)) == {"I12"}


def test_a_conflict_of_equal_bodies_is_seen():
    history = History(submissions=[replace(submission("a", key="k"), answer="conflict")])

    assert names(checker.idempotent_submits(history)) == {"I12"}


def test_the_same_key_of_two_tenants_is_two_keys():
    other = replace(submission("b", key="k"), tenant="other")

    assert checker.idempotent_submits(History(submissions=[submission("a", key="k"), other])) == []


# ── I17 ──────────────────────────────────────────────────────────────────────────────────────


def backlog(served):
    """Each tenant lines up plenty of jobs, then these numbers of them are handed out."""
    writes = [
        submitted(job_id=f"{tenant}{number}", tenant=tenant, queue="fair")
        for tenant in served
        for number in range(1_000)
    ]
    for tenant, count in served.items():
        writes += [
            claimed(1, 1, job_id=f"{tenant}{number}", tenant=tenant, queue="fair")
            for number in range(count)
        ]
    return writes


WEIGHTS = {"light": 1, "heavy": 6}


@pytest.mark.parametrize("served", [{"light": 100, "heavy": 500}, {"light": 100, "heavy": 700}])
def test_an_unfair_share_is_seen(served):
    assert names(checker.fairness(backlog(served), WEIGHTS, "fair")) == {"I17"}


def test_a_fair_share_is_fine():
    assert checker.fairness(backlog({"light": 100, "heavy": 610}), WEIGHTS, "fair") == []


def test_too_small_a_sample_is_no_proof():
    assert names(checker.fairness(backlog({"light": 9, "heavy": 54}), WEIGHTS, "fair")) == {"I17"}


def test_only_hand_outs_while_all_are_backlogged_count():
    writes = backlog({"light": 1_000, "heavy": 100})

    served = checker.served_while_backlogged(writes, WEIGHTS, "fair")

    assert served == {"light": 1_000, "heavy": 0}


def test_a_retry_leaves_death_once_and_without_a_new_generation():
    back = Write(number=1, job_id="a", old_state="dead", new_state="waiting")
    retried = History(writes=[back], retries=Counter({"a": 1}))
    assert checker.state_machine(retried) == []

    retried.writes = [replace(back, generation=1)]
    assert names(checker.state_machine(retried)) == {"I9"}
    retried.writes = [back, replace(back, number=2)]
    assert names(checker.state_machine(retried)) == {"I9"}
    retried.writes = [replace(back, old_state="succeeded")]
    assert names(checker.state_machine(retried)) == {"I9"}


def test_a_retried_job_may_run_and_end_once_more():
    ends = [settled(1, 1, "dead"), settled(4, 2, "succeeded")]
    back = Write(number=2, job_id="a", old_state="dead", new_state="waiting")
    writes = [ends[0], back, claimed(3, 2), ends[1]]
    history = History(writes=writes, retries=Counter({"a": 1}))

    assert checker.fencing(history) == []
    assert checker.bounded_attempts(history, RULES) == []
    assert names(checker.fencing(History(writes=writes))) == {"I3"}
