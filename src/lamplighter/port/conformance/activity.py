"""Activity: what workers counted, minute by minute, and what waits as a whole."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.activity import MINUTE_MS, MOST_MINUTES, NOTHING, Minute, Tally, minute_of
from lamplighter.model.errors import InvalidInput
from lamplighter.port.activity import Oldest
from lamplighter.port.conformance.builders import claim_one, new_job, running, spread, submit
from lamplighter.port.conformance.schedule_builders import at, new_schedule, put
from lamplighter.port.values import QueueSettings, TenantSettings

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "test", "reason": "to see"}
SOME = Tally(
    started=9,
    succeeded=5,
    failed=1,
    retried=2,
    snoozed=3,
    cancelled=4,
    rescued=6,
    stale=7,
    lags=tuple(range(14)),
)


async def present(engine: Engine) -> Tally:
    (minute,) = await engine.activity.activity(1)
    return minute.tally


# ── tally ────────────────────────────────────────────────────────────────────────────────────


async def test_a_tally_is_kept_as_it_was_counted(engine: Engine, clock: VirtualClock) -> None:
    assert await engine.activity.tally("w", 1, SOME)

    assert await engine.activity.activity(1) == [Minute(minute_of(clock.now_ms()), SOME)]


async def test_tallies_of_all_workers_are_added_up(engine: Engine) -> None:
    await engine.activity.tally("w1", 1, SOME)
    await engine.activity.tally("w1", 2, Tally(started=1))
    await engine.activity.tally("w2", 1, Tally(started=1, stale=1, lags=(1,) * 14))

    found = await present(engine)

    assert (found.started, found.stale) == (11, 8)
    assert found.lags == tuple(range(1, 15))
    assert replace(found, started=9, stale=7, lags=SOME.lags) == SOME


async def test_a_repeated_tally_counts_once(engine: Engine) -> None:
    first = await engine.activity.tally("w", 1, SOME)
    again = await engine.activity.tally("w", 1, SOME)

    assert (first, again) == (True, False)
    assert await present(engine) == SOME


async def test_a_tally_below_the_last_is_left_out(engine: Engine) -> None:
    await engine.activity.tally("w", 7, SOME)

    assert not await engine.activity.tally("w", 6, SOME)
    assert await engine.activity.tally("w", 9, NOTHING)
    assert await present(engine) == SOME


async def test_a_tally_repeated_in_the_next_minute_counts_once(
    engine: Engine, clock: VirtualClock
) -> None:
    await engine.activity.tally("w", 1, SOME)
    clock.advance(ms=MINUTE_MS)

    assert not await engine.activity.tally("w", 1, SOME)

    assert [minute.tally for minute in await engine.activity.activity(2)] == [SOME, NOTHING]


async def test_large_counts_stay_exact(engine: Engine) -> None:
    many = Tally(started=2**52, lags=(2**52,) + (0,) * 13)
    await engine.activity.tally("w1", 1, many)
    await engine.activity.tally("w2", 1, Tally(started=1))

    found = await present(engine)

    assert (found.started, found.lags[0]) == (2**52 + 1, 2**52)


async def test_tallies_at_once_are_all_counted(engine: Engine) -> None:
    one = Tally(started=1, lags=(0, 1) + (0,) * 12)
    for number in (1, 2):
        await asyncio.gather(*(engine.activity.tally(f"w{n}", number, one) for n in range(8)))

    found = await present(engine)

    assert (found.started, found.lags[1]) == (16, 16)


# ── activity ─────────────────────────────────────────────────────────────────────────────────


async def test_minutes_come_oldest_first_and_none_is_left_out(
    engine: Engine, clock: VirtualClock
) -> None:
    begun = minute_of(clock.now_ms())
    await engine.activity.tally("w", 1, Tally(started=1))
    clock.advance(ms=2 * MINUTE_MS)
    await engine.activity.tally("w", 2, Tally(started=2))

    found = await engine.activity.activity(4)

    assert [minute.at_ms for minute in found] == [begun + n * MINUTE_MS for n in (-1, 0, 1, 2)]
    assert [minute.tally.started for minute in found] == [0, 1, 0, 2]


async def test_only_the_minutes_asked_for_are_given(engine: Engine, clock: VirtualClock) -> None:
    await engine.activity.tally("w", 1, SOME)
    clock.advance(ms=3 * MINUTE_MS)

    assert [minute.tally for minute in await engine.activity.activity(3)] == [NOTHING] * 3
    assert (await engine.activity.activity(4))[0].tally == SOME


async def test_a_store_in_which_nothing_happened_has_empty_minutes(engine: Engine) -> None:
    found = await engine.activity.activity(MOST_MINUTES)

    assert len(found) == MOST_MINUTES
    assert not any(minute.tally for minute in found)


@pytest.mark.parametrize("minutes", [0, -1, MOST_MINUTES + 1])
async def test_more_or_fewer_minutes_than_are_kept_are_refused(
    engine: Engine, minutes: int
) -> None:
    with pytest.raises(InvalidInput):
        await engine.activity.activity(minutes)


async def test_a_minute_is_kept_for_a_day(engine: Engine, clock: VirtualClock) -> None:
    await engine.activity.tally("w", 1, SOME)
    clock.advance(ms=(MOST_MINUTES - 1) * MINUTE_MS)
    await engine.activity.tally("w", 2, Tally(started=1))

    assert (await engine.activity.activity(MOST_MINUTES))[0].tally == SOME


async def test_minutes_and_workers_of_a_day_ago_are_forgotten(
    engine: Engine, clock: VirtualClock
) -> None:
    await engine.activity.tally("old", 5, SOME)
    clock.advance(ms=(MOST_MINUTES + 1) * MINUTE_MS)
    await engine.activity.tally("new", 1, Tally(started=1))

    # Only a forgotten worker may begin anew, and only a forgotten minute is empty when it is
    # there again.
    assert await engine.activity.tally("old", 1, Tally(started=1))
    clock.advance(ms=-2 * MINUTE_MS)
    assert [m.tally for m in await engine.activity.activity(MOST_MINUTES)] == [NOTHING] * 1_440


# ── standing ─────────────────────────────────────────────────────────────────────────────────


async def test_an_empty_store_stands_still(engine: Engine, clock: VirtualClock) -> None:
    found = await engine.activity.standing()

    assert (found.at_ms, found.held, found.oldest) == (clock.now_ms(), 0, None)
    assert found.fire_lag_ms == 0


async def test_the_oldest_job_is_the_one_due_for_longest(
    engine: Engine, clock: VirtualClock
) -> None:
    later = new_job(queue="a", delay_ms=2_000)
    first = new_job(queue="b", delay_ms=1_000, tenant="t")
    never = new_job(queue="a", delay_ms=60_000)
    await submit(engine, *spread([later, first, never]))
    clock.advance(seconds=5)

    found = (await engine.activity.standing()).oldest

    assert found is not None
    assert (found.queue, found.due_ms) == ("b", 4_000)
    known = await engine.inspector.job(found.id)
    assert known is not None
    assert (known.job.tenant, known.job.queue) == ("t", "b")


async def test_what_is_not_due_is_not_old(engine: Engine) -> None:
    await submit(engine, new_job(delay_ms=1_000))

    assert (await engine.activity.standing()).oldest is None


async def test_what_runs_or_is_held_is_not_old(engine: Engine, clock: VirtualClock) -> None:
    await running(engine)
    await submit(engine, new_job(held=True))
    await submit(engine, new_job(tenant="quiet"))
    await engine.settings.put_tenant("quiet", TenantSettings(held=True), **BY)
    clock.advance(seconds=5)

    assert (await engine.activity.standing()).oldest is None


async def test_a_job_of_a_held_queue_grows_old(engine: Engine, clock: VirtualClock) -> None:
    (job_id,) = await submit(engine, new_job(queue="q"))
    await engine.settings.put_queue("q", QueueSettings(held=True), **BY)
    clock.advance(seconds=5)

    assert (await engine.activity.standing()).oldest == Oldest(job_id, "q", 5_000)


async def test_held_jobs_are_counted_while_they_wait(engine: Engine) -> None:
    taken = await running(engine)
    waiting = await submit(engine, *spread([new_job(), new_job(), new_job()]))
    await submit(engine, new_job(held=True))
    await engine.jobs.hold([taken.job.id, *waiting[:2]], **BY)
    await engine.jobs.cancel(waiting[:1], **BY)

    assert (await engine.activity.standing()).held == 2


async def test_a_job_that_is_taken_makes_the_next_one_oldest(
    engine: Engine, clock: VirtualClock
) -> None:
    await submit(engine, new_job())
    clock.advance(seconds=1)
    (second,) = await submit(engine, new_job())
    clock.advance(seconds=1)
    await claim_one(engine)

    assert (await engine.activity.standing()).oldest == Oldest(second, "default", 1_000)


async def test_a_schedule_that_nobody_looks_at_is_late(engine: Engine, clock: VirtualClock) -> None:
    await put(engine, new_schedule(due_ms=at(1)))
    assert (await engine.activity.standing()).fire_lag_ms == 0
    clock.set(at(1) + 7_000)

    assert (await engine.activity.standing()).fire_lag_ms == 7_000
