"""Wake-ups: told once, never missed, nothing left behind, and quiet while everybody works."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import redis

from lamplighter.connect import connect
from lamplighter.engines.redis.address import parse
from lamplighter.engines.redis.wakeup import hash_of
from lamplighter.model.errors import StoreClosed
from lamplighter.port.store import Engine
from tests.servers.valkey import Server

SOON = 0.01
LONG = 20.0
MakeEngine = Callable[..., Awaitable[Engine]]


@pytest.fixture
async def opened() -> AsyncIterator[MakeEngine]:
    engines: list[Engine] = []

    async def make(url: str, **options: float) -> Engine:
        engines.append(connect(url, **options))
        await engines[-1].open()
        return engines[-1]

    yield make
    for engine in engines:
        await engine.close()


def prefix(url: str) -> str:
    return "{" + parse(url).prefix + ":0}:"


def ears(admin: redis.Redis, url: str, topic: str) -> int:
    """How many wait for a topic, as the store knows it."""
    profiles = admin.smembers(f"{prefix(url)}profiles:{hash_of(topic)}")
    return sum(admin.zcard(f"{prefix(url)}waiters:{one.decode()}") for one in profiles)


async def waits(admin: redis.Redis, url: str, topic: str, until, count: int = 1) -> None:
    await until(lambda: ears(admin, url, topic) == count)


async def test_everybody_who_waits_is_woken(
    url: str, admin: redis.Redis, opened: MakeEngine, until
):
    speaker, *hearers = [await opened(url) for _ in range(6)]
    waiting = [asyncio.create_task(one.wakeup.wait(["a", "b"], LONG)) for one in hearers]
    await waits(admin, url, "b", until, 5)

    await speaker.wakeup.notify("b")

    assert await asyncio.gather(*waiting) == [True] * 5


async def test_one_job_wakes_one_of_many(url: str, admin: redis.Redis, opened: MakeEngine, until):
    speaker, *hearers = [await opened(url) for _ in range(6)]
    waiting = [asyncio.create_task(one.wakeup.wait(["a"], LONG, types=("t",))) for one in hearers]
    await waits(admin, url, "a", until, 5)

    await speaker.wakeup.notify("a", jobs={"t": 1})
    done, others = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    await waits(admin, url, "a", until, 4)
    assert [task.result() for task in done] == [True]

    await speaker.wakeup.notify("a", jobs={"t": 3})
    await until(lambda: sum(task.done() for task in others) == 3)
    assert ears(admin, url, "a") == 1
    await speaker.wakeup.notify("a", jobs={"t": 500})
    assert all(await asyncio.gather(*others))


async def test_a_job_that_somebody_was_told_of_is_no_news_to_those_who_wait_later(
    url: str, admin: redis.Redis, opened: MakeEngine, until
):
    speaker, asleep, late = [await opened(url) for _ in range(3)]
    await late.wakeup.wait(["a"], SOON, types=("t",))
    waiting = asyncio.create_task(asleep.wakeup.wait(["a"], LONG, types=("t",)))
    await waits(admin, url, "a", until, 2)

    await speaker.wakeup.notify("a", jobs={"t": 1})

    assert await waiting
    assert not await late.wakeup.wait(["a"], 0.1, types=("t",))
    assert not await asleep.wakeup.wait(["a"], 0.1, types=("t",))


@pytest.mark.parametrize("jobs", [{"t": 2}, {"t": 1, "u": 1}])
async def test_a_job_that_nobody_was_told_of_is_news_to_those_who_wait_later(
    url: str, admin: redis.Redis, opened: MakeEngine, until, jobs: dict[str, int]
):
    speaker, asleep, late = [await opened(url) for _ in range(3)]
    await late.wakeup.wait(["a"], 0)
    waiting = asyncio.create_task(asleep.wakeup.wait(["a"], LONG, types=("t",)))
    await waits(admin, url, "a", until, 2)
    await asyncio.sleep(SOON)  # Now the store knows that the other has ceased to wait.

    await speaker.wakeup.notify("a", jobs=jobs)

    assert await waiting
    assert await late.wakeup.wait(["a"], LONG)
    assert not await late.wakeup.wait(["a"], SOON)


async def test_of_more_jobs_than_are_told_of_at_once_those_hear_who_wait_later(
    url: str, admin: redis.Redis, opened: MakeEngine, until
):
    speaker, late = await opened(url), await opened(url)
    await late.wakeup.wait(["a"], 0)
    (profile,) = admin.smembers(f"{prefix(url)}profiles:{hash_of('a')}")
    waiters = f"{prefix(url)}waiters:{profile.decode()}"
    admin.zadd(waiters, {f"somebody {n}": 4e12 for n in range(70)})

    await speaker.wakeup.notify("a", jobs={"t": 500})
    await until(lambda: admin.zcount(waiters, 4e12, "+inf") == 6)

    assert await late.wakeup.wait(["a"], LONG)


async def test_a_word_that_comes_when_nobody_waits_is_kept_for_the_next_wait(
    url: str, admin: redis.Redis, opened: MakeEngine, until
):
    speaker, hearer = await opened(url), await opened(url)
    assert not await hearer.wakeup.wait(["a"], SOON, types=("t",))
    (profile,) = admin.smembers(f"{prefix(url)}profiles:{hash_of('a')}")
    waiters = f"{prefix(url)}waiters:{profile.decode()}"
    (name,) = admin.zrange(waiters, 0, -1)
    # As if its wait were only just over.
    admin.zadd(waiters, {name: 4e12})

    await speaker.wakeup.notify("a", jobs={"t": 1})
    await until(lambda: admin.zcard(waiters) == 0)
    await until(lambda: not admin.exists(f"{prefix(url)}wake:{name.decode()}"))

    assert await hearer.wakeup.wait(["a"], LONG, types=("t",))
    assert not await hearer.wakeup.wait(["a"], SOON, types=("t",))


async def test_a_server_that_counts_from_an_earlier_number_is_heard_once_it_is_connected_again(
    url: str, admin: redis.Redis, opened: MakeEngine, until
):
    speaker, hearer = await opened(url), await opened(url)
    await hearer.wakeup.wait(["a"], SOON)
    await speaker.wakeup.notify("a")
    assert await hearer.wakeup.wait(["a"], LONG)
    admin.set(f"{prefix(url)}told", 10)
    admin.delete(f"{prefix(url)}news:{hash_of('a')}")
    (ear,) = [one for one in admin.client_list() if one["cmd"] == "blpop"]
    waiting = asyncio.create_task(hearer.wakeup.wait(["a"], LONG))
    await waits(admin, url, "a", until)

    admin.client_kill_filter(ear["id"])
    assert await waiting
    waiting = asyncio.create_task(hearer.wakeup.wait(["a"], LONG))
    await waits(admin, url, "a", until)
    await speaker.wakeup.notify("a")

    assert await waiting
    assert not await hearer.wakeup.wait(["a"], SOON)


async def test_a_job_wakes_who_can_run_it(url: str, admin: redis.Redis, opened: MakeEngine, until):
    speaker, able, unable, other = [await opened(url) for _ in range(4)]
    wakes = asyncio.create_task(able.wakeup.wait(["a", "b"], LONG, types=("mail", "bill")))
    sleeps = [
        asyncio.create_task(unable.wakeup.wait(["a"], LONG, types=("mail",))),
        asyncio.create_task(other.wakeup.wait(["b"], LONG, types=("bill",))),
    ]
    await waits(admin, url, "a", until, 2)
    await waits(admin, url, "b", until, 2)

    await speaker.wakeup.notify("a", jobs={"bill": 7})

    assert await wakes
    assert (ears(admin, url, "a"), ears(admin, url, "b")) == (1, 1)
    await speaker.wakeup.notify("a")
    await speaker.wakeup.notify("b")
    assert await asyncio.gather(*sleeps) == [True, True]


async def test_who_can_run_everything_is_woken_for_anything(
    url: str, admin: redis.Redis, opened: MakeEngine, until
):
    speaker, hearer = await opened(url), await opened(url)
    waiting = asyncio.create_task(hearer.wakeup.wait(["a"], LONG))
    await waits(admin, url, "a", until)

    await speaker.wakeup.notify("a", jobs={"bill": 1})

    assert await waiting


async def test_who_stops_to_wait_takes_no_word_from_another(
    url: str, admin: redis.Redis, opened: MakeEngine, until
):
    engine = await opened(url)
    waiting = asyncio.create_task(engine.wakeup.wait(["a"], LONG))
    await waits(admin, url, "a", until)

    waiting.cancel()

    await waits(admin, url, "a", until, 0)


async def test_a_store_that_was_emptied_is_told_again_who_waits_for_what(
    url: str, admin: redis.Redis, opened: MakeEngine, until
):
    speaker, hearer = await opened(url), await opened(url)
    await hearer.wakeup.wait(["a"], SOON, types=("bill",))
    for key in [*admin.scan_iter(f"{prefix(url)}knows:*"), *admin.scan_iter(f"{prefix(url)}pro*")]:
        admin.delete(key)

    waiting = asyncio.create_task(hearer.wakeup.wait(["a"], LONG, types=("bill",)))
    await waits(admin, url, "a", until)
    await speaker.wakeup.notify("a", jobs={"bill": 1})

    assert await waiting


async def test_several_who_wait_in_one_engine_are_all_woken(
    url: str, admin: redis.Redis, opened: MakeEngine, until
):
    speaker, hearer = await opened(url), await opened(url)
    waiting = [asyncio.create_task(hearer.wakeup.wait(["a"], LONG)) for _ in range(5)]
    other = asyncio.create_task(hearer.wakeup.wait(["b"], 0.5))
    await waits(admin, url, "b", until)
    await waits(admin, url, "a", until)

    await speaker.wakeup.notify("a")

    assert await asyncio.gather(*waiting) == [True] * 5
    assert not await other


async def test_who_stops_to_wait_does_not_take_the_name_of_others_in_the_engine(
    url: str, admin: redis.Redis, opened: MakeEngine, until
):
    speaker, hearer = [await opened(url) for _ in range(2)]
    first, second = [asyncio.create_task(hearer.wakeup.wait(["a"], LONG)) for _ in range(2)]
    await waits(admin, url, "a", until)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    # By the end of another wait, what it sends is sent.
    await hearer.wakeup.wait(["b"], SOON)
    assert ears(admin, url, "a") == 1

    await speaker.wakeup.notify("a")

    assert await second


async def test_who_is_at_work_is_told_nothing_and_misses_nothing(
    url: str, admin: redis.Redis, opened: MakeEngine, until
):
    speaker, worker = await opened(url), await opened(url)
    waiting = asyncio.create_task(worker.wakeup.wait(["a"], LONG))
    await waits(admin, url, "a", until)
    await speaker.wakeup.notify("a")
    assert await waiting

    first = admin.get(f"{prefix(url)}told")
    await speaker.wakeup.notify("a")
    await until(lambda: admin.get(f"{prefix(url)}told") != first)

    assert not list(admin.scan_iter(match=f"{prefix(url)}wake:*", count=1000))
    assert await worker.wakeup.wait(["a"], LONG)


async def test_much_news_at_once_is_sent_together(url: str, admin: redis.Redis, opened: MakeEngine):
    engine = await opened(url)
    before = admin.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0)
    for n in range(1_000):
        await engine.wakeup.notify(f"topic {n % 10}")
    await engine.close()

    after = admin.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0)
    assert after - before <= 10
    assert len(list(admin.scan_iter(match=f"{prefix(url)}news:*", count=1000))) == 10


async def test_a_wait_that_is_over_is_forgotten_by_the_store(
    url: str, admin: redis.Redis, opened: MakeEngine
):
    now = [1_000_000]
    engine = connect(url, clock_ms=lambda: now[0])
    await engine.open()
    await engine.wakeup.wait(["a"], SOON)
    now[0] += 60_000

    await engine.wakeup.notify("a")
    await engine.close()

    assert ears(admin, url, "a") == 0
    assert not list(admin.scan_iter(match=f"{prefix(url)}wake:*"))


async def test_everything_expires_but_the_counter(url: str, admin: redis.Redis, opened: MakeEngine):
    engine = await opened(url)
    await engine.wakeup.wait(["a"], SOON)
    await engine.wakeup.notify("a")
    await engine.wakeup.wait(["b"], SOON)
    await engine.close()

    found = {key: admin.pttl(key) for key in admin.scan_iter(match=f"{prefix(url)}*", count=1000)}
    lasting = {key.decode().removeprefix(prefix(url)) for key, left in found.items() if left < 0}
    assert {name.partition(":")[0] for name in lasting} == {"meta", "mark", "told"}


async def test_hints_are_lost_quietly_while_the_server_is_away(server: Server, opened: MakeEngine):
    engine = await opened(server.url(), deadline=1.0)
    await engine.wakeup.wait(["a"], SOON)
    server.stop()

    await engine.wakeup.notify("a")
    assert not await engine.wakeup.wait(["a"], 0.05)

    await asyncio.to_thread(server.run)


async def test_who_waits_through_a_restart_is_woken_because_something_may_have_been_missed(
    server: Server, opened: MakeEngine, until
):
    engine = await opened(server.url())
    waiting = asyncio.create_task(engine.wakeup.wait(["a"], LONG))
    with server.client() as admin:
        await until(lambda: any(one["cmd"] == "blpop" for one in admin.client_list()))
    server.kill9()

    await asyncio.to_thread(server.run)

    assert await waiting


async def test_news_is_heard_again_after_a_restart(server: Server, opened: MakeEngine, until):
    speaker, hearer = await opened(server.url()), await opened(server.url())
    await hearer.wakeup.wait(["a"], SOON)
    await asyncio.to_thread(server.restart)
    while await hearer.wakeup.wait(["a"], 0.2):
        pass
    waiting = asyncio.create_task(hearer.wakeup.wait(["a"], LONG))
    with server.client() as admin:
        await waits(admin, server.url(), "a", until)

    await speaker.wakeup.notify("a")

    assert await waiting


async def test_a_store_that_was_emptied_and_made_anew_still_tells_news(
    server: Server, opened: MakeEngine, until
):
    speaker, hearer = await opened(server.url()), await opened(server.url())
    await hearer.wakeup.wait(["a"], SOON)
    for _ in range(5):
        await speaker.wakeup.notify("a")
        assert await hearer.wakeup.wait(["a"], LONG)
    with server.client() as admin:
        admin.flushall()
    await connect(server.url()).migrate()

    await speaker.wakeup.notify("a")

    assert await hearer.wakeup.wait(["a"], LONG)


async def test_closing_ends_the_listening_connection(
    url: str, admin: redis.Redis, opened: MakeEngine, until
):
    before = len(admin.client_list())
    engine = await opened(url)
    await engine.wakeup.wait(["a"], SOON)

    await engine.close()

    await until(lambda: len(admin.client_list()) <= before)
    with pytest.raises(StoreClosed):
        await engine.wakeup.wait(["a"], SOON)


def test_each_event_loop_hears_for_itself(url: str):
    engine = connect(url)

    async def turn() -> bool:
        await engine.open()
        await engine.wakeup.wait(["a"], SOON)
        await engine.wakeup.notify("a")
        return await engine.wakeup.wait(["a"], LONG)

    assert asyncio.run(turn())
    assert asyncio.run(turn())
    asyncio.run(engine.close())
