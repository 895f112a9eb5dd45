"""What is planned for a schedule, as a table: catch-up, window, bounds, jitter, backfill."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.coordinator.plan import MOST_COUNTED, MOST_RUNS, plan
from lamplighter.model import ids
from lamplighter.model.recurring import CatchUp, Overlap, Policy, Spec, Template, jitter_of
from lamplighter.model.schedule import Cron, Interval, Once
from lamplighter.model.timetable import milliseconds, moment
from lamplighter.port.schedules import Backfill, DueSchedule, RunKind, ScheduleRecord

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
START = milliseconds(datetime(2026, 3, 1, tzinfo=UTC))
TEMPLATE = Template(type="bill", args=b'{"tenant":"acme"}', queue="money")


def spec(calendar=None, **policy):
    chosen = Cron("* * * * *") if calendar is None else calendar
    return Spec(calendar=chosen, template=TEMPLATE, policy=Policy(**policy))


def due(cursor_ms=START, *, backfilling=0, **fields):
    record = ScheduleRecord(
        id="nightly",
        spec="",
        tenant="default",
        type="bill",
        version=3,
        cursor_ms=cursor_ms,
        due_ms=cursor_ms + MINUTE,
        created_at_ms=START,
        changed_at_ms=START,
    )
    return DueSchedule(record=replace(record, **fields), backfilling=backfilling)


def planned(now_ms, *, given_due=None, calendar=None, **policy):
    return plan(given_due or due(), spec(calendar, **policy), now_ms, "2026f")


def dues(firing):
    return [run.due_ms for run in firing.runs]


def test_what_is_due_gets_a_job_and_the_next_time_is_set():
    firing = planned(START + MINUTE + 7)
    assert dues(firing) == [START + MINUTE]
    assert firing.next_cursor_ms == START + MINUTE
    assert firing.due_ms == START + 2 * MINUTE
    assert (firing.version, firing.cursor_ms, firing.zones) == (3, START, "2026f")
    assert not firing.skips
    (run,) = firing.runs
    assert run.overlap is Overlap.SKIP
    assert run.job.id == ids.of_occurrence("default", "nightly", START + MINUTE)
    assert (run.job.type, run.job.queue, run.job.schedule) == ("bill", "money", "nightly")
    assert run.job.run_at_ms == START + MINUTE
    assert run.job.extras.metadata == {"scheduled_for": "2026-03-01T00:01:00Z"}


def test_what_is_not_due_yet_is_only_put_off():
    firing = planned(START + MINUTE - 1)
    assert not firing.runs
    assert not firing.skips
    assert firing.next_cursor_ms == START
    assert firing.due_ms == START + MINUTE


@pytest.mark.parametrize(
    ("mode", "window_ms", "late_ms", "fired", "skipped"),
    [
        (CatchUp.LATEST, HOUR, 10 * MINUTE, [10], (1, 9, 9, "missed")),
        (CatchUp.LATEST, 0, 10 * MINUTE, [10], (1, 9, 9, "missed")),
        (CatchUp.LATEST, 0, 10 * MINUTE + 1, [], (1, 10, 10, "late")),
        (CatchUp.NONE, HOUR, MINUTE + 30_000, [1], None),
        (CatchUp.NONE, HOUR, MINUTE + 30_001, [], (1, 1, 1, "late")),
        (CatchUp.NONE, HOUR, 3 * MINUTE + 5, [3], (1, 2, 2, "missed")),
        (CatchUp.ALL, HOUR, 5 * MINUTE, [1, 2, 3, 4, 5], None),
        (CatchUp.ALL, 2 * MINUTE, 5 * MINUTE, [3, 4, 5], (1, 2, 2, "late")),
        (CatchUp.ALL, 0, 5 * MINUTE + 1, [], (1, 5, 5, "late")),
    ],
)
def test_missed_occurrences_follow_mode_and_window(mode, window_ms, late_ms, fired, skipped):
    firing = planned(START + late_ms, catch_up=mode, window_ms=window_ms)
    assert dues(firing) == [START + minute * MINUTE for minute in fired]
    found = [
        ((s.first_ms - START) // MINUTE, (s.due_ms - START) // MINUTE, s.count, s.reason)
        for s in firing.skips
    ]
    assert found == ([] if skipped is None else [skipped])
    last = (late_ms // MINUTE) * MINUTE
    assert firing.next_cursor_ms == START + last
    assert firing.due_ms == START + last + MINUTE


def test_all_goes_on_in_the_next_plan_where_one_is_full():
    firing = planned(START + 3 * HOUR, catch_up=CatchUp.ALL, window_ms=DAY)
    assert len(firing.runs) == MOST_RUNS
    assert firing.next_cursor_ms == firing.runs[-1].due_ms == START + MOST_RUNS * MINUTE
    assert firing.due_ms == START + (MOST_RUNS + 1) * MINUTE


def test_a_year_of_missed_minutes_is_one_run_and_one_note():
    firing = planned(START + 365 * DAY)
    assert dues(firing) == [START + 365 * DAY]
    (skip,) = firing.skips
    assert (skip.first_ms, skip.due_ms) == (START + MINUTE, START + 365 * DAY - MINUTE)
    assert skip.count is None, f"more than {MOST_COUNTED}"


def test_jitter_shifts_the_run_and_not_the_occurrence():
    offset = jitter_of("default", "nightly", 30_000)
    assert 0 < offset <= 30_000
    early = planned(START + MINUTE + offset - 1, jitter_ms=30_000)
    assert (dues(early), early.due_ms) == ([], START + MINUTE + offset)
    firing = planned(START + MINUTE + offset, jitter_ms=30_000)
    assert dues(firing) == [START + MINUTE]
    assert firing.runs[0].job.run_at_ms == START + MINUTE + offset
    assert firing.due_ms == START + 2 * MINUTE + offset


def test_nothing_before_the_start_and_nothing_after_the_end():
    bounds = {"start_ms": START + 5 * MINUTE, "end_ms": START + 6 * MINUTE}
    early = planned(START + 3 * MINUTE, **bounds)
    assert (dues(early), early.skips, early.due_ms) == ([], (), START + 5 * MINUTE)
    firing = planned(START + 5 * MINUTE, **bounds)
    assert (dues(firing), firing.due_ms) == ([START + 5 * MINUTE], START + 6 * MINUTE)
    last = planned(START + 9 * MINUTE, given_due=due(START + 5 * MINUTE), **bounds)
    assert (dues(last), last.due_ms) == ([START + 6 * MINUTE], None)


def test_it_is_over_after_so_many_runs():
    policy = {"catch_up": CatchUp.ALL, "max_runs": 5}
    firing = planned(START + 9 * MINUTE, given_due=due(fired=3), **policy)
    assert dues(firing) == [START + MINUTE, START + 2 * MINUTE]
    over = planned(START + 9 * MINUTE, given_due=due(START + 2 * MINUTE, fired=5), **policy)
    assert (over.runs, over.due_ms) == ((), None)


def test_it_is_held_after_so_many_failures():
    firing = planned(START + MINUTE, given_due=due(failures=2), hold_after=3)
    assert firing.hold is None
    firing = planned(START + MINUTE, given_due=due(failures=3), hold_after=3)
    assert firing.hold == "its last 3 runs have failed"
    firing = planned(START + MINUTE, given_due=due(failures=1), hold_after=1)
    assert firing.hold == "its last run has failed"
    firing = planned(START + MINUTE, given_due=due(failures=3), hold_after=3)
    assert not firing.runs
    assert firing.next_cursor_ms == START


def test_an_instant_between_two_milliseconds_fires_once_and_not_early():
    calendar = Once(moment(START) + timedelta(microseconds=1_500))
    firing = planned(START + 1, given_due=due(START), calendar=calendar)
    assert (firing.runs, firing.due_ms) == ((), START + 2)
    firing = planned(START + 2, given_due=due(START), calendar=calendar)
    assert (dues(firing), firing.due_ms) == ([START + 2], None)
    again = planned(START + 9, given_due=due(START + 2), calendar=calendar)
    assert (again.runs, again.due_ms) == ((), None)


def backfill(**fields):
    begun = Backfill(
        from_ms=START - HOUR, to_ms=START - 55 * MINUTE, cursor_ms=START - HOUR, limit=2
    )
    return replace(begun, **fields)


def test_a_backfill_runs_as_many_at_once_as_it_may():
    firing = planned(START + 1, given_due=due(backfill=backfill()))
    assert dues(firing) == [START - 59 * MINUTE, START - 58 * MINUTE]
    assert {run.kind for run in firing.runs} == {RunKind.BACKFILL}
    assert {run.overlap for run in firing.runs} == {Overlap.ALLOW}
    assert firing.backfill == backfill(cursor_ms=START - 58 * MINUTE), "made is the store's to say"
    assert firing.due_ms == START + 1, "some may have had their run, so that there is room"
    assert firing.next_cursor_ms == START, "its own occurrences go on as they were"
    full = planned(START + 1, given_due=due(backfill=firing.backfill, backfilling=2))
    assert not full.runs
    assert full.backfill == firing.backfill
    assert full.due_ms == START + 1_001


def test_a_backfill_is_complete_when_its_last_job_has_ended():
    left = backfill(cursor_ms=START - 56 * MINUTE, made=4)
    firing = planned(START + 1, given_due=due(backfill=left, backfilling=1))
    assert dues(firing) == [START - 55 * MINUTE]
    assert firing.backfill == replace(left, cursor_ms=left.to_ms)
    waiting = planned(START + 1, given_due=due(backfill=firing.backfill, backfilling=1))
    assert (waiting.runs, waiting.backfill) == ((), firing.backfill)
    done = planned(START + 1, given_due=due(backfill=firing.backfill, backfilling=0))
    assert done.backfill is None
    assert done.due_ms == START + MINUTE


@given(
    every=st.integers(1, 5_000),
    steps=st.lists(st.integers(0, 400_000), min_size=1, max_size=12),
    window=st.integers(0, 500_000),
    jitter=st.integers(0, 90_000),
)
def test_with_all_and_a_wide_window_every_occurrence_is_resolved_exactly_once(
    every, steps, window, jitter
):
    """However coordinators come: each instant is run or skipped once, in order, never early."""
    calendar = Interval(timedelta(seconds=every), anchor=moment(START))
    wanted = spec(calendar, catch_up=CatchUp.ALL, window_ms=window, jitter_ms=jitter)
    state, now, seen, skipped = due(), START, [], 0
    for step in steps:
        now += step
        while True:
            firing = plan(state, wanted, now, "")
            assert firing.next_cursor_ms >= state.record.cursor_ms
            for run in firing.runs:
                assert run.due_ms <= now
                assert run.job.run_at_ms <= now
            seen += dues(firing)
            for skip in firing.skips:
                there_are = (skip.due_ms - skip.first_ms) // (every * 1000) + 1
                assert skip.count == (there_are if there_are <= MOST_COUNTED else None)
                skipped += there_are
            moved = firing.next_cursor_ms > state.record.cursor_ms
            record = replace(state.record, cursor_ms=firing.next_cursor_ms, due_ms=firing.due_ms)
            state = DueSchedule(record=record)
            if not moved:
                break
        assert state.record.due_ms is not None
        assert state.record.due_ms > now
    offset = jitter_of("default", "nightly", jitter)
    expected = range(START + every * 1000, now - offset + 1, every * 1000)
    assert len(seen) + skipped == len(expected)
    assert seen == sorted(set(seen))
    assert set(seen) <= set(expected)


def test_a_backfill_of_instants_that_are_hard_to_find_goes_on_from_what_was_found():
    every_hour = Cron("* * * * *") - Cron("1-59 * * * *")
    cursor_ms, last_ms, found = START - 8 * DAY, START - DAY, []
    for _ in range(10):
        backfill = Backfill(from_ms=cursor_ms, to_ms=last_ms, cursor_ms=cursor_ms, limit=100)
        firing = planned(START + 1, given_due=due(backfill=backfill), calendar=every_hour)
        found += dues(firing)
        if not firing.runs:
            break
        cursor_ms = firing.backfill.cursor_ms

    assert found == list(range(START - 8 * DAY + HOUR, last_ms + 1, HOUR))
