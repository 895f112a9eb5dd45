"""claim with patience: it waits where nothing is due, and takes nothing for nobody."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from lamplighter import runtime
from lamplighter.port.conformance.builders import (
    completed,
    new_job,
    record,
    request,
    settle_one,
    submit,
)
from lamplighter.port.patience import Patience
from lamplighter.port.store import queue_topic

if TYPE_CHECKING:
    from lamplighter.model.job import Claim
    from lamplighter.port.conformance.plugin import OpenEngine
    from lamplighter.port.store import Engine
    from lamplighter.port.values import Claimed

SOON = 0.05
LONG = 7.0
"""Far more than a hint takes, and less than the part of a lease for which a claim may wait."""
TOPIC = queue_topic("default")


class Caller:
    """Claims, waits, and claims again; the store has its own clock, for waits take real time."""

    def __init__(self, engine: Engine, seconds: float = LONG) -> None:
        self.engine = engine
        self.patience = Patience(seconds)
        self.types: tuple[str, ...] = ("work",)

    async def ask(self) -> Claimed:
        """Claim once."""
        asked = request(types=self.types, limit=5)
        return await self.engine.jobs.claim(asked, self.patience)

    async def taken(self) -> list[Claim]:
        """Claim until something is handed out."""
        async with asyncio.timeout(4 * LONG):
            while not (answer := await self.ask()).claims:
                pass
        return answer.claims

    async def waiting(self) -> asyncio.Task[Claimed]:
        """Begin to wait."""
        assert not (await self.ask()).claims
        waits = asyncio.create_task(self.ask())
        await runtime.sleep(SOON)
        return waits


def _ids(claims: list[Claim]) -> list[str]:
    return [one.job.id for one in claims]


async def _two(open_engine: OpenEngine, store_url: str) -> tuple[Engine, Engine]:
    """Open the engines of somebody who waits and of somebody who submits."""
    return await open_engine(store_url, None), await open_engine(store_url, None)


async def test_what_is_due_is_handed_out_at_once_to_the_patient(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, client = await _two(open_engine, store_url)
    ids = await submit(client, new_job(), new_job())

    assert sorted(_ids((await Caller(worker).ask()).claims)) == sorted(ids)


async def test_without_a_job_the_first_answer_comes_at_once(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, _ = await _two(open_engine, store_url)
    before = runtime.monotonic()

    answer = await Caller(worker, 4 * LONG).ask()

    assert not answer.claims
    assert answer.poll_after_ms is None
    assert runtime.monotonic() - before < LONG


async def test_a_claim_that_waits_for_nothing_ends_with_its_patience(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, _ = await _two(open_engine, store_url)
    caller = Caller(worker, 0.3)
    await (await caller.waiting())

    begun = runtime.monotonic()
    answers = [await caller.ask() for _ in range(4)]

    assert not any(answer.claims for answer in answers)
    assert 0.3 < runtime.monotonic() - begun < LONG


async def test_a_hint_ends_the_wait_where_the_engine_can_push(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, client = await _two(open_engine, store_url)
    caller = Caller(worker, LONG if worker.capabilities.push_wakeup else SOON)
    waits = await caller.waiting()
    begun = runtime.monotonic()

    (job,) = await submit(client, new_job())
    await client.wakeup.notify(TOPIC, jobs={"work": 1})
    claims = (await waits).claims or await caller.taken()

    assert _ids(claims) == [job]
    assert runtime.monotonic() - begun < LONG
    await settle_one(worker, completed(claims[0]))
    assert (await record(client, job)).state == "succeeded"


async def test_a_job_of_which_nobody_told_is_found_with_the_end_of_patience(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, client = await _two(open_engine, store_url)
    caller = Caller(worker, 0.2)
    waits = await caller.waiting()

    (job,) = await submit(client, replace(new_job(), run_at_ms=1))

    assert _ids((await waits).claims or await caller.taken()) == [job]


async def test_a_hint_without_a_job_hands_out_nothing(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, client = await _two(open_engine, store_url)
    caller = Caller(worker)
    waits = await caller.waiting()

    await client.wakeup.notify(TOPIC)
    await worker.wakeup.notify(TOPIC)
    async with asyncio.timeout(4 * LONG):
        answer = await waits

    assert not answer.claims


async def test_a_job_that_falls_due_ends_the_wait(open_engine: OpenEngine, store_url: str) -> None:
    worker, client = await _two(open_engine, store_url)
    (job,) = await submit(client, new_job(delay_ms=300))
    caller = Caller(worker)
    begun = runtime.monotonic()
    waits = await caller.waiting()

    claims = (await waits).claims or await caller.taken()

    assert _ids(claims) == [job]
    assert 0.2 < runtime.monotonic() - begun < LONG


async def test_news_between_two_patient_claims_is_not_missed(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, client = await _two(open_engine, store_url)
    caller = Caller(worker, LONG if worker.capabilities.push_wakeup else SOON)
    waits = await caller.waiting()
    caller.patience.hurry()
    await waits
    assert not (await caller.ask()).claims
    begun = runtime.monotonic()

    (job,) = await submit(client, new_job())
    await client.wakeup.notify(TOPIC)

    assert _ids(await caller.taken()) == [job]
    assert runtime.monotonic() - begun < LONG


async def test_who_asks_for_something_else_does_not_wait(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, client = await _two(open_engine, store_url)
    caller = Caller(worker)
    assert not (await caller.ask()).claims
    (job,) = await submit(client, replace(new_job(type="other"), run_at_ms=1))

    caller.types = ("work", "other")

    assert _ids((await caller.ask()).claims) == [job]


async def test_who_was_given_all_that_there_was_room_for_does_not_wait(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, client = await _two(open_engine, store_url)
    caller = Caller(worker)
    ids = await submit(client, *(new_job() for _ in range(10)))

    answers = [await caller.ask(), await caller.ask()]

    assert sorted(id for answer in answers for id in _ids(answer.claims)) == sorted(ids)


async def test_a_wait_that_is_hurried_takes_nothing_afterwards(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, client = await _two(open_engine, store_url)
    caller = Caller(worker)
    waits = await caller.waiting()
    begun = runtime.monotonic()

    caller.patience.hurry()

    assert not (await waits).claims
    assert runtime.monotonic() - begun < LONG
    (job,) = await submit(client, new_job())
    await client.wakeup.notify(TOPIC)
    await runtime.sleep(SOON)
    assert (await record(client, job)).state == "waiting"


async def test_who_is_in_a_hurry_before_the_wait_asks_the_store_at_once(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, client = await _two(open_engine, store_url)
    caller = Caller(worker)
    assert not (await caller.ask()).claims
    (job,) = await submit(client, replace(new_job(), run_at_ms=1))

    caller.patience.hurry()

    assert _ids((await caller.ask()).claims) == [job]


async def test_a_claim_that_waits_and_is_cancelled_leaves_nothing_claimed(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, client = await _two(open_engine, store_url)
    waits = await Caller(worker).waiting()

    waits.cancel()
    await asyncio.wait({waits})

    assert waits.cancelled()
    (job,) = await submit(client, new_job())
    await client.wakeup.notify(TOPIC)
    assert _ids(await Caller(client).taken()) == [job]


async def test_a_job_that_comes_as_the_wait_is_cancelled_is_not_lost(
    open_engine: OpenEngine, store_url: str
) -> None:
    worker, client = await _two(open_engine, store_url)
    waits = await Caller(worker).waiting()
    (job,) = await submit(client, new_job())

    waits.cancel()
    await asyncio.wait({waits})
    await worker.close()

    other = Caller(client, SOON)
    claims = [] if waits.cancelled() else waits.result().claims
    assert _ids(claims or await other.taken()) == [job]
