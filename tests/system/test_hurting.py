"""Handlers that hurt their process: it is replaced, and nobody else pays for it."""

import asyncio
import json

import pytest

from lamplighter.model.job import JobState
from tests.system.hurting_program import HARMS

SPEC = "tests.system.hurting_program:app"
WORDS = ("no running event loop", "pulse died", "Traceback", "Event loop", "never retrieved")
IN_THREADS = [
    "switches rarely",
    "sets a timeout",
    "freezes",
    "disables gc",
    "shuts logging down",
    "disables logging",
    "closes stderr",
    "moves",
]


def result_of(record) -> object:
    return json.loads(record.result)


@pytest.mark.parametrize(
    ("type", "how"),
    [*(("hurt", how) for how in HARMS), *(("hurt_in_thread", how) for how in IN_THREADS)],
)
async def test_a_process_that_was_hurt_is_replaced_and_neighbours_finish(world, type, how):
    worker = await world.worker(SPEC)
    neighbour = await world.submit("wait")
    await world.runs.seen(neighbour, "start")

    hurt = await world.ended(await world.submit(type, how=how))
    retired = await worker.told("child.retired")
    after = await world.ended(await world.submit("pid"))
    world.runs.release()
    beside = await world.ended(neighbour)

    assert hurt.state is JobState.SUCCEEDED
    assert retired["pid"] == result_of(hurt) == result_of(beside)
    assert retired["why"]
    assert result_of(after) != result_of(hurt)
    assert beside.state is JobState.SUCCEEDED
    assert (beside.lease, beside.job.attempt, beside.job.losses) == (1, 0, 0)
    worker.signal(15)
    assert await worker.ended() == 0
    assert worker.told_of("child.died") == []
    assert not [word for word in WORDS if word in worker.errors + "".join(worker.printed)]


HARMLESS_ALONE = {"stops the loop", "exits at exit"}
"""The loop stops after each job, and the process never ends by Python's own way."""


@pytest.mark.parametrize("how", HARMS)
async def test_a_process_for_one_job_that_was_hurt_gets_no_other(world, how):
    worker = await world.worker(SPEC)
    hurt = await world.ended(await world.submit("hurt_alone", how=how))
    after = await world.ended(await world.submit("pid_alone"))

    assert hurt.state is after.state is JobState.SUCCEEDED
    assert (result_of(after) == result_of(hurt)) == (how in HARMLESS_ALONE)
    worker.signal(15)
    assert await worker.ended() == 0
    assert not [word for word in WORDS if word in worker.errors]


async def test_a_type_that_hurts_again_and_again_runs_alone(world):
    worker = await world.worker(SPEC)
    for _ in range(3):
        await world.ended(await world.submit("hurt", how="sets a timeout"))
    isolated = await worker.told("type.isolated")

    assert isolated["type"] == "hurt"
    assert len(worker.told_of("child.retired")) == 2
    assert (await world.ended(await world.submit("pid"))).state is JobState.SUCCEEDED


async def test_what_a_program_sets_itself_at_import_is_no_harm(world):
    worker = await world.worker("tests.system.settled_program:app")
    first = await world.ended(await world.submit("pid"))
    second = await world.ended(await world.submit("pid"))

    assert result_of(first) == result_of(second)
    assert worker.told_of("child.retired") == []


async def test_neighbours_may_take_longer_than_the_grace(world):
    worker = await world.worker(SPEC, grace=0.2)
    neighbour = await world.submit("wait")
    await world.runs.seen(neighbour, "start")
    await world.ended(await world.submit("hurt", how="sets a timeout"))
    retired = await worker.told("child.retired")
    await asyncio.sleep(3.0)  # longer than the grace, and than what follows it
    world.runs.release()
    beside = await world.ended(neighbour)

    assert beside.state is JobState.SUCCEEDED
    assert beside.lease == 1
    assert result_of(beside) == retired["pid"]


async def test_limits_that_are_raised_hurt_nobody(world):
    worker = await world.worker(SPEC)
    raised = await world.ended(await world.submit("raise_limits"))
    after = await world.ended(await world.submit("pid"))

    assert result_of(after) == result_of(raised)
    assert worker.told_of("child.retired") == []


@pytest.mark.parametrize("type", ["cancel_all", "close_all"])
async def test_a_process_that_cannot_be_saved_costs_its_neighbours_nothing(world, type):
    worker = await world.worker(SPEC)
    neighbour = await world.submit("wait")
    await world.runs.seen(neighbour, "start")

    await world.submit(type)
    died = await worker.told("child.died")
    await world.runs.seen(neighbour, "start", count=2)
    world.runs.release()
    beside = await world.ended(neighbour)

    assert died["status"]
    assert beside.state is JobState.SUCCEEDED
    assert beside.job.attempt == 0
    worker.signal(15)
    assert await worker.ended() == 0
    assert "Traceback" not in worker.errors
    assert "no running event loop" not in worker.errors
