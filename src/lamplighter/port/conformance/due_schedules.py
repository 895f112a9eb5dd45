"""Due schedules: what is to be planned now is handed out, longest due first, one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.port.conformance.builders import claim, completed, settle_one
from lamplighter.port.conformance.schedule_builders import (
    BY,
    MINUTE,
    NIGHTLY,
    at,
    backfill_of,
    dead,
    due_ids,
    end,
    fire,
    known,
    look,
    neighbours,
    new_schedule,
    put,
    run_at,
)
from lamplighter.port.schedules import DueSchedule, DueSchedules, RunKind

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine


async def test_a_schedule_is_handed_out_from_the_instant_it_is_due(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    clock.advance(ms=MINUTE - 1)
    assert await due_ids(engine) == []

    clock.advance(ms=1)

    assert await look(engine, lease_ms=20_000) == DueSchedules(
        schedules=[DueSchedule(record=await known(engine), backfilling=0)],
        now_ms=clock.now_ms(),
        poll_after_ms=20_000,
        oldest_ms=0,
    )


async def test_a_schedule_without_a_next_occurrence_is_never_due(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule(due_ms=None))
    clock.advance(seconds=1_000_000)

    assert await look(engine) == DueSchedules(
        schedules=[], now_ms=clock.now_ms(), poll_after_ms=None
    )


async def test_the_record_of_a_schedule_that_is_handed_out_says_when_it_was_due(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    clock.advance(ms=2 * MINUTE)

    (found,) = (await look(engine)).schedules

    assert found.record.due_ms == at(1)
    assert (await known(engine)).due_ms == at(1)


async def test_schedules_that_have_been_due_longest_are_handed_out_first(
    engine: Engine, clock: VirtualClock
) -> None:
    one, two, three, four = neighbours(engine, 4)
    await put(
        engine,
        new_schedule(one, due_ms=at(3)),
        new_schedule(two, due_ms=at(1)),
        new_schedule(three, due_ms=at(9)),
        new_schedule(four, due_ms=at(2)),
    )
    clock.advance(ms=4 * MINUTE)

    assert await due_ids(engine) == [two, four, one]


async def test_schedules_are_handed_out_newest_first_on_demand(
    engine: Engine, clock: VirtualClock
) -> None:
    one, two, three, four = neighbours(engine, 4)
    await put(
        engine,
        new_schedule(one, due_ms=at(3)),
        new_schedule(two, due_ms=at(1)),
        new_schedule(three, due_ms=at(9)),
        new_schedule(four, due_ms=at(2)),
    )
    clock.advance(ms=4 * MINUTE)

    assert await due_ids(engine, 2, newest_first=True) == [one, four]
    assert await due_ids(engine, 2, newest_first=True) == [two]


async def test_no_more_schedules_than_the_limit_are_handed_out_and_more_are_told(
    engine: Engine, clock: VirtualClock
) -> None:
    names = neighbours(engine, 5)
    await put(engine, *(new_schedule(name, due_ms=at(n)) for n, name in enumerate(names)))
    clock.advance(ms=9 * MINUTE)

    first, second, third = [await look(engine, 2, lease_ms=5_000) for _ in range(3)]

    taken = [[one.record.id for one in part.schedules] for part in (first, second, third)]
    assert taken == [names[:2], names[2:4], names[4:]]
    assert [part.poll_after_ms for part in (first, second, third)] == [0, 0, 5_000]
    assert [part.oldest_ms for part in (first, second, third)] == [
        9 * MINUTE,
        7 * MINUTE,
        5 * MINUTE,
    ]


async def test_schedules_of_all_shards_are_handed_out_once_each(
    engine: Engine, clock: VirtualClock
) -> None:
    names = await put(engine, *(new_schedule(f"s{n}", due_ms=at(0)) for n in range(60)))
    clock.advance(seconds=1)

    taken: list[str] = []
    while True:
        found = await look(engine, 7)
        assert len(found.schedules) <= 7
        taken += [one.record.id for one in found.schedules]
        if found.poll_after_ms != 0:
            break

    assert sorted(taken) == sorted(names)
    assert found.poll_after_ms == 30_000


async def test_the_time_until_the_next_schedule_is_due_is_told(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, *(new_schedule(f"s{n}", due_ms=at(n)) for n in range(5, 40)))
    clock.advance(seconds=10)

    assert await look(engine) == DueSchedules(
        schedules=[], now_ms=clock.now_ms(), poll_after_ms=5 * MINUTE - 10_000
    )


async def test_a_schedule_is_not_handed_out_again_until_its_lease_has_ended(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule(due_ms=at(0)))
    assert await due_ids(engine, lease_ms=10_000) == [NIGHTLY]
    clock.advance(ms=9_999)
    assert await due_ids(engine) == []

    clock.advance(ms=1)

    assert await due_ids(engine) == [NIGHTLY]


async def test_a_schedule_is_handed_out_again_when_it_is_due_after_it_was_fired(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule(due_ms=at(0)))
    assert await due_ids(engine, lease_ms=3_600_000) == [NIGHTLY]
    await fire(engine, due_ms=at(1))

    clock.advance(ms=MINUTE)

    assert await due_ids(engine) == [NIGHTLY]


async def test_a_schedule_may_be_fired_by_who_had_it_although_its_lease_has_ended(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule(due_ms=at(0)))
    await due_ids(engine, lease_ms=1_000)
    clock.advance(seconds=60)

    said = await fire(engine, run_at(at(0.5)))

    assert said.started == (run_at(at(0.5)).job.id,)


async def test_a_schedule_is_due_when_one_of_its_jobs_has_failed(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    clock.advance(ms=MINUTE)
    await fire(engine, run_at(at(1)), due_ms=at(500))
    assert await due_ids(engine) == []

    await end(engine, dead)

    (found,) = (await look(engine)).schedules
    assert (found.record.id, found.record.due_ms) == (NIGHTLY, at(500))
    await fire(engine, due_ms=at(500))
    assert await due_ids(engine) == []


async def test_a_schedule_is_due_when_its_backfill_has_room(engine: Engine) -> None:
    await put(engine, new_schedule(due_ms=at(60)))
    wanted = backfill_of(at(-9), at(-1), limit=2)
    await engine.schedules.backfill(NIGHTLY, wanted, **BY)
    past = [run_at(at(n), kind=RunKind.BACKFILL) for n in (-8, -7)]
    (found,) = (await look(engine)).schedules
    assert (found.record.backfill, found.backfilling) == (wanted, 0)

    await fire(engine, *past, due_ms=at(60))
    assert await due_ids(engine) == []
    first, second = await claim(engine, 2)
    await settle_one(engine, completed(first))

    (found,) = (await look(engine)).schedules
    assert (found.record.id, found.backfilling) == (NIGHTLY, 1)
    await settle_one(engine, completed(second))
    (found,) = (await look(engine)).schedules
    assert found.backfilling == 0


async def test_only_jobs_of_a_schedules_backfill_count_as_backfilling(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule(due_ms=at(0)))
    await fire(engine, run_at(at(-2), kind=RunKind.BACKFILL), run_at(at(0)), due_ms=clock.now_ms())

    (found,) = (await look(engine)).schedules

    assert found.backfilling == 1


async def test_held_schedules_are_not_due_and_nobody_waits_for_them(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule("held", due_ms=at(0)), new_schedule("soon", due_ms=at(1)))
    await engine.schedules.hold_schedules(["held", "soon"], **BY)
    clock.advance(seconds=5)

    assert await look(engine) == DueSchedules(
        schedules=[], now_ms=clock.now_ms(), poll_after_ms=None
    )


@pytest.mark.parametrize("newest_first", [False, True])
async def test_many_schedules_at_rest_do_not_hide_the_one_that_is_due(
    engine: Engine, clock: VirtualClock, *, newest_first: bool
) -> None:
    resting = [new_schedule(f"rest {n}", due_ms=at(60 + n) if n % 2 else None) for n in range(300)]
    await put(engine, *resting, new_schedule())
    clock.advance(ms=MINUTE)

    assert await due_ids(engine, 1, newest_first=newest_first) == [NIGHTLY]
