"""Claims that wait at the server: made with the news, never lost, never made when not wanted."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import redis

from lamplighter import runtime
from lamplighter.connect import connect
from lamplighter.model.errors import StoreUnreachable
from lamplighter.model.job import NewJob
from lamplighter.model.outcome import Released
from lamplighter.port.conformance.builders import new_job, request
from lamplighter.port.patience import Patience
from lamplighter.port.store import Engine, queue_topic
from lamplighter.port.values import Claimed, ClaimRequest
from lamplighter.worker import link
from tests.unit.worker.test_claimer import Bench

TOPICS = [queue_topic("default")]
LONG = 20.0
WAIT = 7.0
"""Not longer than a quarter of the usual lease."""


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


class Caller:
    """One who claims and waits, and asks again."""

    def __init__(self, engine: Engine, seconds: float = WAIT, **asked) -> None:
        self.engine = engine
        self.patience = Patience(seconds)
        self.asked = {"limit": 5, **asked}

    def ask(self) -> ClaimRequest:
        return request(**self.asked)

    async def claim(self) -> Claimed:
        return await self.engine.jobs.claim(self.ask(), self.patience)

    async def taken(self) -> list[str]:
        """Ids of the first jobs it gets."""
        async with asyncio.timeout(LONG):
            while not (answer := await self.claim()).claims:
                pass
        return [claim.job.id for claim in answer.claims]

    async def begin(self) -> asyncio.Task[Claimed]:
        """Begin to wait, where the server knows the script, as it does by then."""
        assert not (await self.claim()).claims
        return asyncio.create_task(self.claim())


def elsewhere(url: str, job: NewJob) -> None:
    """Submit a job while nothing else happens in this event loop."""

    async def submit() -> None:
        engine = connect(url)
        await engine.open()
        await engine.jobs.submit([job])
        await engine.close()

    thread = threading.Thread(target=lambda: asyncio.run(submit()))
    thread.start()
    thread.join()


def ids(answer: Claimed) -> list[str]:
    return [claim.job.id for claim in answer.claims]


async def state_of(engine: Engine, job: str) -> str:
    record = await engine.inspector.job(job)
    assert record is not None
    return record.state


async def test_the_job_comes_with_the_word(engines, admin: redis.Redis, parked):
    worker, client = engines
    caller = Caller(worker)
    waiting = await caller.begin()
    await parked()
    scripts = calls(admin)
    job = new_job()
    await client.jobs.submit([job])

    answer = await waiting

    assert ids(answer) == [job.id]
    assert calls(admin) == scripts + 2, "the submission, and the claim that was there already"
    assert await state_of(client, job.id) == "running"


async def test_what_comes_with_the_word_has_the_nonce_of_the_claim(engines, parked):
    worker, client = engines
    patience, asked = Patience(WAIT), request(limit=5)
    await worker.jobs.claim(request(limit=5), patience)
    waiting = asyncio.create_task(worker.jobs.claim(asked, patience))
    await parked()
    await client.jobs.submit([new_job()])
    answer = await waiting
    assert answer.claims[0].fence.nonce == asked.nonce
    assert ids(await worker.jobs.claim(asked)) == ids(answer), "its repeat gives the same"


async def test_it_takes_one_and_says_that_there_is_more(engines, parked):
    worker, client = engines
    caller = Caller(worker)
    waiting = await caller.begin()
    await parked()
    await client.jobs.submit([new_job() for _ in range(3)])
    await client.wakeup.notify(TOPICS[0], jobs={"work": 3})
    answer = await waiting
    assert len(answer.claims) == 1
    assert answer.poll_after_ms == 0
    assert len((await caller.claim()).claims) == 2


async def test_after_its_time_it_is_made_and_the_next_waits_again(engines, admin, parked):
    worker, client = engines
    caller = Caller(worker, 0.3)
    waiting = await caller.begin()
    await parked()
    assert not ids(await waiting)

    following = asyncio.create_task(caller.claim())
    await parked()
    job = new_job()
    await client.jobs.submit([job])
    assert ids(await following) == [job.id]


async def test_what_nobody_told_of_is_taken_after_its_time(engines, parked):
    worker, client = engines
    waiting = await Caller(worker, 0.5).begin()
    await parked()
    job = replace(new_job(), run_at_ms=1)  # nobody is told of it
    await client.jobs.submit([job])
    assert ids(await waiting) == [job.id]


async def test_what_is_not_due_yet_is_taken_when_it_is(engines, parked):
    worker, client = engines
    job = replace(new_job(), delay_ms=400)
    await client.jobs.submit([job])
    before = runtime.monotonic()
    waiting = await Caller(worker).begin()
    await parked()
    assert ids(await waiting) == [job.id]
    assert 0.3 < runtime.monotonic() - before < WAIT / 2


async def test_one_that_is_withdrawn_takes_nothing(engines, parked):
    worker, client = engines
    caller = Caller(worker)
    waiting = await caller.begin()
    await parked()
    caller.patience.hurry()
    assert not ids(await waiting)
    job = new_job()
    await client.jobs.submit([job])
    await client.wakeup.notify(TOPICS[0])
    await asyncio.sleep(0.1)
    assert await state_of(client, job.id) == "waiting"


async def test_one_that_is_withdrawn_too_late_gives_what_it_took(engines, url, parked):
    worker, _ = engines
    caller = Caller(worker)
    waiting = await caller.begin()
    await parked()
    job = new_job()
    elsewhere(url, job)
    caller.patience.hurry()
    assert ids(await waiting) == [job.id]


async def test_one_that_is_cancelled_takes_nothing(engines, admin: redis.Redis, parked, until):
    worker, client = engines
    waiting = await Caller(worker).begin()
    blocked = await parked()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    await until(lambda: not worker.wakeup._behind)
    job = new_job()
    await client.jobs.submit([job])
    admin.client_unblock(int(blocked))  # what is behind that call would be made now
    await asyncio.sleep(0.1)
    assert await state_of(client, job.id) == "waiting"


async def test_one_that_is_cancelled_too_late_hands_back_what_it_took(engines, url, parked):
    worker, client = engines
    waiting = await Caller(worker).begin()
    await parked()
    job = new_job()
    elsewhere(url, job)  # its answer is on its way, and not read yet
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    await worker.close()
    assert await state_of(client, job.id) == "waiting"
    assert await Caller(client).taken() == [job.id]


async def test_what_it_took_is_given_to_its_repeat_when_nobody_could_ask(
    engines, parked, monkeypatch: pytest.MonkeyPatch
):
    worker, client = engines
    patience, asked = Patience(WAIT), request(limit=5)
    assert not (await worker.jobs.claim(request(limit=5), patience)).claims
    waiting = asyncio.create_task(worker.jobs.claim(asked, patience))
    await parked()

    async def away(*_) -> None:
        raise StoreUnreachable("away", hint="")

    with monkeypatch.context() as patched:
        patched.setattr(worker.wakeup.ear(), "answer", away)
        job = new_job()
        await client.jobs.submit([job])
        with pytest.raises(StoreUnreachable):
            await waiting

    assert ids(await worker.jobs.claim(replace(asked, limit=0), patience)) == [job.id]


async def test_one_that_could_not_be_withdrawn_takes_nothing_after_its_repeat(
    engines, admin: redis.Redis, parked, monkeypatch: pytest.MonkeyPatch
):
    worker, client = engines
    patience, asked = Patience(WAIT), request(limit=5)
    assert not (await worker.jobs.claim(request(limit=5), patience)).claims
    waiting = asyncio.create_task(worker.jobs.claim(asked, patience))
    blocked = await parked()

    async def away(*_) -> None:
        raise StoreUnreachable("away", hint="")

    with monkeypatch.context() as patched:
        patched.setattr(worker.wakeup.ear(), "withdraw", away)
        patience.hurry()
        with pytest.raises(StoreUnreachable):
            await waiting
    assert not ids(await worker.jobs.claim(replace(asked, limit=0), patience))

    job = new_job()
    await client.jobs.submit([job])
    admin.client_unblock(int(blocked))
    await asyncio.sleep(0.1)
    assert await state_of(client, job.id) == "waiting"


async def test_a_store_that_is_closed_leaves_no_claim(engines, admin: redis.Redis, parked):
    worker, client = engines
    waiting = await Caller(worker).begin()
    await parked()
    waiting.cancel()
    await asyncio.wait({waiting})
    await worker.close()
    job = new_job()
    await client.jobs.submit([job])
    await asyncio.sleep(0.1)
    assert await state_of(client, job.id) == "waiting"


async def test_a_connection_that_breaks_costs_no_job(engines, admin: redis.Redis, parked):
    worker, client = engines
    caller = Caller(worker, 2.0)
    waiting = await caller.begin()
    blocked = await parked()
    admin.client_kill_filter(_id=blocked)
    job = new_job()
    await client.jobs.submit([job])
    found = ids(await waiting) or await caller.taken()
    assert found == [job.id]


async def test_a_server_that_forgot_the_script_is_taught_again(engines, admin: redis.Redis, parked):
    worker, client = engines
    caller = Caller(worker)
    waiting = await caller.begin()
    await parked()
    admin.script_flush()
    job = new_job()
    await client.jobs.submit([job])
    found = ids(await waiting) or await caller.taken()
    assert found == [job.id]


async def test_nothing_waits_at_the_server_that_could_be_old_when_it_is_made(engines, admin):
    worker, client = engines
    caller = Caller(worker, 1.0, lease_ms=3_000)
    scripts = calls(admin)
    waiting = await caller.begin()
    await asyncio.sleep(0.2)
    job = new_job()
    await client.jobs.submit([job])
    assert not ids(await waiting), "it only waited"
    assert await caller.taken() == [job.id]
    assert calls(admin) == scripts + 4, "two claims, a wait and the submission"


async def test_of_two_that_wait_one_is_at_the_server_and_both_are_served(engines, parked):
    worker, client = engines
    callers = [Caller(worker), Caller(worker, types=("other",))]
    waiting = [await caller.begin() for caller in callers]
    await parked()
    jobs = [new_job(), new_job(type="other")]
    await client.jobs.submit(jobs[:1])
    await client.jobs.submit(jobs[1:])
    found = [
        ids(await task) or await caller.taken()
        for task, caller in zip(waiting, callers, strict=True)
    ]
    assert found == [[job.id] for job in jobs]


# ── of a worker ──────────────────────────────────────────────────────────────────────────────


class Slow:
    """The jobs of a store whose answers to claims can be held up, once they are there."""

    def __init__(self, jobs) -> None:
        self._jobs = jobs
        self.gate = asyncio.Event()
        self.gate.set()
        self.held = asyncio.Event()

    async def claim(self, asked, patience):
        answer = await self._jobs.claim(asked, patience)
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


async def test_a_worker_that_stops_leaves_no_claim_that_waits(
    engines, bench, admin: redis.Redis, parked
):
    _, client = engines
    bench.claimer.start()
    blocked = await parked()
    await bench.claimer.stop()
    job = await submit(client)
    admin.client_unblock(int(blocked))
    assert await Caller(client).taken() == [job]


async def test_a_worker_without_time_to_stop_leaves_no_claim_that_waits(
    engines, bench, admin: redis.Redis, parked, until
):
    worker, client = engines
    bench.claimer.start()
    blocked = await parked()
    stop = asyncio.create_task(bench.claimer.stop())
    await asyncio.sleep(0)
    stop.cancel()
    await asyncio.wait({stop})
    await until(lambda: not worker.wakeup._behind)
    job = await submit(client)
    admin.client_unblock(int(blocked))
    assert await Caller(client).taken() == [job]


async def test_a_store_that_is_away_does_not_hold_up_the_stop(
    engines, bench, parked, monkeypatch: pytest.MonkeyPatch
):
    worker, _ = engines
    silence = asyncio.Event()

    async def away(*_) -> None:
        await silence.wait()

    monkeypatch.setattr("lamplighter.engines.redis.verbs.claim_later._WITHDRAW_SECONDS", 0.01)
    bench.claimer.start()
    await parked()
    monkeypatch.setattr(worker.wakeup.ear(), "withdraw", away)
    async with asyncio.timeout(1.0):
        await bench.claimer.stop()
    silence.set()


async def test_a_worker_that_stops_hands_back_what_its_claim_has_taken(engines, bench, parked):
    _, client = engines
    bench.claimer.start()
    await parked()
    bench.jobs.gate.clear()
    await submit(client)
    async with asyncio.timeout(LONG):
        await bench.jobs.held.wait()
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
    await until(lambda: bench.link.of(link.Claimed))
    assert [taken[0] for taken in bench.link.of(link.Claimed)[0].jobs] == [job]


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
