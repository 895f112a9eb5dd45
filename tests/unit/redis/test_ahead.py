"""Claims that wait at the server: made with the news, never lost, never made when not wanted."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import redis

from lamplighter import runtime
from lamplighter.connect import connect
from lamplighter.model.outcome import Released
from lamplighter.port.conformance.builders import new_job, request
from lamplighter.port.store import Engine, queue_topic
from lamplighter.worker.link import Claimed
from tests.unit.worker.test_claimer import Bench

TOPICS = [queue_topic("default")]
LONG = 20.0


@pytest.fixture
async def engines(url: str) -> AsyncIterator[tuple[Engine, Engine]]:
    """A worker's store, and that of somebody who submits."""
    pair = connect(url), connect(url)
    for engine in pair:
        await engine.open()
    yield pair
    for engine in pair:
        await engine.close()


@pytest.fixture
def parked(admin: redis.Redis, until):
    """Wait until a claim is at the server, behind a client that is blocked."""

    async def wait() -> str:
        def blocked() -> list[str]:
            return [one["id"] for one in admin.client_list() if "b" in one["flags"]]

        await until(blocked)
        await asyncio.sleep(0.1)  # it is sent right behind; nothing tells that it is there
        (found,) = blocked()
        return found

    return wait


def calls(admin: redis.Redis) -> int:
    return int(admin.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"])


async def begin(worker: Engine, asked, timeout: float = LONG) -> asyncio.Task[bool]:
    await worker.jobs.claim(asked)  # so that the server knows the script, as it does by then
    return asyncio.create_task(worker.wakeup.wait(TOPICS, timeout, types=asked.types, ahead=asked))


async def test_the_job_comes_with_the_word(engines, admin: redis.Redis, parked):
    worker, client = engines
    asked = request(limit=5)
    before = runtime.boottime()
    waiting = await begin(worker, asked)
    await parked()
    job = new_job()
    await client.jobs.submit([job])
    assert await waiting

    scripts = calls(admin)
    answer = await worker.jobs.claim(asked)

    assert [claim.job.id for claim in answer.claims] == [job.id]
    assert answer.claims[0].fence.nonce == asked.nonce
    assert calls(admin) == scripts, "the claim had been made already"
    assert answer.sent_at is not None
    assert before < answer.sent_at < runtime.boottime()
    record = await client.inspector.job(job.id)
    assert record is not None
    assert record.state == "running"


async def test_it_takes_one_and_says_that_there_is_more(engines, parked):
    worker, client = engines
    asked = request(limit=5)
    waiting = await begin(worker, asked)
    await parked()
    await client.jobs.submit([new_job() for _ in range(3)])
    await client.wakeup.notify(TOPICS[0], jobs={"work": 3})
    assert await waiting
    answer = await worker.jobs.claim(asked)
    assert len(answer.claims) == 1
    assert answer.poll_after_ms == 0
    assert len((await worker.jobs.claim(request(limit=5))).claims) == 2


async def test_after_its_time_the_same_claim_is_made_in_the_ordinary_way(engines, parked):
    worker, client = engines
    asked = request(limit=5)
    waiting = await begin(worker, asked, timeout=0.3)
    await parked()
    assert not await waiting
    assert not (await worker.jobs.claim(asked)).claims

    again = asyncio.create_task(worker.wakeup.wait(TOPICS, LONG, types=asked.types, ahead=asked))
    await asyncio.sleep(0.05)
    job = new_job()
    await client.jobs.submit([job])
    assert await again
    assert [claim.job.id for claim in (await worker.jobs.claim(asked)).claims] == [job.id]


async def test_what_the_ordinary_claim_took_is_not_taken_again(engines, parked):
    """Both are of one nonce: the one that comes second gives what the first has given."""
    worker, client = engines
    asked = request(limit=5)
    waiting = await begin(worker, asked, timeout=0.3)
    await parked()
    assert not await waiting
    first = new_job()
    await client.jobs.submit([replace(first, run_at_ms=1)])
    taken = await worker.jobs.claim(asked)
    assert [claim.job.id for claim in taken.claims] == [first.id]

    following = request(limit=5)
    waiting = asyncio.create_task(
        worker.wakeup.wait(TOPICS, LONG, types=asked.types, ahead=following)
    )
    await asyncio.sleep(0.05)
    second = new_job()
    await client.jobs.submit([second])
    assert await waiting
    assert [claim.job.id for claim in (await worker.jobs.claim(following)).claims] == [second.id]


async def test_one_that_is_withdrawn_takes_nothing(engines, parked):
    worker, client = engines
    asked = request(limit=5)
    waiting = await begin(worker, asked)
    await parked()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert not (await worker.jobs.claim(replace(asked, limit=0))).claims
    job = new_job()
    await client.jobs.submit([job])
    await client.wakeup.notify(TOPICS[0])
    await asyncio.sleep(0.1)
    record = await client.inspector.job(job.id)
    assert record is not None
    assert record.state == "waiting"


async def test_one_that_is_withdrawn_too_late_gives_what_it_took(engines, parked):
    worker, client = engines
    asked = request(limit=5)
    waiting = await begin(worker, asked)
    await parked()
    job = new_job()
    await client.jobs.submit([job])
    waiting.cancel()
    await asyncio.wait({waiting})
    answer = await worker.jobs.claim(replace(asked, limit=0))
    assert [claim.job.id for claim in answer.claims] == [job.id]


async def test_a_connection_that_breaks_costs_no_job(engines, admin: redis.Redis, parked):
    worker, client = engines
    asked = request(limit=5)
    waiting = await begin(worker, asked, timeout=2.0)
    blocked = await parked()
    admin.client_kill_filter(_id=blocked)
    job = new_job()
    await client.jobs.submit([job])
    await waiting
    assert [claim.job.id for claim in (await worker.jobs.claim(asked)).claims] == [job.id]


async def test_a_server_that_forgot_the_script_is_taught_again(engines, admin: redis.Redis, parked):
    worker, client = engines
    asked = request(limit=5)
    waiting = await begin(worker, asked)
    await parked()
    admin.script_flush()
    job = new_job()
    await client.jobs.submit([job])
    assert await waiting
    assert [claim.job.id for claim in (await worker.jobs.claim(asked)).claims] == [job.id]


async def test_its_time_at_the_server_is_a_part_of_the_lease(engines, parked, until):
    """What it takes late is not old: it is made again, and counts from then."""
    worker, client = engines
    asked = request(limit=5, lease_ms=1_000)
    waiting = await begin(worker, asked)
    await parked()
    await asyncio.sleep(0.6)
    job = new_job()
    await client.jobs.submit([job])
    assert await waiting
    answer = await worker.jobs.claim(asked)
    assert [claim.job.id for claim in answer.claims] == [job.id]
    assert answer.sent_at is not None
    assert runtime.boottime() - answer.sent_at < 0.5


# ── of a worker ──────────────────────────────────────────────────────────────────────────────


class Slow:
    """The jobs of a store whose answers to claims can be held up, once they are there."""

    def __init__(self, jobs) -> None:
        self._jobs = jobs
        self.gate = asyncio.Event()
        self.gate.set()
        self.held = asyncio.Event()

    async def claim(self, asked):
        answer = await self._jobs.claim(asked)
        if not self.gate.is_set():
            self.held.set()
            await self.gate.wait()
        return answer


@pytest.fixture
async def bench(engines, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """A claimer; its waits are short."""
    worker, _ = engines
    monkeypatch.setattr(worker, "jobs", Slow(worker.jobs))
    bench = Bench(engine=worker, lease=30.0, poll=0.5)
    yield bench
    bench.jobs.gate.set()
    await bench.claimer.stop()


async def held(bench: Bench) -> None:
    """Let the claim that follows a wait go on until it is let through."""
    bench.jobs.gate.clear()
    async with asyncio.timeout(LONG):
        await bench.jobs.held.wait()


async def submit(client: Engine) -> str:
    job = new_job()
    await client.jobs.submit([job])
    await client.wakeup.notify(TOPICS[0], jobs={"work": 1})
    return job.id


async def test_a_worker_that_stops_during_a_claim_leaves_none_behind(
    engines, bench, admin: redis.Redis, parked
):
    _, client = engines
    bench.claimer.start()
    blocked = await parked()
    await held(bench)
    stop = asyncio.create_task(bench.claimer.stop())
    await asyncio.sleep(0)
    bench.jobs.gate.set()
    await stop
    job = await submit(client)
    admin.client_unblock(int(blocked))  # what is behind that call would be made now
    answer = await client.jobs.claim(request(limit=5))
    assert [claim.job.id for claim in answer.claims] == [job]


async def test_a_worker_that_stops_hands_back_what_its_claim_has_taken(
    engines, bench, admin: redis.Redis, parked
):
    _, client = engines
    bench.claimer.start()
    blocked = await parked()
    await held(bench)
    job = await submit(client)
    admin.client_unblock(int(blocked))
    async with asyncio.timeout(LONG):
        while (await client.inspector.job(job)).state != "running":  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    stop = asyncio.create_task(bench.claimer.stop())
    await asyncio.sleep(0)
    bench.jobs.gate.set()
    await stop
    assert bench.ended == [(0, Released())]


async def test_a_worker_whose_leases_nobody_keeps_leaves_no_claim(engines, bench, parked, until):
    _, client = engines
    bench.claimer.start()
    await parked()
    bench.kept = False
    await until(lambda: bench.claimer._room_free is not None)
    job = await submit(client)
    answer = await client.jobs.claim(request(limit=5))
    assert [claim.job.id for claim in answer.claims] == [job]
    assert bench.link.said == []

    bench.kept = True
    bench.claimer.room_changed()
    job = await submit(client)
    await until(lambda: bench.link.of(Claimed))
    assert [taken[0] for taken in bench.link.of(Claimed)[0].jobs] == [job]


async def test_what_is_taken_while_nobody_keeps_leases_is_handed_back(
    engines, bench, parked, until
):
    _, client = engines
    bench.claimer.start()
    await parked()
    bench.kept = False
    await submit(client)
    await until(lambda: bench.claimer._room_free is not None)
    assert bench.ended == [(0, Released())]
