"""Put schedules: create or change them, losing nothing of what they were in the middle of."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.port.conformance.schedule_builders import (
    BY,
    MINUTE,
    NIGHTLY,
    at,
    backfill_of,
    due_ids,
    end,
    fire,
    known,
    new_schedule,
    put,
    run_at,
    runs_of,
    skip_of,
)
from lamplighter.port.schedules import Put, PutAnswer, ScheduleFilter, ScheduleRecord

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.schedules import NewSchedule
    from lamplighter.port.store import Engine

CREATED, CHANGED, ALREADY = PutAnswer.CREATED, PutAnswer.CHANGED, PutAnswer.ALREADY
AWKWARD = '{"cron": "*/5 * * * *", "ß": ["\N{SNOWMAN}", "it\'s", "\\\\n", null]}\n-- "; %s {} $1'


async def _put(engine: Engine, *schedules: NewSchedule) -> list[Put]:
    return await engine.schedules.put_schedules(schedules, by="alice")


async def test_a_new_schedule_is_stored_as_it_was_given(
    engine: Engine, clock: VirtualClock
) -> None:
    clock.advance(seconds=7)
    given = new_schedule(
        "täglich %_*", spec=AWKWARD, tenant="it's 100 %", type="größer", zones="2025b"
    )

    assert await _put(engine, given) == [Put(given.id, CREATED, 1)]

    now = clock.now_ms()
    assert await known(engine, given.id, given.tenant) == ScheduleRecord(
        id=given.id,
        spec=AWKWARD,
        tenant="it's 100 %",
        type="größer",
        version=1,
        cursor_ms=now,
        due_ms=given.due_ms,
        created_at_ms=now,
        changed_at_ms=now,
        zones="2025b",
    )


async def test_a_new_schedule_begins_before_its_first_occurrence_if_that_is_past_when_it_arrives(
    engine: Engine, clock: VirtualClock
) -> None:
    clock.set(at(3))

    await put(
        engine,
        new_schedule("late", due_ms=at(1), first_ms=at(1)),
        new_schedule("late, and to be shifted", due_ms=at(4), first_ms=at(3)),
        new_schedule("in time", due_ms=at(4), first_ms=at(4)),
        new_schedule("unknown", due_ms=at(1)),
        new_schedule("never", due_ms=None),
    )

    cursors = [(await known(engine, one)).cursor_ms for one in ("late", "late, and to be shifted")]
    assert cursors == [at(1) - 1, at(3) - 1]
    for name in ("in time", "unknown", "never"):
        assert (await known(engine, name)).cursor_ms == at(3)
    assert sorted(await due_ids(engine)) == ["late", "unknown"]
    assert (await fire(engine, run_at(at(1), schedule="late"), schedule="late")).started


async def test_a_changed_schedule_keeps_its_cursor_though_its_first_occurrence_is_past(
    engine: Engine, clock: VirtualClock
) -> None:
    clock.set(at(3))
    await put(engine, new_schedule(due_ms=at(9)))
    clock.set(at(5))

    await _put(engine, new_schedule(spec="other", due_ms=at(1), first_ms=at(1)))

    assert (await known(engine)).cursor_ms == at(3)


async def test_a_schedule_keeps_a_long_spec(engine: Engine) -> None:
    spec = "ä" * 40_000

    await put(engine, new_schedule(spec=spec))

    assert (await known(engine)).spec == spec


async def test_schedules_of_a_call_are_answered_in_order(engine: Engine) -> None:
    await put(engine, new_schedule("b"), new_schedule("c"))

    said = await _put(engine, new_schedule("c", spec="other"), new_schedule("a"), new_schedule("b"))

    assert said == [Put("c", CHANGED, 2), Put("a", CREATED, 1), Put("b", ALREADY, 1)]


async def test_a_put_of_no_schedules_answers_nothing(engine: Engine) -> None:
    assert await _put(engine) == []


async def test_an_equal_schedule_is_already_and_nothing_changes(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule(zones="2025a"))
    before = await known(engine)
    clock.advance(seconds=5)

    said = await _put(engine, new_schedule(due_ms=at(9), zones="2025b"))

    assert said == [Put(NIGHTLY, ALREADY, 1)]
    assert await known(engine) == before
    clock.advance(seconds=54)
    assert await due_ids(engine) == []
    clock.advance(seconds=1)
    assert await due_ids(engine) == [NIGHTLY]


@pytest.mark.parametrize("what", ["spec", "type"])
async def test_a_schedule_with_another_spec_or_type_is_changed(
    engine: Engine, clock: VirtualClock, what: str
) -> None:
    await put(engine, new_schedule())
    before = await known(engine)
    clock.advance(seconds=5)

    said = await _put(engine, replace(new_schedule(due_ms=at(0.5)), **{what: "other"}))

    assert said == [Put(NIGHTLY, CHANGED, 2)]
    after = await known(engine)
    assert getattr(after, what) == "other"
    assert (after.version, after.changed_at_ms) == (2, clock.now_ms())
    assert (after.cursor_ms, after.created_at_ms) == (before.cursor_ms, before.created_at_ms)


async def test_a_changed_schedule_is_due_as_given_when_that_is_earlier(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule(due_ms=at(60)))

    await _put(engine, new_schedule(spec="other", due_ms=at(2), zones="2025b"))

    after = await known(engine)
    assert (after.due_ms, after.zones) == (at(2), "2025b")
    clock.advance(ms=2 * MINUTE)
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_schedule_that_never_was_due_is_due_as_given_when_it_is_changed(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule(due_ms=None))

    await _put(engine, new_schedule(spec="other", due_ms=at(2)))

    assert (await known(engine)).due_ms == at(2)
    clock.advance(ms=2 * MINUTE)
    assert await due_ids(engine) == [NIGHTLY]


@pytest.mark.parametrize("later", [at(60), None])
async def test_a_changed_schedule_is_due_now_when_it_is_given_a_later_time(
    engine: Engine, clock: VirtualClock, later: int | None
) -> None:
    await put(engine, new_schedule(due_ms=at(5)))
    clock.advance(seconds=3)

    await _put(engine, new_schedule(spec="other", due_ms=later))

    assert (await known(engine)).due_ms == clock.now_ms()
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_schedule_that_never_was_due_and_never_will_be_is_not_due_when_it_is_changed(
    engine: Engine,
) -> None:
    await put(engine, new_schedule(due_ms=None))

    await _put(engine, new_schedule(spec="other", due_ms=None))

    assert (await known(engine)).due_ms is None


@pytest.mark.parametrize("later", [at(60), None])
async def test_a_schedule_that_was_overdue_is_looked_at_now_although_it_is_changed_to_later(
    engine: Engine, clock: VirtualClock, later: int | None
) -> None:
    await put(engine, new_schedule(due_ms=at(1)))
    clock.advance(ms=2 * MINUTE)

    await _put(engine, new_schedule(spec="other", due_ms=later))

    assert (await known(engine)).cursor_ms == at(0)
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_changed_schedule_keeps_its_cursor_counts_runs_hold_backfill_and_last_job(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    clock.advance(ms=3 * MINUTE)
    await fire(engine, run_at(at(1)), skips=[skip_of(at(2), at(3), count=2)])
    await end(engine)
    await engine.schedules.backfill(NIGHTLY, backfill_of(at(-9), at(-1)), **BY)
    await engine.schedules.hold_schedules([NIGHTLY], **BY)
    before, runs = await known(engine), await runs_of(engine)
    assert (before.fired, before.skipped, before.last_job) == (1, 2, run_at(at(1)).job.id)
    assert None not in {before.hold, before.backfill}
    clock.advance(seconds=1)

    await _put(engine, new_schedule(spec="other", due_ms=at(2)))

    after = await known(engine)
    assert after == replace(
        before,
        spec="other",
        version=before.version + 1,
        due_ms=after.due_ms,
        changed_at_ms=clock.now_ms(),
    )
    assert await runs_of(engine) == runs
    assert await due_ids(engine) == []


async def test_a_schedule_changed_while_it_is_handed_out_is_handed_out_again(
    engine: Engine,
) -> None:
    await put(engine, new_schedule(due_ms=at(0)))
    assert await due_ids(engine) == [NIGHTLY]

    await _put(engine, new_schedule(spec="other", due_ms=at(0)))

    assert await due_ids(engine) == [NIGHTLY]


async def test_two_puts_of_one_schedule_in_a_call_follow_each_other(engine: Engine) -> None:
    said = await _put(
        engine,
        new_schedule(),
        new_schedule(spec="other"),
        new_schedule(spec="other"),
        new_schedule(),
    )

    assert said == [
        Put(NIGHTLY, CREATED, 1),
        Put(NIGHTLY, CHANGED, 2),
        Put(NIGHTLY, ALREADY, 2),
        Put(NIGHTLY, CHANGED, 3),
    ]
    assert (await known(engine)).spec == new_schedule().spec


async def test_schedules_whose_names_differ_little_are_different_ones(engine: Engine) -> None:
    names = ["a", "A", "a ", "ä", "a\N{COMBINING DIAERESIS}", "a:b", "a/b", "a%3Ab", "{a}", "%"]

    await put(engine, *(new_schedule(name, spec=name) for name in names))

    for name in names:
        assert (await known(engine, name)).spec == name


async def test_more_schedules_than_a_batch_are_refused_and_none_is_stored(engine: Engine) -> None:
    most = engine.capabilities.max_batch

    with pytest.raises(InvalidInput):
        await _put(engine, *(new_schedule(f"{n}") for n in range(most + 1)))

    page = await engine.schedules.schedules(ScheduleFilter(), limit=10)
    assert (page.schedules, page.cursor) == ([], None)


@pytest.mark.parametrize("note", ["r" * 1_001, "two\nlines", "a\x00b"])
async def test_schedules_put_by_somebody_whose_name_cannot_be_shown_are_refused(
    engine: Engine, note: str
) -> None:
    with pytest.raises(InvalidInput):
        await engine.schedules.put_schedules([new_schedule()], by=note)

    assert await engine.schedules.schedule(NIGHTLY) is None


async def test_a_schedule_of_another_version_than_expected_is_a_conflict_and_stays_as_it_is(
    engine: Engine,
) -> None:
    await _put(engine, new_schedule(spec="one"), new_schedule(spec="two"))
    before = await known(engine)
    late = new_schedule(spec="three", expect_version=1)

    assert await _put(engine, late) == [Put(late.id, PutAnswer.CONFLICT, 2)]

    assert await known(engine) == before
    assert await _put(engine, replace(late, expect_version=2)) == [Put(late.id, CHANGED, 3)]


async def test_a_change_of_an_expected_version_may_be_repeated(engine: Engine) -> None:
    await put(engine, new_schedule(spec="one"))
    change = new_schedule(spec="two", expect_version=1)

    assert await _put(engine, change) == [Put(change.id, CHANGED, 2)]
    assert await _put(engine, change) == [Put(change.id, ALREADY, 2)]


async def test_a_schedule_that_is_gone_is_not_made_by_a_change_of_its_version(
    engine: Engine,
) -> None:
    gone = new_schedule(spec="two", expect_version=1)

    assert await _put(engine, gone) == [Put(gone.id, PutAnswer.UNKNOWN, 0)]

    assert await engine.schedules.schedule(gone.id) is None


async def test_what_is_expected_of_one_schedule_of_a_call_does_not_touch_the_others(
    engine: Engine,
) -> None:
    await put(engine, new_schedule("c"))

    said = await _put(
        engine,
        new_schedule("a"),
        new_schedule("b", expect_version=1),
        new_schedule("c", spec="other", expect_version=1),
        new_schedule("c", spec="third", expect_version=1),
        new_schedule("d", spec="plain"),
    )

    assert said == [
        Put("a", CREATED, 1),
        Put("b", PutAnswer.UNKNOWN, 0),
        Put("c", CHANGED, 2),
        Put("c", PutAnswer.CONFLICT, 2),
        Put("d", CREATED, 1),
    ]


async def test_of_two_changes_of_one_version_at_once_one_is_made(
    engine: Engine, engine_factory: Callable[[], Awaitable[Engine]]
) -> None:
    other = await engine_factory()
    names = [f"wanted {number}" for number in range(20)]
    await put(engine, *(new_schedule(name) for name in names))

    said = await asyncio.gather(
        *(
            _put(which, new_schedule(name, spec=spec, expect_version=1))
            for name in names
            for which, spec in ((engine, "mine"), (other, "theirs"))
        )
    )

    for name, (mine,), (theirs,) in zip(names, said[::2], said[1::2], strict=True):
        assert {mine.answer, theirs.answer} == {CHANGED, PutAnswer.CONFLICT}
        assert {mine.version, theirs.version} == {2}
        spec = "mine" if mine.answer is CHANGED else "theirs"
        assert (await known(engine, name)).spec == spec
