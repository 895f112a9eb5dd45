"""What becomes of a job, seen from outside."""

import pytest

from lamplighter.model.job import JobState
from lamplighter.port.store import queue_topic
from tests.system.conftest import until


@pytest.mark.parametrize("type", ["add", "add_in_thread"])
async def test_a_job_runs_once_and_its_result_is_kept(world, type):
    await world.worker()

    record = await world.ended(await world.submit(type, a=2, b=3))

    assert record.state is JobState.SUCCEEDED
    assert record.result == b"5"
    assert len(world.runs.lines()) == 1


async def test_a_failing_job_is_retried_and_ends_dead_with_its_error(world):
    worker = await world.worker()

    job_id = await world.submit("fail")
    record = await world.ended(job_id)

    assert record.state is JobState.DEAD
    assert record.job.attempt == 3
    assert record.error.type == "ValueError"
    assert record.error.message == "not today"
    assert 'raise ValueError("not today")' in record.error.traceback
    assert "executor.py" not in record.error.traceback
    assert len(world.runs.lines(job_id)) == 3
    assert len(await world.engine.inspector.attempts(job_id)) == 3
    await worker.told("job.settled", job_id=job_id, state="dead")


@pytest.mark.parametrize(("verb", "same"), [("retry", True), ("replay", False)])
async def test_a_retried_dead_job_has_its_effect_key_again_and_a_replayed_one_another(
    world, verb, same
):
    await world.worker()
    job_id = await world.submit("transfer")
    await world.ended(job_id)

    await getattr(world.engine.jobs, verb)([job_id], by="alice", reason="the bank is back")
    await world.engine.wakeup.notify(queue_topic("default"))
    await until(lambda: len(world.runs.lines(job_id)) == 2)

    first, second = (line[1] for line in world.runs.lines(job_id))
    assert (first == second) == same


async def test_a_handler_that_exits_has_failed_and_its_child_lives(world):
    worker = await world.worker()

    left = await world.ended(await world.submit("leave"))
    after = await world.ended(await world.submit("add", a=1, b=1))

    assert left.state is JobState.DEAD
    assert left.error.type == "SystemExit"
    assert after.state is JobState.SUCCEEDED
    assert len(worker.child_pids()) == 1


async def test_a_rejected_job_is_dead_at_once(world):
    await world.worker()

    job_id = await world.submit("reject")
    record = await world.ended(job_id)

    assert record.state is JobState.DEAD
    assert "no such order" in record.reason
    assert len(world.runs.lines(job_id)) == 1


async def test_a_snoozed_job_runs_again_uncharged(world):
    await world.worker()

    job_id = await world.submit("snooze")
    record = await world.ended(job_id)

    assert record.result == b'"awake"'
    assert record.job.attempt == 0
    assert len(world.runs.lines(job_id)) == 2


async def test_bytes_that_are_not_json_are_dead_at_once(world):
    await world.worker()

    (job_id,) = await world.submit_all([("add", b"{not json")])
    record = await world.ended(job_id)

    assert record.state is JobState.DEAD
    assert "not JSON" in record.reason


async def test_arguments_that_do_not_fit_charge_nothing(world):
    worker = await world.worker()

    job_id = await world.submit("add", a=1)
    settled = await worker.told("job.settled", job_id=job_id)

    assert settled["outcome"] == "misfit"
    assert settled["state"] == "waiting"
    assert world.runs.lines(job_id) == []
    assert (await world.engine.inspector.job(job_id)).job.attempt == 0


async def test_a_type_nobody_knows_is_left_alone(world):
    await world.worker()

    unknown = await world.submit("of_tomorrow")
    await world.ended(await world.submit("add", a=1, b=1))
    record = await world.engine.inspector.job(unknown)

    assert record.state is JobState.WAITING
    assert record.lease == 0


async def test_what_a_handler_submits_goes_to_the_workers_store(world):
    await world.worker()

    first = await world.ended(await world.submit("submit_another"))
    second = await world.ended(first.result.decode().strip('"'))

    assert second.result == b"5"


async def test_many_jobs_are_shared_by_the_children_and_run_once_each(world):
    worker = await world.worker(children=2)
    await worker.told("child.started", count=2)

    ids = await world.submit_all([("add", b'{"a":1,"b":1}')] * 1000)
    for job_id in ids:
        assert (await world.ended(job_id)).state is JobState.SUCCEEDED

    runs = world.runs.lines()
    assert sorted(run[0] for run in runs) == sorted(ids)
    assert len({run[2] for run in runs}) == 2
