"""Change by filter: everything that was there, each job once, decided again when it is changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.changes import Action
from lamplighter.model.filters import EVERY_JOB, Filter
from lamplighter.model.job import JobState, Status
from lamplighter.model.retry import Retry
from lamplighter.port.bulk import BulkChange
from lamplighter.port.conformance.builders import (
    answers,
    claim,
    died,
    failed,
    finished,
    new_job,
    record,
    records,
    running,
    settle_one,
    spread,
    submit,
)
from lamplighter.port.store import CANCEL_TOPIC, FINISHED_TOPIC, queue_topic
from lamplighter.port.values import ChangeAnswer, Changed

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "alice", "reason": "all of them"}
DEAD = Filter(statuses=("dead",))


def bulk(engine: Engine, action: Action, which: Filter = EVERY_JOB) -> BulkChange:
    return BulkChange(engine, action, which, by=BY["by"], reason=BY["reason"])


async def carry_out(change: BulkChange, size: int = 3) -> list[Changed]:
    found: list[Changed] = []
    while not change.over:
        found += await change.change(await change.read(size))
    return found


# ── what is affected ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize(
    ("action", "status"),
    [
        (Action.CANCEL, Status.CANCELLED),
        (Action.HOLD, Status.PAUSED),
        (Action.RETRY, Status.READY),
    ],
)
async def test_everything_that_a_filter_means_is_changed_once_and_nothing_else(
    engine: Engine, action: Action, status: Status, size: int
) -> None:
    wanted = await submit(
        engine, *spread(new_job(tenant="blue", delay_ms=60_000) for _ in range(10))
    )
    (other,) = await submit(engine, new_job(tenant="green", delay_ms=60_000))

    changed = await carry_out(bulk(engine, action, Filter(tenants=("blue",))), size)

    assert sorted(one.id for one in changed) == sorted(wanted)
    assert set(answers(changed)) == {ChangeAnswer.DONE}
    assert {one.status for one in await records(engine, wanted)} == {status}
    assert (await record(engine, other)).status is Status.SCHEDULED


async def test_held_jobs_of_a_filter_go_on_and_ended_ones_run_again_or_are_removed(
    engine: Engine,
) -> None:
    (held,) = await submit(engine, new_job(held=True))
    assert answers(await carry_out(bulk(engine, Action.UNHOLD))) == [ChangeAnswer.DONE]
    assert (await record(engine, held)).status is Status.READY
    await carry_out(bulk(engine, Action.CANCEL))

    (again,) = await carry_out(bulk(engine, Action.REPLAY))
    assert (again.id, again.answer, again.state) == (held, ChangeAnswer.DONE, JobState.WAITING)
    await carry_out(bulk(engine, Action.CANCEL))

    assert await carry_out(bulk(engine, Action.PURGE)) == [Changed(held, ChangeAnswer.DONE, None)]
    assert await engine.inspector.job(held) is None


async def test_a_change_of_many_passes_over_what_it_does_nothing_to(engine: Engine) -> None:
    await finished(engine)
    (waiting,) = await submit(engine, new_job())

    changed = await carry_out(bulk(engine, Action.CANCEL))

    assert [one.id for one in changed] == [waiting]


async def test_statuses_in_which_an_action_does_nothing_mean_no_job(engine: Engine) -> None:
    await finished(engine)
    change = bulk(engine, Action.CANCEL, Filter(statuses=("succeeded",)))

    assert change.over
    assert await change.read() == []


async def test_jobs_are_chosen_by_their_schedule_and_their_age(
    engine: Engine, clock: VirtualClock
) -> None:
    (old,) = await submit(engine, new_job(schedule="nightly"))
    clock.advance(seconds=60)
    young, other = await submit(engine, new_job(schedule="nightly"), new_job(schedule="hourly"))
    nightly = Filter(schedules=("nightly",))
    older = Filter(schedules=("nightly",), created_before_ms=clock.now_ms() - 30_000)

    assert {one.id for one in await carry_out(bulk(engine, Action.HOLD, nightly))} == {old, young}
    assert [one.id for one in await carry_out(bulk(engine, Action.CANCEL, older))] == [old]
    assert (await record(engine, other)).status is Status.READY


async def test_dead_letters_are_counted_by_their_schedule_and_their_age(
    engine: Engine, clock: VirtualClock
) -> None:
    await died(engine, new_job(schedule="nightly"))
    clock.advance(seconds=60)
    await died(engine, new_job())
    later = Filter(created_after_ms=clock.now_ms())

    for which in (Filter(schedules=("nightly",)), later):
        (group,) = (await engine.inspector.dead_groups(which)).groups
        assert group.count == 1


# ── jobs that come meanwhile ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [1, 4])
async def test_jobs_that_come_meanwhile_are_not_affected(engine: Engine, size: int) -> None:
    there = await submit(engine, *spread(new_job() for _ in range(9)))
    change, changed, came = bulk(engine, Action.CANCEL), list[Changed](), list[str]()

    while not change.over:
        page = await change.read(size)
        came += await submit(engine, *spread(new_job() for _ in range(5)))
        changed += await change.change(page)
        came += await submit(engine, *spread(new_job() for _ in range(5)))

    assert sorted(one.id for one in changed) == sorted(there)
    assert {one.state for one in await records(engine, came)} == {JobState.WAITING}


async def test_jobs_that_come_at_the_same_time_are_not_affected(engine: Engine) -> None:
    there = await submit(engine, *spread(new_job() for _ in range(40)))
    change, came, done = bulk(engine, Action.CANCEL), list[str](), asyncio.Event()
    first = await change.read(1)

    async def arrive() -> None:
        while not done.is_set():
            came.extend(await submit(engine, *spread(new_job() for _ in range(7))))

    async def cancel() -> list[Changed]:
        try:
            return await change.change(first) + await carry_out(change)
        finally:
            done.set()

    changed, *_ = await asyncio.gather(cancel(), arrive(), arrive())

    assert sorted(one.id for one in changed) == sorted(there)
    assert set(answers(changed)) == {ChangeAnswer.DONE}
    assert {one.state for one in await records(engine, came)} == {JobState.WAITING}


async def test_a_dead_letter_that_dies_again_meanwhile_is_not_met_again(engine: Engine) -> None:
    ids = [(await died(engine)).job.id for _ in range(5)]
    change, changed = bulk(engine, Action.REPLAY, DEAD), list[Changed]()

    while not change.over:
        changed += await change.change(await change.read(2))
        (again,) = await claim(engine, 1)
        await settle_one(engine, failed(again, retry=Retry(max_attempts=1)))

    assert sorted(one.id for one in changed) == sorted(ids)
    assert set(answers(changed)) == {ChangeAnswer.DONE}


# ── decided again ────────────────────────────────────────────────────────────────────────────


async def test_each_job_is_decided_about_again_when_it_is_changed(engine: Engine) -> None:
    first, second, third = await submit(engine, *(new_job() for _ in range(3)))
    change = bulk(engine, Action.CANCEL)
    page = await change.read()
    taken = await claim(engine, 1)
    await engine.jobs.cancel([third], **BY)
    assert [one.job.id for one in taken] == [first]

    changed = {one.id: one.answer for one in await change.change(page)}

    assert changed == {
        first: ChangeAnswer.REQUESTED,
        second: ChangeAnswer.DONE,
        third: ChangeAnswer.ALREADY,
    }


async def test_a_job_that_has_left_the_statuses_of_the_filter_is_left_alone(
    engine: Engine,
) -> None:
    first, second = await submit(engine, new_job(), new_job())
    change = bulk(engine, Action.CANCEL, Filter(statuses=("pending",)))
    page = await change.read()
    await claim(engine, 1)

    changed = {one.id: one for one in await change.change(page)}

    assert changed[first] == Changed(first, ChangeAnswer.CONFLICT, JobState.RUNNING)
    assert changed[second].answer is ChangeAnswer.DONE
    assert (await record(engine, first)).cancel is None


async def test_only_dead_jobs_are_purged_where_only_those_are_meant(engine: Engine) -> None:
    dead, done = (await died(engine)).job.id, (await finished(engine)).job.id

    changed = await engine.jobs.change(
        Action.PURGE, [dead, done, done], statuses=frozenset({"dead"}), **BY
    )

    assert changed == [
        Changed(dead, ChangeAnswer.DONE, None),
        Changed(done, ChangeAnswer.CONFLICT, JobState.SUCCEEDED),
        Changed(done, ChangeAnswer.CONFLICT, JobState.SUCCEEDED),
    ]


@pytest.mark.parametrize("action", [Action.CANCEL, Action.HOLD, Action.RETRY, Action.PURGE])
async def test_what_a_change_would_do_is_foretold(engine: Engine, action: Action) -> None:
    await submit(engine, new_job(delay_ms=60_000), new_job(held=True))
    await died(engine)
    await running(engine)
    every = Filter(statuses=tuple(Status))
    change = bulk(engine, action, every)
    page = await change.read()

    assert change.over
    assert change.foretell(page) == await change.change(page)


# ── stop and go on ───────────────────────────────────────────────────────────────────────────


async def test_a_change_that_was_stopped_goes_on_where_it_stopped(engine: Engine) -> None:
    ids = await submit(engine, *spread(new_job() for _ in range(7)))
    stopped = bulk(engine, Action.HOLD)
    before = await stopped.change(await stopped.read(3))
    later = await submit(engine, *spread(new_job() for _ in range(4)))

    rest = bulk(engine, Action.HOLD)
    rest.cursor = stopped.cursor

    assert sorted(one.id for one in before + await carry_out(rest)) == sorted(ids)
    assert {one.status for one in await records(engine, later)} == {Status.READY}


@pytest.mark.parametrize(
    ("action", "topic"),
    [
        (Action.CANCEL, FINISHED_TOPIC),
        (Action.CANCEL, CANCEL_TOPIC),
        (Action.UNHOLD, queue_topic("default")),
        (Action.REPLAY, queue_topic("default")),
    ],
)
async def test_a_change_of_many_wakes_those_who_wait_for_it(
    engine: Engine, action: Action, topic: str
) -> None:
    if topic == CANCEL_TOPIC:
        there = running(engine)
    elif action is Action.REPLAY:
        there = finished(engine)
    else:
        there = submit(engine, new_job(held=True))
    # In a task of its own: who submits a job may be about to tell of it, and has told then.
    await asyncio.create_task(there)
    await engine.wakeup.wait([topic], 0)

    await carry_out(bulk(engine, action))

    assert await engine.wakeup.wait([topic], 5)
