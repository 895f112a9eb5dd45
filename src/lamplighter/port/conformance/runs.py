"""Reads: one schedule, lists of them by every filter, and the runs of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.port.conformance.builders import claim_one, completed, settle_one
from lamplighter.port.conformance.schedule_builders import (
    BY,
    NIGHTLY,
    at,
    end,
    fire,
    known,
    new_schedule,
    put,
    run_at,
    runs_of,
    skip_of,
    states_of,
)
from lamplighter.port.schedules import RunState, ScheduleFilter
from lamplighter.port.values import Retention

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.schedules import ScheduleRecord
    from lamplighter.port.store import Engine

EVERY = ScheduleFilter()
NAMES = ["A", "Z", "_b", "a", "a%", "a%c", "a*", "a_", "ab", "abc", "b", "ä", "äb", "\N{SNOWMAN}"]


async def _list(
    engine: Engine, which: ScheduleFilter = EVERY, *, limit: int = 100
) -> list[ScheduleRecord]:
    """List all pages, and check that none is too long."""
    found: list[ScheduleRecord] = []
    cursor: str | None = None
    while True:
        page = await engine.schedules.schedules(which, limit=limit, cursor=cursor)
        assert len(page.schedules) <= limit
        found += page.schedules
        if (cursor := page.cursor) is None:
            return found


async def _names(engine: Engine, which: ScheduleFilter = EVERY, *, limit: int = 100) -> list[str]:
    return [one.id for one in await _list(engine, which, limit=limit)]


# ── schedules ────────────────────────────────────────────────────────────────────────────────


async def test_a_schedule_that_is_not_there_is_none(engine: Engine) -> None:
    await put(engine, new_schedule("nightly 2"))

    assert await engine.schedules.schedule(NIGHTLY) is None


async def test_an_empty_store_lists_no_schedules(engine: Engine) -> None:
    page = await engine.schedules.schedules(EVERY, limit=10)

    assert (page.schedules, page.cursor) == ([], None)


async def test_schedules_of_a_tenant_are_listed_by_id_bytewise(engine: Engine) -> None:
    await put(engine, *(new_schedule(name) for name in reversed(NAMES)))

    found = await _list(engine)

    assert [one.id for one in found] == NAMES == sorted(NAMES, key=str.encode)
    assert found == [await known(engine, name) for name in NAMES]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 14])
async def test_schedules_are_listed_in_pages_without_gaps_or_repeats(
    engine: Engine, limit: int
) -> None:
    await put(engine, *(new_schedule(name) for name in NAMES))

    assert await _names(engine, limit=limit) == NAMES


async def test_schedules_put_and_deleted_between_two_pages_do_not_disturb_the_rest(
    engine: Engine,
) -> None:
    await put(engine, *(new_schedule(f"s{n}") for n in range(1, 9)))
    seen: list[str] = []
    cursor: str | None = None
    while len(seen) < 4:
        page = await engine.schedules.schedules(EVERY, limit=4 - len(seen), cursor=cursor)
        seen, cursor = seen + [one.id for one in page.schedules], page.cursor
    assert seen == ["s1", "s2", "s3", "s4"]

    await put(engine, new_schedule("s0"), new_schedule("s9"))
    await engine.schedules.delete_schedules(["s4", "s6"], **BY)

    while cursor is not None:
        page = await engine.schedules.schedules(EVERY, limit=4, cursor=cursor)
        seen, cursor = seen + [one.id for one in page.schedules], page.cursor
    assert seen[4:] == ["s5", "s7", "s8", "s9"]


async def test_schedules_are_found_by_tenants_and_types(engine: Engine) -> None:
    await put(
        engine,
        new_schedule("1", tenant="red", type="mail"),
        new_schedule("2", tenant="red", type="scan"),
        new_schedule("3", tenant="blue", type="mail"),
        new_schedule("4", tenant="Red", type="Mail"),
    )

    assert await _names(engine, ScheduleFilter(tenants=("red",))) == ["1", "2"]
    assert await _names(engine, ScheduleFilter(tenants=("red", "blue"))) == ["3", "1", "2"]
    assert await _names(engine, ScheduleFilter(types=("mail",))) == ["3", "1"]
    assert await _names(engine, ScheduleFilter(types=("mail", "scan"))) == ["3", "1", "2"]
    assert await _names(engine, ScheduleFilter(tenants=("green",))) == []


@pytest.mark.parametrize("prefix", ["a", "a%", "a_", "a*", "ab", "ä", "_", "%", "A", "abcd", ""])
async def test_schedules_are_found_by_how_their_ids_begin(engine: Engine, prefix: str) -> None:
    await put(engine, *(new_schedule(name) for name in NAMES))

    found = await _names(engine, ScheduleFilter(prefix=prefix), limit=2)

    assert found == [name for name in NAMES if name.startswith(prefix)]


async def test_schedules_are_found_by_whether_they_are_held(engine: Engine) -> None:
    await put(engine, *(new_schedule(f"{n}") for n in range(1, 7)))
    await engine.schedules.hold_schedules(["2", "3", "5"], **BY)
    await engine.schedules.unhold_schedules(["3"], **BY)
    await fire(engine, schedule="6", hold="too many have died")

    assert await _names(engine, ScheduleFilter(held=True)) == ["2", "5", "6"]
    assert await _names(engine, ScheduleFilter(held=False)) == ["1", "3", "4"]
    assert await _names(engine, ScheduleFilter(held=None)) == ["1", "2", "3", "4", "5", "6"]


async def test_schedules_planned_with_other_time_zone_data_are_found(engine: Engine) -> None:
    await put(
        engine,
        new_schedule("1", zones="2025a"),
        new_schedule("2", zones="2025b"),
        new_schedule("3", zones=""),
        new_schedule("4", zones="2025a"),
    )
    await fire(engine, schedule="4", zones="2025b")

    assert await _names(engine, ScheduleFilter(zones_not="2025b")) == ["1", "3"]
    assert await _names(engine, ScheduleFilter(zones_not="")) == ["1", "2", "4"]
    assert await _names(engine, ScheduleFilter(zones_not=None)) == ["1", "2", "3", "4"]


async def test_schedules_must_match_all_that_is_asked_for(engine: Engine) -> None:
    for number in range(64):
        bits = [bool(number >> bit & 1) for bit in range(5)]
        name = ("x" if bits[2] else "y") + f"{number:02}"
        wanted = new_schedule(
            name,
            tenant="red" if bits[0] else "blue",
            type="mail" if bits[1] else "scan",
            zones="old" if bits[3] else "new",
        )
        await put(engine, wanted)
        if bits[4]:
            await engine.schedules.hold_schedules([name], **BY, tenant=wanted.tenant)
    which = ScheduleFilter(
        tenants=("red", "green"), types=("mail",), prefix="x", held=True, zones_not="new"
    )

    assert await _names(engine, which, limit=3) == ["x31", "x63"]


async def test_a_cursor_that_no_listing_of_a_schedules_runs_gave_is_refused(engine: Engine) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1)))

    with pytest.raises(InvalidInput):
        await engine.schedules.runs(NIGHTLY, limit=10, cursor="nonsense")


# ── runs ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
async def test_the_runs_of_a_schedule_are_listed_in_pages_the_latest_due_first(
    engine: Engine, limit: int
) -> None:
    await put(engine, new_schedule(), new_schedule("other"))
    await fire(engine, run_at(at(3)), run_at(at(4)), skips=[skip_of(at(2), at(2))])
    await fire(engine, run_at(at(1)), skips=[skip_of(at(6), at(7), count=2)])
    await fire(engine, run_at(at(5), schedule="other"), schedule="other")

    found: list[int] = []
    cursor: str | None = None
    while True:
        page = await engine.schedules.runs(NIGHTLY, limit=limit, cursor=cursor)
        assert len(page.runs) <= limit
        assert {run.schedule for run in page.runs} <= {NIGHTLY}
        found += [run.due_ms for run in page.runs]
        if (cursor := page.cursor) is None:
            break

    assert found == [at(n) for n in (7, 4, 3, 2, 1)]


async def test_a_schedule_without_runs_and_an_unknown_one_list_none(engine: Engine) -> None:
    await put(engine, new_schedule())

    for name in (NIGHTLY, "nobody"):
        page = await engine.schedules.runs(name, limit=10)
        assert (page.runs, page.cursor) == ([], None)


async def test_a_run_of_a_schedule_tells_when_its_job_was_handed_out_and_when_it_ended(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1), run_at_ms=at(0)))
    made = clock.now_ms()
    (run,) = await runs_of(engine)
    assert (run.at_ms, run.started_at_ms, run.finished_at_ms) == (made, None, None)
    clock.advance(seconds=3)

    taken = await claim_one(engine)
    (run,) = await runs_of(engine)
    assert (run.at_ms, run.started_at_ms, run.finished_at_ms) == (made, made + 3_000, None)
    clock.advance(seconds=4)
    await settle_one(engine, completed(taken))

    (run,) = await runs_of(engine)
    assert (run.at_ms, run.started_at_ms) == (made, made + 3_000)
    assert run.finished_at_ms == made + 7_000


async def test_a_run_of_a_schedule_outlives_its_job(engine: Engine, clock: VirtualClock) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1), run_at_ms=at(0)), run_at(at(2), run_at_ms=at(0)))
    purged, pruned = await end(engine), await end(engine)
    before = [(run.job_id, run.state, run.finished_at_ms) for run in await runs_of(engine)]

    await engine.jobs.purge([purged], **BY)
    clock.advance(seconds=16 * 60)
    await engine.jobs.prune(Retention(finished_ms=0, finished_count=0), 100)

    assert await engine.inspector.job(pruned) is None
    after = await runs_of(engine)
    assert [(run.job_id, run.state, run.finished_at_ms) for run in after] == before
    assert [run.started_at_ms for run in after] == [None, None]
    assert await states_of(engine) == [RunState.SUCCEEDED] * 2
