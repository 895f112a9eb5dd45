"""The judge of schedules: it lets pass what the table of policies says, and nothing else."""

from dataclasses import replace

import pytest

from lamplighter.model.recurring import CatchUp, Overlap
from lamplighter.port.schedules import RunKind, RunRecord, RunState, ScheduleRecord
from tests.faults import table
from tests.faults.history import History, Write
from tests.faults.rota import Duty, plain

BEGIN = 1_000_000


def duty(mode: CatchUp = CatchUp.LATEST, **policy: object) -> Duty:
    return plain("duty", 1, catch_up=mode, **policy)


def second(number: int) -> int:
    return BEGIN + number * 1000


def started(number: int, at: int) -> RunRecord:
    return RunRecord(
        schedule="duty",
        due_ms=second(number),
        kind=RunKind.DUE,
        state=RunState.STARTED,
        at_ms=second(at),
        job_id=f"job-{number}",
    )


def skipped(first: int, last: int, at: int, reason: str = "missed") -> RunRecord:
    return RunRecord(
        schedule="duty",
        due_ms=second(last),
        kind=RunKind.DUE,
        state=RunState.SKIPPED,
        at_ms=second(at),
        reason=reason,
        first_ms=second(first),
        count=last - first + 1,
    )


def judged(one: Duty, runs: list[RunRecord], looks: dict[int, list[int]]) -> list[str]:
    """Judge the table alone; looks are seconds, by the second of the cursor."""
    cursor = runs[-1].due_ms if runs else BEGIN
    record = ScheduleRecord(
        id="duty",
        spec="",
        tenant="default",
        type="lamp",
        version=1,
        cursor_ms=cursor,
        due_ms=None,
        created_at_ms=BEGIN,
        changed_at_ms=BEGIN,
        fired=sum(run.job_id is not None for run in runs),
        skipped=sum(run.count or 1 for run in runs if run.state is RunState.SKIPPED),
    )
    notes = {second(at): {second(now) for now in nows} for at, nows in looks.items()}
    said = table._by_the_table(one, record, runs, notes)
    said += table._last_is_left(one, runs)
    return [one.text for one in said]


def test_the_latest_is_started_and_the_others_are_missed():
    runs = [skipped(1, 3, at=4), started(4, at=4), started(5, at=5)]

    assert judged(duty(), runs, {0: [4], 4: [5]}) == []


def test_a_plan_that_was_overtaken_leaves_nothing():
    runs = [started(1, at=1), started(2, at=2)]

    assert judged(duty(), runs, {0: [1, 3], 1: [2]}) == []


def test_an_occurrence_that_is_started_and_skipped_is_noticed():
    runs = [started(4, at=4), skipped(1, 9, at=10), started(10, at=10)]

    assert judged(duty(), runs, {0: [4, 10]})


def test_a_lost_occurrence_is_noticed():
    assert judged(duty(CatchUp.ALL), [started(1, at=1), started(3, at=3)], {0: [1], 1: [3], 2: [3]})


def test_a_plan_written_in_two_parts_is_noticed():
    runs = [skipped(1, 3, at=4), started(4, at=5)]

    assert judged(duty(), runs, {0: [4]})


def test_a_run_that_nobody_was_handed_out_is_noticed():
    assert judged(duty(), [started(1, at=1)], {})


def test_what_is_older_than_the_window_is_late():
    one = duty(CatchUp.ALL, window_ms=2_000)
    runs = [skipped(1, 7, at=10, reason="late"), *(started(n, at=10) for n in (8, 9, 10))]

    assert judged(one, runs, {0: [10]}) == []
    assert judged(duty(CatchUp.ALL), runs, {0: [10]})


def test_where_nothing_is_made_up_for_half_a_minute_is_too_late():
    minutely = plain("duty", 60, catch_up=CatchUp.NONE, phase_ms=BEGIN % 60_000)

    runs = [skipped(60, 60, at=91, reason="late")]
    assert judged(minutely, [replace(runs[0], count=1)], {0: [91]}) == []
    assert judged(minutely, [started(60, at=90)], {0: [90]}) == []
    assert judged(minutely, [started(60, at=91)], {0: [91]})


def test_more_than_a_hundred_skipped_ones_are_not_counted():
    run = replace(skipped(1, 299, at=300), count=None)

    assert judged(duty(), [run, started(300, at=300)], {0: [300]}) == []


def test_while_one_goes_on_the_others_are_skipped_each_for_itself():
    one = duty(CatchUp.ALL, overlap=Overlap.SKIP)
    runs = [started(1, at=2), replace(skipped(2, 2, at=2, reason="overlap"), first_ms=None)]

    assert judged(one, runs, {0: [2]}) == []
    assert judged(one, [started(1, at=2), started(2, at=2)], {0: [2]})


def test_of_those_that_replace_each_other_the_last_is_left():
    one = duty(CatchUp.ALL, overlap=Overlap.CANCEL_RUNNING)
    ended = replace(started(1, at=1), state=RunState.CANCELLED)
    looks = {0: [1], 1: [2]}

    assert judged(one, [ended, started(2, at=2)], looks) == []
    assert judged(one, [started(1, at=1), started(2, at=2)], looks)


@pytest.mark.parametrize(("times", "noticed"), [(1, False), (2, True)])
def test_a_job_that_was_made_twice_is_noticed(times, noticed):
    write = Write(number=1, job_id="job", old_state=None, new_state="waiting")

    assert bool(table.created_once(History(writes=[write] * times))) is noticed
