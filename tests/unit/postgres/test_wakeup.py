"""Wake-ups by NOTIFY: few, brief, and never needed."""

import asyncio
from collections.abc import AsyncIterator, Callable

import psycopg
import pytest

from lamplighter.engines.postgres import ear
from lamplighter.engines.postgres.address import parse
from lamplighter.engines.postgres.pool import Pools
from lamplighter.engines.postgres.wakeup import PostgresWakeup, channel_of
from lamplighter.model.errors import StoreClosed
from tests.servers.postgres import Server
from tests.servers.stores import with_parts

SOON = 0.02
LONG = 20.0
LISTENERS = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN %%' AND query LIKE %s"

Make = Callable[[str], PostgresWakeup]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made: list[tuple[PostgresWakeup, Pools]] = []

    def one(url: str) -> PostgresWakeup:
        address = parse(url)
        pools = Pools(address, LONG, None)
        made.append((PostgresWakeup(address, pools), pools))
        return made[-1][0]

    yield one
    for wakeup, pools in made:
        await wakeup.close()
        await pools.close()


@pytest.fixture
def heard(admin: psycopg.Connection, url: str) -> Callable[[], list[str]]:
    """What was sent on the channel of this store since the last look."""
    admin.execute(f'LISTEN "{channel_of(parse(url).schema)}"')
    return lambda: [note.payload for note in admin.notifies(timeout=0.3)]


def listeners(admin: psycopg.Connection, url: str) -> list[int]:
    channel = channel_of(parse(url).schema)
    return [row[0] for row in admin.execute(LISTENERS, (f"%{channel}%",)).fetchall()]


async def test_news_reaches_another_process_and_its_own(url: str, make: Make):
    one, other = make(url), make(url)
    await one.wait(["a"], SOON)
    await other.wait(["a"], SOON)

    await one.notify("a")

    assert await one.wait(["a"], LONG)
    assert await other.wait(["a"], LONG)
    assert not await one.wait(["a"], SOON)
    assert not await other.wait(["a"], SOON)


async def test_a_burst_is_told_at_once_and_again_at_its_end_but_not_each_time(
    url: str, make: Make, heard: Callable[[], list[str]]
):
    wakeup = make(url)
    for _ in range(100):
        await wakeup.notify("a")
        await wakeup.notify("b")

    payloads = await asyncio.to_thread(heard)

    # The first topic goes out alone or with the other, and everything after it once more.
    assert len(set(payloads)) == 2
    assert len(payloads) <= 4
    assert all(len(payload) < 100 for payload in payloads)


async def test_steady_news_is_sent_at_most_every_ten_milliseconds(
    url: str, make: Make, heard: Callable[[], list[str]]
):
    wakeup = make(url)
    loop = asyncio.get_running_loop()
    began = loop.time()
    while loop.time() < began + 0.3:
        await wakeup.notify("a")
        await asyncio.sleep(0.001)

    assert 1 < len(await asyncio.to_thread(heard)) <= 32


async def test_very_many_topics_are_told_as_one(
    url: str, make: Make, heard: Callable[[], list[str]]
):
    wakeup, other = make(url), make(url)
    await other.wait(["topic 7"], SOON)
    for number in range(1000):
        await wakeup.notify(f"topic {number}")

    assert await other.wait(["topic 7"], LONG)
    assert len(await asyncio.to_thread(heard)) <= 3


async def test_what_was_told_just_before_closing_is_sent(
    url: str, make: Make, heard: Callable[[], list[str]]
):
    wakeup = make(url)
    await wakeup.notify("a")
    await wakeup.notify("b")

    await wakeup.close()

    assert len(await asyncio.to_thread(heard)) == 2


async def test_telling_without_a_server_neither_fails_nor_waits(server: Server, make: Make):
    wakeup = make(server.url())
    server.stop()

    async with asyncio.timeout(1):
        for _ in range(100):
            await wakeup.notify("a")


async def test_who_only_tells_does_not_listen(url: str, make: Make, admin: psycopg.Connection):
    wakeup = make(url)
    await wakeup.notify("a")

    assert listeners(admin, url) == []


async def test_an_ear_that_is_cut_off_listens_again_and_says_that_there_may_be_news(
    url: str, make: Make, admin: psycopg.Connection
):
    wakeup, other = make(url), make(url)
    await wakeup.wait(["a"], SOON)
    (pid,) = listeners(admin, url)
    admin.execute("SELECT pg_terminate_backend(%s)", (pid,))

    assert await wakeup.wait(["a"], LONG)

    await other.notify("a")
    assert await wakeup.wait(["a"], LONG)


async def test_an_ear_outlives_the_server(server: Server, make: Make):
    wakeup, other = make(server.url()), make(server.url())
    await wakeup.wait(["a"], SOON)

    await asyncio.to_thread(server.restart)

    assert await wakeup.wait(["a"], LONG)
    await other.notify("a")
    assert await wakeup.wait(["a"], LONG)


async def test_without_wake_ups_a_wait_is_only_a_wait(
    url: str, make: Make, heard: Callable[[], list[str]], admin: psycopg.Connection
):
    wakeup = make(with_parts(url, listen="off"))
    assert not await wakeup.wait(["a"], SOON)
    await wakeup.notify("a")

    assert await wakeup.wait(["a"], SOON)  # in the same process it costs nothing
    assert await asyncio.to_thread(heard) == []


async def test_an_ear_that_hears_nothing_gives_its_connection_back(
    url: str, make: Make, admin: psycopg.Connection, until, monkeypatch: pytest.MonkeyPatch
):
    # A pooler gives the connection that listens to somebody else: as good as another channel.
    monkeypatch.setattr(ear, "_PROBE_SECONDS", 0.05)
    wakeup = make(url)
    own = wakeup._ear()
    own._channel = channel_of("elsewhere")
    await wakeup.wait(["a"], SOON)

    await until(lambda: own._deaf and own._connection is None)

    assert not await wakeup.wait(["a"], SOON)


async def test_an_ear_that_hears_keeps_its_connection(
    url: str, make: Make, admin: psycopg.Connection, until, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ear, "_PROBE_SECONDS", 0.05)
    wakeup = make(url)
    await wakeup.wait(["a"], SOON)

    await until(lambda: wakeup._ear()._proven)

    assert len(listeners(admin, url)) == 1
    assert not wakeup._ear()._deaf


async def test_news_of_topics_that_nobody_ever_waited_for_is_not_kept(url: str, make: Make):
    wakeup = make(url)
    await wakeup.wait(["a"], SOON)
    for number in range(1000):
        await wakeup.notify(f"topic {number}")

    assert not wakeup._ear()._news


async def test_two_stores_in_one_database_do_not_wake_each_other(url: str, make: Make):
    one, other = make(url), make(with_parts(url, schema="another_one"))
    await other.wait(["a"], SOON)
    await one.notify("a")
    await one.close()

    assert not await other.wait(["a"], 0.2)


async def test_a_closed_wake_up_says_so_and_tells_nobody(url: str, make: Make):
    wakeup = make(url)
    await wakeup.wait(["a"], SOON)
    await wakeup.close()

    await wakeup.notify("a")
    with pytest.raises(StoreClosed):
        await wakeup.wait(["a"], SOON)
