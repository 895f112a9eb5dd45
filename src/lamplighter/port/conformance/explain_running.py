"""Explain, for jobs that run: what has become of their worker and their lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.port.conformance.builders import claim, new_job, submit
from lamplighter.port.values import NewWorker, Reason, Why

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

WORKER = "machine-1-2-3"
CHILD = f"{WORKER}/c0"


async def join(engine: Engine, name: str = WORKER) -> None:
    await engine.membership.join(
        NewWorker(id=name, host="machine", pid=7, queues=("default",), slots=4)
    )


async def taken(engine: Engine, lease_ms: int = 30_000) -> str:
    """Return the id of a job that a child of the worker runs."""
    await join(engine)
    (job_id,) = await submit(engine, new_job())
    await claim(engine, 1, worker=CHILD, lease_ms=lease_ms)
    return job_id


async def reason(engine: Engine, job_id: str) -> Reason:
    found = await engine.inspector.explain(job_id)
    assert found is not None
    return found.reasons[0]


async def test_a_job_of_a_live_worker_is_running(engine: Engine, clock: VirtualClock) -> None:
    job_id = await taken(engine)
    clock.advance(seconds=14)

    found = await reason(engine, job_id)

    assert found.why is Why.RUNNING
    assert found.text == f"it is running, for 14.0 s, on worker {CHILD}"
    assert found.until_ms == clock.now_ms() + 16_000


async def test_a_job_of_a_silent_worker_is_running_on_a_suspect(
    engine: Engine, clock: VirtualClock
) -> None:
    job_id = await taken(engine)
    clock.advance(seconds=16)

    found = await reason(engine, job_id)

    assert found.why is Why.WORKER_SUSPECT
    assert "which has given no sign of life for 16.0 s" in found.text


@pytest.mark.parametrize("other", [False, True])
async def test_a_job_of_a_dead_worker_says_how_its_lease_stands_and_who_gives_it_back(
    engine: Engine, clock: VirtualClock, *, other: bool
) -> None:
    job_id = await taken(engine, lease_ms=40_000)
    clock.advance(seconds=31)
    if other:
        await join(engine, "another")

    early = await reason(engine, job_id)
    assert early.why is Why.WORKER_DEAD
    assert early.text.startswith(f"its worker {CHILD} is dead (no sign of life for 31.0 s), ")
    assert "its lease ends in 9.0 s" in early.text
    assert ("no worker is alive" in early.text) is not other

    clock.advance(seconds=20)
    if other:
        await engine.membership.beat("another", 0)
    late = await reason(engine, job_id)
    assert late.why is Why.WORKER_DEAD
    assert "its lease ended 11.0 s ago" in late.text
    assert ("no worker is alive to give it back: start one" in late.text) is not other
    assert late.until_ms is None


async def test_a_job_that_no_live_worker_gives_back_is_said_to_need_one_that_does(
    engine: Engine, clock: VirtualClock
) -> None:
    job_id = await taken(engine)
    clock.advance(seconds=60)
    await join(engine, "another")
    assert (await reason(engine, job_id)).text.endswith("; it is about to be given back")
    clock.advance(seconds=30)
    await join(engine, "another")

    found = await reason(engine, job_id)

    assert found.why is Why.WORKER_DEAD
    assert "its lease ended 1 min ago; no live worker has given it back" in found.text
    assert "without --no-coordinator" in found.text


async def test_a_job_of_a_worker_that_has_left_is_no_longer_running_when_its_lease_has_ended(
    engine: Engine, clock: VirtualClock
) -> None:
    job_id = await taken(engine)
    await engine.membership.leave(WORKER)
    assert (await reason(engine, job_id)).why is Why.RUNNING
    clock.advance(seconds=50)

    found = await reason(engine, job_id)

    assert found.why is Why.WORKER_DEAD
    assert "is no longer known, its lease ended 20.0 s ago" in found.text


async def test_a_lease_that_ended_under_a_live_worker_is_told(
    engine: Engine, clock: VirtualClock
) -> None:
    job_id = await taken(engine, lease_ms=5_000)
    clock.advance(seconds=8)

    found = await reason(engine, job_id)

    assert found.why is Why.RUNNING
    assert found.text.endswith("; its lease ended 3.0 s ago")
    assert found.until_ms is None
