"""What arrives while a claim looks is found by a later one, whichever lane it is in."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from lamplighter.connect import connect
from lamplighter.port.conformance.builders import new_job, request
from lamplighter.port.store import Engine

LANES = 120
NEW = tuple(f"new-{number}" for number in range(LANES))


@pytest.fixture
async def engines(url: str) -> AsyncIterator[list[Engine]]:
    opened = [connect(url) for _ in range(3)]
    for one in opened:
        await one.open()
    yield opened
    for one in opened:
        await one.close()


async def test_jobs_in_lanes_made_during_a_claim_are_handed_out(engines: list[Engine]):
    known, unknown, worker = engines
    sent: set[str] = set()
    handed: set[str] = set()
    made = asyncio.Event()

    async def keep_a_lane_busy() -> None:
        while not made.is_set():
            job = new_job("busy")
            await known.jobs.submit([job])
            sent.add(job.id)

    async def make_lanes() -> None:
        for type_ in NEW:
            job = new_job(type_)
            await unknown.jobs.submit([job])
            sent.add(job.id)
        made.set()

    async def claim_until_nothing_is_left() -> None:
        while True:
            last = made.is_set()
            answer = await worker.jobs.claim(request(types=("busy", *NEW), limit=5))
            handed.update(claim.job.id for claim in answer.claims)
            if last and not answer.claims and len(sent) == len(handed):
                return
            if last and answer.poll_after_ms is None:
                return

    await asyncio.gather(keep_a_lane_busy(), make_lanes(), claim_until_nothing_is_left())

    assert sent == handed
