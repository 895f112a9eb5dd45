"""Jobs that come back soon, on a worker that has nothing else to do."""

import asyncio
import statistics

import pytest

from lamplighter.model.job import JobState

DELAY, LATE = 0.1, 0.25


@pytest.mark.parametrize("how", ["fail", "snooze"])
async def test_an_idle_worker_runs_what_it_has_put_back_when_it_is_due(any_world, how):
    world = any_world
    await world.worker(poll=5.0)
    late: list[float] = []
    for _ in range(7):
        # The worker has claimed in vain since, and waits for its next poll.
        await asyncio.sleep(0.3)
        job_id = await world.submit("come_back", how=how)
        assert (await world.ended(job_id)).state is JobState.SUCCEEDED
        first, second = (float(line[1]) for line in world.runs.lines(job_id))
        late.append(second - first - DELAY)

    assert min(late) >= 0
    assert statistics.median(late) < LATE, late
