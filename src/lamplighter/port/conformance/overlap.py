"""Overlap: what becomes of an occurrence while the run before it has not ended, as a table."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pytest

from lamplighter.model.job import JobState, Status
from lamplighter.port.conformance.builders import (
    claim_one,
    completed,
    failed,
    handed_out,
    record,
    settle_one,
)
from lamplighter.port.conformance.schedule_builders import (
    BY,
    NIGHTLY,
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
    wanted_run,
)
from lamplighter.port.schedules import BEHIND_A_RUN, Overlap, RunKind, RunState

if TYPE_CHECKING:
    from lamplighter.port.schedules import Run
    from lamplighter.port.store import Engine

SKIP, ALLOW, QUEUE_ONE = Overlap.SKIP, Overlap.ALLOW, Overlap.QUEUE_ONE
QUEUE_ALL, CANCEL_RUNNING = Overlap.QUEUE_ALL, Overlap.CANCEL_RUNNING
QUEUED, STARTED, SKIPPED = RunState.QUEUED, RunState.STARTED, RunState.SKIPPED
SUCCEEDED, CANCELLED = RunState.SUCCEEDED, RunState.CANCELLED
EARLY = at(0)
"""When the jobs may run, so that a test can claim them."""


class Cell(NamedTuple):
    """What is expected of the runs (active, queued before, new) and of the active job."""

    runs: tuple[RunState, ...]
    reason: str | None = None
    """Of the new run."""
    active: Status | None = None
    """Of the active job; None: gone."""


def _going_on(status: Status, state: RunState, cancelled: Status) -> dict[Overlap, Cell]:
    """What is expected while the active run is going on and none is queued."""
    end = RunState.CANCELLED if cancelled is Status.CANCELLED else state
    return {
        SKIP: Cell((state, SKIPPED), "overlap", status),
        ALLOW: Cell((state, STARTED), None, status),
        QUEUE_ONE: Cell((state, QUEUED), None, status),
        QUEUE_ALL: Cell((state, QUEUED), None, status),
        CANCEL_RUNNING: Cell((end, QUEUED), None, cancelled),
    }


RUNNING, CANCELLING = Status.RUNNING, Status.CANCELLING
OVER = Status.SUCCEEDED
TABLE: dict[str, dict[Overlap, Cell]] = {
    "no run before": {policy: Cell((STARTED,)) for policy in Overlap},
    "waiting": _going_on(Status.READY, STARTED, Status.CANCELLED),
    "running": _going_on(RUNNING, STARTED, CANCELLING),
    "retrying": _going_on(Status.RETRYING, STARTED, Status.CANCELLED),
    "held": _going_on(Status.PAUSED, STARTED, Status.CANCELLED),
    "cancelling": _going_on(CANCELLING, STARTED, CANCELLING),
    "replayed": _going_on(Status.READY, STARTED, Status.CANCELLED),
    "succeeded": {policy: Cell((SUCCEEDED, STARTED), None, OVER) for policy in Overlap},
    "dead": {policy: Cell((RunState.DEAD, STARTED), None, Status.DEAD) for policy in Overlap},
    "cancelled": {p: Cell((CANCELLED, STARTED), None, Status.CANCELLED) for p in Overlap},
    "gone": {policy: Cell((SUCCEEDED, STARTED)) for policy in Overlap},
    "running, one queued": {
        SKIP: Cell((STARTED, QUEUED, SKIPPED), "overlap", RUNNING),
        ALLOW: Cell((STARTED, QUEUED, STARTED), None, RUNNING),
        QUEUE_ONE: Cell((STARTED, QUEUED, SKIPPED), "queue_full", RUNNING),
        QUEUE_ALL: Cell((STARTED, QUEUED, QUEUED), None, RUNNING),
        CANCEL_RUNNING: Cell((STARTED, SKIPPED, QUEUED), None, CANCELLING),
    },
    "running, two queued": {
        SKIP: Cell((STARTED, QUEUED, QUEUED, SKIPPED), "overlap", RUNNING),
        ALLOW: Cell((STARTED, QUEUED, QUEUED, STARTED), None, RUNNING),
        QUEUE_ONE: Cell((STARTED, QUEUED, QUEUED, SKIPPED), "queue_full", RUNNING),
        QUEUE_ALL: Cell((STARTED, QUEUED, QUEUED, QUEUED), None, RUNNING),
        CANCEL_RUNNING: Cell((STARTED, SKIPPED, SKIPPED, QUEUED), None, CANCELLING),
    },
    "succeeded, one queued": {
        SKIP: Cell((SUCCEEDED, STARTED, SKIPPED), "overlap", OVER),
        ALLOW: Cell((SUCCEEDED, STARTED, STARTED), None, OVER),
        QUEUE_ONE: Cell((SUCCEEDED, STARTED, QUEUED), None, OVER),
        QUEUE_ALL: Cell((SUCCEEDED, STARTED, QUEUED), None, OVER),
        CANCEL_RUNNING: Cell((SUCCEEDED, CANCELLED, QUEUED), None, OVER),
    },
    "succeeded, two queued": {
        SKIP: Cell((SUCCEEDED, STARTED, QUEUED, SKIPPED), "overlap", OVER),
        ALLOW: Cell((SUCCEEDED, STARTED, QUEUED, STARTED), None, OVER),
        QUEUE_ONE: Cell((SUCCEEDED, STARTED, QUEUED, SKIPPED), "queue_full", OVER),
        QUEUE_ALL: Cell((SUCCEEDED, STARTED, QUEUED, QUEUED), None, OVER),
        CANCEL_RUNNING: Cell((SUCCEEDED, CANCELLED, SKIPPED, QUEUED), None, OVER),
    },
    "gone, one queued": {
        SKIP: Cell((SUCCEEDED, STARTED, SKIPPED), "overlap"),
        ALLOW: Cell((SUCCEEDED, STARTED, STARTED)),
        QUEUE_ONE: Cell((SUCCEEDED, STARTED, QUEUED)),
        QUEUE_ALL: Cell((SUCCEEDED, STARTED, QUEUED)),
        CANCEL_RUNNING: Cell((SUCCEEDED, CANCELLED, QUEUED)),
    },
}
CELLS = [(before, policy) for before, row in TABLE.items() for policy in row]


def _run(number: int, overlap: Overlap, kind: RunKind = RunKind.DUE) -> Run:
    return run_at(at(number), overlap, kind=kind, run_at_ms=EARLY)


async def _prepare(engine: Engine, before: str) -> list[Run]:
    """Bring a schedule into the situation; gives its runs, the active one first."""
    await put(engine, new_schedule())
    if before == "no run before":
        return []
    active, _, queue = before.partition(", ")
    number = {"": 0, "one queued": 1, "two queued": 2}[queue]
    runs = [_run(n, QUEUE_ALL) for n in range(1, number + 2)]
    await fire(engine, *runs)
    job_id = runs[0].job.id
    match active:
        case "waiting":
            pass
        case "held":
            await engine.jobs.hold([job_id], **BY)
        case "cancelled":
            await engine.jobs.cancel([job_id], **BY)
        case "running":
            await claim_one(engine)
        case "cancelling":
            await claim_one(engine)
            await engine.jobs.cancel([job_id], **BY)
        case "retrying":
            await end(engine, failed)
        case _:
            await end(engine, dead if active == "dead" else completed)
    if active == "replayed":
        await engine.jobs.replay([job_id], **BY)
    if active == "gone":
        await engine.jobs.purge([job_id], **BY)
    return runs


async def _expect(engine: Engine, cell: Cell, runs: list[Run]) -> None:
    """Runs and jobs are as the table says."""
    found = await runs_of(engine)
    assert [one.state for one in found] == list(cell.runs)
    assert found[-1].reason == cell.reason
    for one in found[1:-1]:
        assert one.reason == ("replaced" if one.state is SKIPPED else None)
    if cell.active is not None:
        assert (await record(engine, runs[0].job.id)).status is cell.active
    for one, run in zip(found[1:], runs[1:], strict=True):
        job = await engine.inspector.job(run.job.id)
        status = None if job is None else job.status
        if one.state is SKIPPED:
            assert status in {None, Status.CANCELLED}
        else:
            expected = {QUEUED: Status.PAUSED, STARTED: Status.READY}
            assert status is expected.get(one.state, Status.CANCELLED)
            assert one.job_id == run.job.id


@pytest.mark.parametrize(("before", "policy"), CELLS)
async def test_an_occurrence_of_a_schedule_is_judged_by_the_run_before_it(
    engine: Engine, before: str, policy: Overlap
) -> None:
    runs = await _prepare(engine, before)
    cell, counted = TABLE[before][policy], await known(engine)
    new = _run(9, policy)

    said = await fire(engine, new)

    await _expect(engine, cell, [*runs, new] if runs else [new])
    told = await known(engine)
    got_job = cell.runs[-1] is not SKIPPED
    skipped = cell.runs.count(SKIPPED)
    assert (said.queued, said.skipped) == (cell.runs[-1] is QUEUED, skipped)
    assert (told.fired, told.skipped) == (counted.fired + got_job, counted.skipped + skipped)
    begun = {new.job.id} if cell.runs[-1] is STARTED else set[str]()
    if "succeeded, " in before or "gone, " in before:
        begun |= {runs[1].job.id} if cell.runs[1] is STARTED else set()
    assert (set(said.started), len(said.started)) == (begun, len(begun))


@pytest.mark.parametrize(("before", "policy"), CELLS)
async def test_a_trigger_of_a_schedule_is_judged_by_the_run_before_it(
    engine: Engine, before: str, policy: Overlap
) -> None:
    runs = await _prepare(engine, before)
    cell, wanted = TABLE[before][policy], wanted_run(policy)
    before_it = [run.due_ms for run in await runs_of(engine)]

    said = await engine.schedules.trigger(NIGHTLY, wanted, **BY)

    made = [one for one in await runs_of(engine) if one.due_ms not in before_it]
    assert [(one.kind, one.state, one.reason) for one in made] == [
        (RunKind.TRIGGER, cell.runs[-1], cell.reason)
    ]
    got_job = cell.runs[-1] is not SKIPPED
    assert (said.state, said.job_id) == (cell.runs[-1], wanted.job.id if got_job else None)
    others = [one.state for one in await runs_of(engine) if one.due_ms in before_it]
    assert others == list(cell.runs[:-1])
    if runs and cell.active is not None:
        assert (await record(engine, runs[0].job.id)).status is cell.active


@pytest.mark.parametrize("before", list(TABLE))
async def test_a_backfill_of_a_schedule_is_run_whatever_the_run_before_it_does(
    engine: Engine, before: str
) -> None:
    runs = await _prepare(engine, before)
    for number, policy in enumerate(Overlap):
        new = _run(number - 9, policy, RunKind.BACKFILL)

        said = await fire(engine, new)

        assert new.job.id in said.started
        assert (await record(engine, new.job.id)).status is Status.READY
    found = await runs_of(engine)
    assert {one.state for one in found[: len(Overlap)]} == {STARTED}
    assert (await known(engine)).skipped == 0
    if runs and TABLE[before][ALLOW].active is not None:
        active = await record(engine, runs[0].job.id)
        assert active.status is TABLE[before][ALLOW].active


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (SKIP, [(STARTED, None), (SKIPPED, "overlap"), (SKIPPED, "overlap")]),
        (ALLOW, [(STARTED, None)] * 3),
        (QUEUE_ONE, [(STARTED, None), (QUEUED, None), (SKIPPED, "queue_full")]),
        (QUEUE_ALL, [(STARTED, None), (QUEUED, None), (QUEUED, None)]),
    ],
)
async def test_occurrences_of_a_schedule_in_one_plan_are_judged_one_after_the_other(
    engine: Engine, policy: Overlap, expected: list[tuple[RunState, str | None]]
) -> None:
    await put(engine, new_schedule())

    said = await fire(engine, *(_run(n, policy) for n in (1, 2, 3)))

    assert [(one.state, one.reason) for one in await runs_of(engine)] == expected
    states = [state for state, _ in expected]
    assert (said.queued, said.skipped) == (states.count(QUEUED), states.count(SKIPPED))
    assert len(said.started) == states.count(STARTED)


@pytest.mark.parametrize("kind", [RunKind.DUE, RunKind.BACKFILL])
async def test_runs_of_a_schedule_that_overlap_freely_or_are_a_backfill_block_nobody(
    engine: Engine, kind: RunKind
) -> None:
    await put(engine, new_schedule())
    overlap = ALLOW if kind is RunKind.DUE else SKIP
    await fire(engine, _run(1, overlap, kind))
    await claim_one(engine)

    await fire(engine, _run(2, SKIP))

    assert await states_of(engine) == [STARTED, STARTED]


async def test_a_run_that_overlaps_freely_does_not_hide_the_active_run_of_its_schedule(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, _run(1, SKIP))
    await fire(engine, _run(2, ALLOW), _run(3, SKIP, RunKind.BACKFILL))
    first = await claim_one(engine)
    assert first.job.id == _run(1, SKIP).job.id

    await fire(engine, _run(4, SKIP))
    await settle_one(engine, completed(first))
    await fire(engine, _run(5, SKIP))

    assert await states_of(engine) == [SUCCEEDED, STARTED, STARTED, SKIPPED, STARTED]


async def test_a_triggered_run_is_the_active_run_of_its_schedule(engine: Engine) -> None:
    await put(engine, new_schedule())
    await engine.schedules.trigger(NIGHTLY, wanted_run(SKIP), **BY)

    await fire(engine, _run(1, SKIP))

    assert [one.reason for one in await runs_of(engine)] == [None, "overlap"]


async def test_a_queued_run_of_a_schedule_that_was_started_is_its_active_run(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, *(_run(n, QUEUE_ALL) for n in (1, 2)))
    await end(engine)
    await fire(engine)

    await fire(engine, _run(3, SKIP))

    assert await states_of(engine) == [SUCCEEDED, STARTED, SKIPPED]


async def test_queued_runs_of_a_schedule_are_started_one_by_one_the_earliest_due_first(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    runs = [_run(n, QUEUE_ALL) for n in range(1, 5)]
    await fire(engine, runs[0])
    await fire(engine, runs[1], runs[2])
    await fire(engine, runs[3])

    for run, following in pairwise(runs):
        assert await handed_out(engine, 9) == [run.job.id]
        (taken,) = await engine.jobs.claims_of("worker-1")
        assert (await fire(engine)).started == ()
        await settle_one(engine, completed(taken))
        assert await handed_out(engine, 9) == []
        assert await due_ids(engine) == [NIGHTLY]
        assert (await fire(engine)).started == (following.job.id,)

    await end(engine)
    assert (await fire(engine)).started == ()
    assert set(await states_of(engine)) == {SUCCEEDED}


@pytest.mark.parametrize("kind", [RunKind.DUE, RunKind.TRIGGER])
async def test_the_job_of_a_queued_run_says_what_it_waits_for(
    engine: Engine, kind: RunKind
) -> None:
    await put(engine, new_schedule())
    await fire(engine, _run(1, QUEUE_ONE))
    queued = _run(2, QUEUE_ONE)
    if kind is RunKind.TRIGGER:
        await engine.schedules.trigger(NIGHTLY, queued, **BY)
    else:
        await fire(engine, queued)

    hold = (await record(engine, queued.job.id)).hold

    assert hold is not None
    assert (hold.by, hold.reason) == BEHIND_A_RUN


async def test_a_queued_run_of_a_schedule_that_was_started_runs_when_its_job_is_due(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, _run(1, QUEUE_ONE), run_at(at(2), QUEUE_ONE))
    await end(engine)

    await fire(engine)

    found = await record(engine, run_at(at(2)).job.id)
    assert (found.hold, found.status) == (None, Status.SCHEDULED)
    assert found.job.due_at_ms == at(2)


async def test_a_queued_run_of_a_schedule_may_be_cancelled_and_makes_room(engine: Engine) -> None:
    await put(engine, new_schedule())
    queued = _run(2, QUEUE_ONE)
    await fire(engine, _run(1, QUEUE_ONE), queued)

    await engine.jobs.cancel([queued.job.id], **BY)
    await fire(engine, _run(3, QUEUE_ONE))

    assert await states_of(engine) == [STARTED, CANCELLED, QUEUED]
    await end(engine)
    assert (await fire(engine)).started == (_run(3, QUEUE_ONE).job.id,)


async def test_a_schedule_that_cancels_a_running_job_goes_on_when_that_has_ended(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, _run(1, CANCEL_RUNNING))
    first = await claim_one(engine)
    await fire(engine, _run(2, CANCEL_RUNNING))
    assert await handed_out(engine, 9) == []
    assert await due_ids(engine) == []

    await settle_one(engine, failed(first))

    assert await due_ids(engine) == [NIGHTLY]
    assert (await fire(engine)).started == (_run(2, CANCEL_RUNNING).job.id,)
    assert await states_of(engine) == [CANCELLED, STARTED]
    assert await handed_out(engine, 9) == [_run(2, CANCEL_RUNNING).job.id]


async def test_a_schedule_that_cancels_a_waiting_job_is_due_at_once_and_goes_on(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, _run(1, CANCEL_RUNNING))

    await fire(engine, _run(2, CANCEL_RUNNING), due_ms=at(60))

    assert (await record(engine, _run(1, SKIP).job.id)).state is JobState.CANCELLED
    assert await due_ids(engine) == [NIGHTLY]
    assert (await fire(engine)).started == (_run(2, CANCEL_RUNNING).job.id,)
    assert await states_of(engine) == [CANCELLED, STARTED]


async def test_a_job_that_its_schedule_cancelled_may_still_succeed(engine: Engine) -> None:
    await put(engine, new_schedule())
    await fire(engine, _run(1, CANCEL_RUNNING))
    first = await claim_one(engine)
    await fire(engine, _run(2, CANCEL_RUNNING))

    await settle_one(engine, completed(first))

    assert await states_of(engine) == [SUCCEEDED, QUEUED]
    assert (await known(engine)).failures == 0


@pytest.mark.parametrize("active", ["waiting", "running"])
async def test_of_occurrences_of_a_schedule_that_cancel_in_one_plan_the_last_is_left(
    engine: Engine, active: str
) -> None:
    runs = await _prepare(engine, active)
    new = [_run(n, CANCEL_RUNNING) for n in (7, 8, 9)]

    said = await fire(engine, *new)

    first = CANCELLED if active == "waiting" else STARTED
    assert await states_of(engine) == [first, SKIPPED, SKIPPED, QUEUED]
    assert [one.reason for one in await runs_of(engine)] == [None, "replaced", "replaced", None]
    assert (said.started, said.queued, said.skipped) == ((), 1, 2)
    if active == "running":
        (taken,) = await engine.jobs.claims_of("worker-1")
        assert taken.job.id == runs[0].job.id
        await settle_one(engine, completed(taken))
    assert await due_ids(engine) == [NIGHTLY]
    assert (await fire(engine)).started == (new[-1].job.id,)
    assert await handed_out(engine, 9) == [new[-1].job.id]


async def test_occurrences_of_a_schedule_that_cancel_in_its_first_plan_leave_the_last(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    new = [_run(n, CANCEL_RUNNING) for n in (7, 8, 9)]

    said = await fire(engine, *new)

    assert await states_of(engine) == [CANCELLED, SKIPPED, QUEUED]
    assert (said.started, said.queued, said.skipped) == ((), 1, 1)
    assert await due_ids(engine) == [NIGHTLY]
    assert (await fire(engine)).started == (new[-1].job.id,)


@pytest.mark.parametrize(
    ("policy", "state", "reason"),
    [
        (SKIP, SKIPPED, "overlap"),
        (ALLOW, STARTED, None),
        (QUEUE_ONE, SKIPPED, "queue_full"),
        (QUEUE_ALL, QUEUED, None),
    ],
)
async def test_an_occurrence_of_a_schedule_does_not_overtake_one_queued_by_the_same_plan(
    engine: Engine, policy: Overlap, state: RunState, reason: str | None
) -> None:
    await _prepare(engine, "waiting")
    new = [_run(8, CANCEL_RUNNING), _run(9, policy)]

    said = await fire(engine, *new)

    found = await runs_of(engine)
    assert [one.state for one in found] == [CANCELLED, QUEUED, state]
    assert found[-1].reason == reason
    assert said.started == ((new[1].job.id,) if policy is ALLOW else ())
    assert (await fire(engine)).started == (new[0].job.id,)
