"""Hold, unhold and delete schedules: what operators do to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import JobState, Mark, Status
from lamplighter.port.conformance.builders import (
    claim_one,
    completed,
    handed_out,
    record,
    settle_one,
)
from lamplighter.port.conformance.schedule_builders import (
    BY,
    NIGHTLY,
    OTHERS,
    at,
    dead,
    due_ids,
    end,
    fire,
    known,
    new_schedule,
    put,
    run_at,
    runs_of,
    states_of,
    wishes,
)
from lamplighter.port.schedules import (
    Overlap,
    Put,
    PutAnswer,
    RunKind,
    RunState,
    ScheduleAnswer,
    ScheduleChanged,
    ScheduleFilter,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

DONE, ALREADY, UNKNOWN = ScheduleAnswer.DONE, ScheduleAnswer.ALREADY, ScheduleAnswer.UNKNOWN
VERBS = ["hold_schedules", "unhold_schedules", "delete_schedules"]


def _verb(engine: Engine, name: str) -> Callable[..., Awaitable[list[ScheduleChanged]]]:
    return getattr(engine.schedules, name)


# ── hold ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_held_schedule_says_who_did_it_and_why(engine: Engine, clock: VirtualClock) -> None:
    await put(engine, new_schedule())
    clock.advance(seconds=5)

    said = await engine.schedules.hold_schedules([NIGHTLY], by="alice", reason="not today")

    assert said == [ScheduleChanged(NIGHTLY, DONE)]
    told = await known(engine)
    assert told.hold == Mark(by="alice", reason="not today", at_ms=clock.now_ms())
    assert told.version == 2


async def test_a_held_schedule_is_not_due_until_it_is_unheld(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    await engine.schedules.hold_schedules([NIGHTLY], **BY)
    clock.advance(seconds=3_600)
    assert await due_ids(engine) == []

    assert wishes(await engine.schedules.unhold_schedules([NIGHTLY], **BY)) == [DONE]

    assert await due_ids(engine) == [NIGHTLY]


async def test_a_schedule_held_again_is_already_and_the_first_mark_stays(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    await engine.schedules.hold_schedules([NIGHTLY], **BY)
    before = await known(engine)
    clock.advance(seconds=5)

    said = await engine.schedules.hold_schedules([NIGHTLY], by="bob", reason="me too")

    assert wishes(said) == [ALREADY]
    assert await known(engine) == before


async def test_the_jobs_that_a_held_schedule_has_made_go_on(engine: Engine) -> None:
    await put(engine, new_schedule())
    first, second = [run_at(at(n), run_at_ms=at(0)) for n in (1, 2)]
    await fire(engine, first, second)
    running = await claim_one(engine)

    await engine.schedules.hold_schedules([NIGHTLY], **BY)

    assert await end(engine) == second.job.id
    assert (await settle_one(engine, completed(running))).state is JobState.SUCCEEDED
    assert await states_of(engine) == [RunState.SUCCEEDED] * 2
    assert await due_ids(engine) == []


# ── unhold ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("due_ms", [at(60), None])
async def test_an_unheld_schedule_is_due_now_whenever_it_was_due(
    engine: Engine, due_ms: int | None
) -> None:
    await put(engine, new_schedule(due_ms=due_ms))
    await engine.schedules.hold_schedules([NIGHTLY], **BY)

    await engine.schedules.unhold_schedules([NIGHTLY], **BY)

    assert await due_ids(engine) == [NIGHTLY]
    told = await known(engine)
    assert (told.hold, told.version) == (None, 3)


async def test_the_failures_of_an_unheld_schedule_are_at_zero(engine: Engine) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1), run_at_ms=at(0)))
    await end(engine, dead)
    await engine.schedules.hold_schedules([NIGHTLY], **BY)
    assert (await known(engine)).failures == 1

    await engine.schedules.unhold_schedules([NIGHTLY], **BY)

    assert (await known(engine)).failures == 0


async def test_unhold_of_a_schedule_that_is_not_held_is_already_and_changes_nothing(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1), run_at_ms=at(0)))
    await end(engine, dead)
    await fire(engine, due_ms=at(9))
    before = await known(engine)

    assert wishes(await engine.schedules.unhold_schedules([NIGHTLY], **BY)) == [ALREADY]

    assert await known(engine) == before
    assert before.failures == 1
    assert await due_ids(engine) == []


async def test_a_schedule_keeps_all_but_hold_version_and_failures_when_it_is_unheld(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1)), due_ms=at(2))
    before, runs = await known(engine), await runs_of(engine)

    await engine.schedules.hold_schedules([NIGHTLY], **BY)
    await engine.schedules.unhold_schedules([NIGHTLY], **BY)

    after = await known(engine)
    assert after == replace(
        before, version=3, due_ms=after.due_ms, changed_at_ms=after.changed_at_ms
    )
    assert await runs_of(engine) == runs


# ── delete ───────────────────────────────────────────────────────────────────────────────────


async def test_a_deleted_schedule_is_gone_with_its_runs(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1)), run_at(at(2)), due_ms=at(3))

    said = await engine.schedules.delete_schedules([NIGHTLY], **BY)

    assert said == [ScheduleChanged(NIGHTLY, DONE)]
    assert await engine.schedules.schedule(NIGHTLY) is None
    assert await runs_of(engine) == []
    page = await engine.schedules.schedules(ScheduleFilter(), limit=9)
    assert (page.schedules, page.cursor) == ([], None)
    clock.advance(seconds=3_600)
    assert await due_ids(engine) == []


async def test_the_queued_jobs_of_a_deleted_schedule_are_cancelled_and_others_go_on(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    runs = [run_at(at(n), Overlap.QUEUE_ALL, run_at_ms=at(0)) for n in (1, 2, 3)]
    free = run_at(at(4), run_at_ms=at(0))
    past = run_at(at(-4), kind=RunKind.BACKFILL)
    await fire(engine, past, *runs, free)
    taken = await claim_one(engine)

    await engine.schedules.delete_schedules([NIGHTLY], by="alice", reason="not needed")

    for run in runs[1:]:
        found = await record(engine, run.job.id)
        assert found.state is JobState.CANCELLED
        assert found.cancel is not None
    assert (await record(engine, taken.job.id)).status is Status.RUNNING
    going_on = [run.job.id for run in (past, runs[0], free) if run.job.id != taken.job.id]
    assert await handed_out(engine, 9) == going_on


async def test_a_deleted_schedule_that_is_put_again_is_a_new_one(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1)), due_ms=at(2))
    await engine.schedules.hold_schedules([NIGHTLY], **BY)
    await engine.schedules.delete_schedules([NIGHTLY], **BY)
    clock.advance(seconds=5)

    said = await engine.schedules.put_schedules([new_schedule()], by="alice")

    assert said == [Put(NIGHTLY, PutAnswer.CREATED, 1)]
    told = await known(engine)
    assert (told.cursor_ms, told.created_at_ms) == (clock.now_ms(), clock.now_ms())
    assert (told.fired, told.last_job, told.last_due_ms, told.hold) == (0, None, None, None)
    assert await runs_of(engine) == []


async def test_a_job_of_a_deleted_schedule_that_was_put_again_says_nothing_to_the_new_one(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1), Overlap.SKIP, run_at_ms=at(0)))
    await engine.schedules.delete_schedules([NIGHTLY], **BY)
    await put(engine, new_schedule())
    before = await known(engine)

    await end(engine, dead)

    assert await known(engine) == before
    assert await runs_of(engine) == []
    assert await due_ids(engine) == []


# ── all three ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("verb", VERBS)
async def test_wishes_for_schedules_are_answered_in_order(engine: Engine, verb: str) -> None:
    await put(engine, *(new_schedule(f"s{n}") for n in range(20)))
    await engine.schedules.hold_schedules([f"s{n}" for n in range(0, 20, 2)], **BY)
    names = ["nobody", "s4", "s3", "s10", "stranger", "s7"]

    said = await _verb(engine, verb)(names, **BY)

    expected = {
        "hold_schedules": [UNKNOWN, ALREADY, DONE, ALREADY, UNKNOWN, DONE],
        "unhold_schedules": [UNKNOWN, DONE, ALREADY, DONE, UNKNOWN, ALREADY],
        "delete_schedules": [UNKNOWN, DONE, DONE, DONE, UNKNOWN, DONE],
    }[verb]
    assert said == [ScheduleChanged(*pair) for pair in zip(names, expected, strict=True)]


@pytest.mark.parametrize("verb", VERBS)
async def test_wishes_of_a_tenant_are_about_its_own_schedules(engine: Engine, verb: str) -> None:
    await put(engine, new_schedule("own", tenant="acme"), new_schedule("other", tenant="acme2"))
    if verb == "unhold_schedules":
        await engine.schedules.hold_schedules(["own"], **BY, tenant="acme")
        await engine.schedules.hold_schedules(["other"], **BY, tenant="acme2")
    before = await known(engine, "other", "acme2")

    said = await _verb(engine, verb)(["other", "own"], **BY, tenant="acme")

    assert wishes(said) == [UNKNOWN, DONE]
    assert await known(engine, "other", "acme2") == before


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("verb", VERBS)
async def test_what_is_no_tenant_has_no_schedules(engine: Engine, verb: str, other: str) -> None:
    await put(engine, new_schedule("own", tenant="acme"))
    before = await known(engine, "own", "acme")

    assert wishes(await _verb(engine, verb)(["own"], **BY, tenant=other)) == [UNKNOWN]

    assert await known(engine, "own", "acme") == before


async def test_queued_jobs_of_others_schedules_are_not_cancelled(engine: Engine) -> None:
    await put(engine, new_schedule(tenant="other"))
    first, second = (run_at(at(n), Overlap.QUEUE_ALL, tenant="other") for n in (1, 2))
    await fire(engine, first, second, tenant="other")

    said = await engine.schedules.delete_schedules([NIGHTLY], **BY, tenant="acme")

    assert wishes(said) == [UNKNOWN]
    assert (await record(engine, second.job.id)).state is JobState.WAITING
    assert len(await runs_of(engine, tenant="other")) == 2


@pytest.mark.parametrize(
    ("verb", "again"), list(zip(VERBS, [ALREADY, ALREADY, UNKNOWN], strict=True))
)
async def test_a_schedule_named_twice_is_answered_as_by_a_later_call(
    engine: Engine, verb: str, again: ScheduleAnswer
) -> None:
    await put(engine, new_schedule())
    if verb == "unhold_schedules":
        await engine.schedules.hold_schedules([NIGHTLY], **BY)

    assert wishes(await _verb(engine, verb)([NIGHTLY, NIGHTLY], **BY)) == [DONE, again]

    if verb != "delete_schedules":
        assert (await known(engine)).version == (2 if verb == "hold_schedules" else 3)


@pytest.mark.parametrize("verb", VERBS)
async def test_wishes_for_more_schedules_than_a_batch_are_refused(
    engine: Engine, verb: str
) -> None:
    await put(engine, new_schedule())
    before = await known(engine)

    with pytest.raises(InvalidInput):
        await _verb(engine, verb)([NIGHTLY] * (engine.capabilities.max_batch + 1), **BY)

    assert await known(engine) == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("note", ["r" * 1_001, "two\nlines", "a\x00b"])
async def test_wishes_for_schedules_with_a_note_that_cannot_be_shown_are_refused(
    engine: Engine, verb: str, note: str
) -> None:
    await put(engine, new_schedule())
    before = await known(engine)

    with pytest.raises(InvalidInput):
        await _verb(engine, verb)([NIGHTLY], by=note, reason="")
    with pytest.raises(InvalidInput):
        await _verb(engine, verb)([NIGHTLY], by="alice", reason=note)

    assert await known(engine) == before


@pytest.mark.parametrize("verb", VERBS)
async def test_wishes_for_no_schedules_are_answered_by_nothing(engine: Engine, verb: str) -> None:
    assert await _verb(engine, verb)([], **BY) == []
