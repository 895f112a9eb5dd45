"""Backfill: occurrences of the past, begun by an operator and run a few at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.port.conformance.schedule_builders import (
    BY,
    NIGHTLY,
    OTHERS,
    at,
    backfill_of,
    due_ids,
    end,
    fire,
    known,
    new_schedule,
    plan_of,
    put,
    run_at,
    runs_of,
    skip_of,
)
from lamplighter.port.schedules import (
    FireAnswer,
    Fired,
    Overlap,
    RunKind,
    RunState,
    ScheduleAnswer,
    ScheduleChanged,
)

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.schedules import Backfill
    from lamplighter.port.store import Engine

DONE, ALREADY = ScheduleAnswer.DONE, ScheduleAnswer.ALREADY
CONFLICT, UNKNOWN = ScheduleAnswer.CONFLICT, ScheduleAnswer.UNKNOWN
WANTED = backfill_of(at(-9), at(-1))


async def _backfill(engine: Engine, wanted: Backfill = WANTED) -> ScheduleAnswer:
    said = await engine.schedules.backfill(NIGHTLY, wanted, **BY)
    assert said == ScheduleChanged(NIGHTLY, said.answer)
    return said.answer


async def test_a_backfill_is_noted_and_makes_its_schedule_due(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule(due_ms=at(60)))
    before = await known(engine)
    clock.advance(seconds=5)

    assert await _backfill(engine) is DONE

    after = await known(engine)
    assert after.backfill == WANTED
    assert (after.cursor_ms, after.due_ms) == (before.cursor_ms, before.due_ms)
    assert after.version == before.version + 1
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_schedule_that_is_never_due_is_due_for_its_backfill(engine: Engine) -> None:
    await put(engine, new_schedule(due_ms=None))

    await _backfill(engine)

    assert await due_ids(engine) == [NIGHTLY]


async def test_a_backfill_of_a_schedule_asked_for_again_is_already(engine: Engine) -> None:
    await put(engine, new_schedule())
    await _backfill(engine)
    before = await known(engine)

    assert await _backfill(engine) is ALREADY

    assert await known(engine) == before


async def test_a_backfill_of_a_schedule_asked_for_again_in_its_midst_is_already(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await _backfill(engine)
    further = replace(WANTED, cursor_ms=at(-7), made=2)
    await fire(engine, backfill=further)

    assert await _backfill(engine) is ALREADY

    assert (await known(engine)).backfill == further


@pytest.mark.parametrize(
    "other",
    [backfill_of(at(-8), at(-1)), backfill_of(at(-9), at(-2)), backfill_of(at(-30), at(-20))],
)
async def test_another_backfill_of_a_schedule_while_one_is_under_way_is_a_conflict(
    engine: Engine, other: Backfill
) -> None:
    await put(engine, new_schedule())
    await _backfill(engine)
    before = await known(engine)

    assert await _backfill(engine, other) is CONFLICT

    assert await known(engine) == before


async def test_another_backfill_of_a_schedule_may_follow_when_one_is_complete(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await _backfill(engine)
    await fire(engine, backfill=None)
    other = backfill_of(at(-30), at(-20), limit=9)

    assert await _backfill(engine, other) is DONE

    assert (await known(engine)).backfill == other


async def test_a_backfill_of_an_unknown_schedule_says_so(engine: Engine) -> None:
    assert await _backfill(engine) is UNKNOWN

    assert await engine.schedules.schedule(NIGHTLY) is None


@pytest.mark.parametrize("other", OTHERS)
async def test_a_tenant_begins_backfills_of_its_own_schedules_alone(
    engine: Engine, other: str
) -> None:
    await put(engine, new_schedule(tenant="acme"))
    before, wanted = await known(engine, tenant="acme"), backfill_of(at(1), at(2))

    said = await engine.schedules.backfill(NIGHTLY, wanted, **BY, tenant=other)

    assert said == ScheduleChanged(NIGHTLY, UNKNOWN)
    assert await known(engine, tenant="acme") == before
    said = await engine.schedules.backfill(NIGHTLY, wanted, **BY, tenant="acme")
    assert said == ScheduleChanged(NIGHTLY, DONE)


async def test_a_held_schedule_keeps_a_backfill_until_it_is_unheld(engine: Engine) -> None:
    await put(engine, new_schedule())
    await engine.schedules.hold_schedules([NIGHTLY], **BY)

    assert await _backfill(engine) is DONE

    assert await due_ids(engine) == []
    await engine.schedules.unhold_schedules([NIGHTLY], **BY)
    assert await due_ids(engine) == [NIGHTLY]
    assert (await known(engine)).backfill == WANTED


async def test_a_plan_made_before_a_backfill_of_its_schedule_does_not_end_it(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    plan = plan_of(await known(engine), run_at(at(1)))
    await _backfill(engine)

    await engine.schedules.fire([plan])

    assert (await known(engine)).backfill == WANTED


async def test_a_plan_made_before_its_schedules_backfill_went_on_does_not_set_it_back(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await _backfill(engine)
    same = await known(engine)
    first = run_at(at(-8), kind=RunKind.BACKFILL, run_at_ms=at(0))
    older = plan_of(same, first, backfill=replace(WANTED, cursor_ms=at(-8)))
    second = run_at(at(-7), kind=RunKind.BACKFILL, run_at_ms=at(0))
    further = replace(WANTED, cursor_ms=at(-7))
    await fire(engine, first, second, backfill=further)
    before = await known(engine)

    (said,) = await engine.schedules.fire([older])

    assert said == Fired(NIGHTLY, FireAnswer.STALE)
    assert await known(engine) == before
    assert before.backfill == replace(further, made=2)
    assert before.cursor_ms == same.cursor_ms
    assert before.version == same.version + 1


async def test_a_plan_made_before_its_schedules_backfill_was_complete_does_not_begin_it_anew(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await _backfill(engine)
    older = plan_of(await known(engine), backfill=replace(WANTED, cursor_ms=at(-8), made=1))
    await fire(engine, backfill=None)

    (said,) = await engine.schedules.fire([older])

    assert said.answer is FireAnswer.STALE
    assert (await known(engine)).backfill is None


async def test_a_plan_that_leaves_a_backfill_of_its_schedule_where_it_was_keeps_others_valid(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await _backfill(engine)
    same = await known(engine)
    other = plan_of(same, run_at(at(1)))

    await fire(engine, due_ms=at(0))

    assert (await known(engine)).version == same.version
    (said,) = await engine.schedules.fire([other])
    assert said.answer is FireAnswer.DONE


async def test_runs_of_a_backfill_of_a_schedule_are_noted_as_such_and_not_counted_as_fired(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    await _backfill(engine)
    past = [run_at(at(n), Overlap.SKIP, kind=RunKind.BACKFILL) for n in (-8, -7)]

    said = await fire(engine, *past)

    assert sorted(said.started) == sorted(run.job.id for run in past)
    found = await runs_of(engine)
    assert [(one.due_ms, one.kind, one.state) for one in found] == [
        (at(-8), RunKind.BACKFILL, RunState.STARTED),
        (at(-7), RunKind.BACKFILL, RunState.STARTED),
    ]
    assert (await known(engine)).fired == 0
    clock.advance(seconds=4)
    assert await end(engine) == past[0].job.id
    first, second = await runs_of(engine)
    assert (first.state, first.finished_at_ms) == (RunState.SUCCEEDED, clock.now_ms())
    assert second.state is RunState.STARTED


async def test_a_run_of_a_backfill_takes_the_place_of_a_skipped_one_of_its_schedule(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1)), skips=[skip_of(at(2), at(2)), skip_of(at(3), at(3))])
    again = [run_at(at(n), kind=RunKind.BACKFILL, run_at_ms=at(0)) for n in (1, 2)]

    said = await fire(engine, *again)

    assert said.started == (again[1].job.id,)
    found = [(one.kind, one.state, one.job_id) for one in await runs_of(engine)]
    assert found == [
        (RunKind.DUE, RunState.STARTED, run_at(at(1)).job.id),
        (RunKind.BACKFILL, RunState.STARTED, again[1].job.id),
        (RunKind.DUE, RunState.SKIPPED, None),
    ]
    assert await end(engine) == again[1].job.id
    assert (await runs_of(engine))[1].state is RunState.SUCCEEDED
    assert (await known(engine)).fired == 1


async def test_a_backfill_of_a_schedule_counts_the_jobs_that_were_made_and_no_others(
    engine: Engine,
) -> None:
    await put(engine, new_schedule(), new_schedule("other"))
    await fire(engine, run_at(at(-8)), skips=[skip_of(at(-7), at(-7))])
    await _backfill(engine)
    past = [run_at(at(n), kind=RunKind.BACKFILL, run_at_ms=at(0)) for n in (-8, -7, -6, -5)]
    last = run_at(at(-4), kind=RunKind.BACKFILL, run_at_ms=at(0))

    await fire(engine, *past[:3], run_at(at(1)), backfill=replace(WANTED, cursor_ms=at(-6)))

    found = (await known(engine)).backfill
    assert found == replace(WANTED, cursor_ms=at(-6), made=2)
    assert found is not None
    other = plan_of(await known(engine, "other"), run_at(at(1), schedule="other"))
    further = replace(found, cursor_ms=at(-4))
    plan = plan_of(await known(engine), past[3], last, backfill=further)
    said = await engine.schedules.fire([other, plan])
    assert {one.answer for one in said} == {FireAnswer.DONE}
    assert (await known(engine)).backfill == replace(further, made=4)
    assert (await known(engine, "other")).backfill is None
    before = await known(engine)
    await fire(engine, *past, last)
    assert await known(engine) == replace(before, due_ms=None), "all of them have had their run"


async def test_a_run_that_is_due_does_not_take_the_place_of_a_skipped_one_of_its_schedule(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, skips=[skip_of(at(1), at(1))])

    said = await fire(engine, run_at(at(1)))

    assert (said.started, said.skipped) == ((), 0)
    assert await engine.inspector.job(run_at(at(1)).job.id) is None
    assert [one.state for one in await runs_of(engine)] == [RunState.SKIPPED]


@pytest.mark.parametrize("note", ["r" * 1_001, "two\nlines", "a\x00b"])
async def test_a_backfill_of_a_schedule_with_a_note_that_cannot_be_shown_is_refused(
    engine: Engine, note: str
) -> None:
    await put(engine, new_schedule())

    with pytest.raises(InvalidInput):
        await engine.schedules.backfill(NIGHTLY, WANTED, by=note, reason="")
    with pytest.raises(InvalidInput):
        await engine.schedules.backfill(NIGHTLY, WANTED, by="alice", reason=note)

    assert (await known(engine)).backfill is None
