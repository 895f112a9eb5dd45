"""The transport: calls outlive what happens to connections, and end with their deadline."""

import asyncio
import os
import time
from collections.abc import Callable

import pytest
import redis

from lamplighter.engines.redis.transport import Transport
from lamplighter.model.errors import (
    StoreBusy,
    StoreUnreachable,
)
from tests.proxies.link import Link
from tests.servers.valkey import Server
from tests.unit.redis.looks import clients

LONG = 20.0
MakeTransport = Callable[..., Transport]
LOOK = ("look", 1, 1)


# ── what is sent, and what comes back ────────────────────────────────────────────────────────


async def test_a_script_gets_the_prefix_and_answers(transport: Transport):
    assert await transport.run("open", LOOK) == [b"none"]


async def test_a_server_that_does_not_know_the_script_is_given_it(
    transport: Transport, admin: redis.Redis
):
    await transport.run("open", LOOK)
    admin.script_flush()

    assert await transport.run("open", LOOK) == [b"none"]
    before = admin.info("commandstats").get("cmdstat_eval", {}).get("calls", 0)
    assert await transport.run("open", LOOK) == [b"none"]
    assert admin.info("commandstats").get("cmdstat_eval", {}).get("calls", 0) == before


async def test_many_calls_at_once_each_get_their_own_answer(transport: Transport):
    texts = [os.urandom(n * 37 % 5_000) for n in range(500)]

    assert await asyncio.gather(*(transport.command("ECHO", one) for one in texts)) == texts


async def test_texts_of_any_size_go_both_ways(transport: Transport):
    large = os.urandom(20_000_000)

    first = asyncio.create_task(transport.command("ECHO", large))
    second = asyncio.create_task(transport.command("ECHO", "small"))

    assert await first == large
    assert await second == b"small"


@pytest.mark.parametrize(("size", "goes_at_once"), [(20_000, True), (20, False)])
async def test_what_is_large_reaches_the_server_while_others_here_are_still_at_work(
    transport: Transport, admin: redis.Redis, size: int, *, goes_at_once: bool
):
    there: list[bool] = []
    name = f"text-{size}"  # the other case uses the same server

    async def others() -> None:
        deadline = time.monotonic() + (10.0 if goes_at_once else 0.2)
        while not admin.exists(name) and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251 - the loop is busy: that is the point
        there.append(bool(admin.exists(name)))

    await transport.command("ECHO", "connected")
    asked = [
        asyncio.create_task(transport.command("ECHO", "first")),
        asyncio.create_task(transport.command("SET", name, b"x" * size)),
        asyncio.create_task(others()),
    ]
    await asyncio.gather(*asked)

    assert there == [goes_at_once]


async def test_nothing_is_an_answer_too(transport: Transport, url: str):
    assert await transport.command("GET", "nobody has set this") is None
    assert await transport.command("EVAL", "return {false, 1, 'é', {}}", 0) == [
        None,
        1,
        "é".encode(),
        [],
    ]


async def test_all_calls_share_two_connections(
    url: str, make_transport: MakeTransport, admin: redis.Redis
):
    before = clients(admin)
    transport = make_transport(url)
    await asyncio.gather(*(transport.run("open", LOOK) for _ in range(50)))
    await asyncio.gather(*(transport.run("open", LOOK, urgent=True) for _ in range(50)))

    assert len(clients(admin) - before) == 2


async def test_an_urgent_call_does_not_wait_behind_a_long_answer(
    server: Server, make_transport: MakeTransport
):
    with Link(("127.0.0.1", server.port)) as link:
        transport = make_transport(f"redis://127.0.0.1:{link.port}")
        await transport.command("PING")
        slow = asyncio.create_task(transport.command("BLPOP", "empty", 2))
        await asyncio.sleep(0)
        behind = asyncio.create_task(transport.command("PING"))

        assert await transport.run("open", LOOK, urgent=True) == [b"none"]

        assert not slow.done()
        assert not behind.done()
        assert await slow is None
        assert await behind == b"PONG"


async def test_a_cancelled_call_does_not_disturb_those_behind_it(
    transport: Transport, admin: redis.Redis
):
    await transport.command("PING")
    before = clients(admin)
    slow = asyncio.create_task(transport.command("BLPOP", "empty", 0.3))
    await asyncio.sleep(0.05)
    behind = [asyncio.create_task(transport.command("ECHO", n)) for n in range(10)]
    slow.cancel()

    assert await asyncio.gather(*behind) == [b"%d" % n for n in range(10)]
    assert clients(admin) == before


# ── what happens to connections ──────────────────────────────────────────────────────────────


async def test_a_call_outlives_connections_that_were_cut(
    transport: Transport, admin: redis.Redis, until
):
    await transport.command("PING")
    for one in clients(admin):
        admin.client_kill_filter(_id=one)

    assert await transport.run("open", LOOK) == [b"none"]


async def test_calls_under_way_are_repeated_when_their_connection_is_cut(
    transport: Transport, admin: redis.Redis, until
):
    key = "cut-and-repeated"
    task = asyncio.create_task(transport.command("BLPOP", key, 15))
    others = [asyncio.create_task(transport.command("ECHO", n)) for n in range(5)]
    await until(lambda: any(one["cmd"] == "blpop" for one in admin.client_list()))
    (blocked,) = [one["id"] for one in admin.client_list() if one["cmd"] == "blpop"]
    admin.client_kill_filter(_id=blocked)
    await until(
        lambda: any(one["cmd"] == "blpop" and one["id"] != blocked for one in admin.client_list())
    )
    admin.rpush(key, "here")

    assert await task == [key.encode(), b"here"]
    assert await asyncio.gather(*others) == [b"%d" % n for n in range(5)]


async def test_a_server_that_comes_back_answers_the_call_that_waited(
    server: Server, make_transport: MakeTransport
):
    transport = make_transport(server.url())
    await transport.run("open", ("make", 1, 1))
    server.kill9()
    waiting = asyncio.create_task(transport.run("open", LOOK))
    await asyncio.sleep(0.1)
    assert not waiting.done()

    await asyncio.to_thread(server.run)

    # It has kept the store, and forgotten the script.
    assert (await waiting)[:3] == [b"ours", b"1", b"1"]


async def test_a_server_that_stays_away_is_told_with_the_cause(
    server: Server, make_transport: MakeTransport
):
    transport = make_transport(server.url(), deadline=0.5)
    server.stop()
    began = time.monotonic()

    with pytest.raises(StoreUnreachable) as refused:
        await transport.run("open", LOOK)

    assert "refused" in str(refused.value)
    assert "port" in refused.value.hint
    assert 0.4 < time.monotonic() - began < LONG / 2


async def test_a_server_that_says_nothing_more_ends_the_call_in_time(
    server: Server, make_transport: MakeTransport
):
    transport = make_transport(server.url(), deadline=1.0)
    await transport.command("PING")
    server.freeze()
    began = time.monotonic()
    try:
        with pytest.raises(StoreBusy, match="no answer in 1 s"):
            await transport.run("open", LOOK)
    finally:
        server.thaw()

    assert time.monotonic() - began < LONG / 2
    assert await transport.run("open", LOOK) == [b"none"]


async def test_a_connection_that_leads_nowhere_is_replaced_while_the_call_waits(
    server: Server, make_transport: MakeTransport
):
    with Link(("127.0.0.1", server.port)) as link:
        transport = make_transport(f"redis://127.0.0.1:{link.port}", deadline=6.0)
        await transport.command("PING")
        link.hang()
        waiting = asyncio.create_task(transport.run("open", LOOK))
        await asyncio.sleep(0.5)
        # New connections get through; the old one stays as it is.
        link._hangs = False

        assert await waiting == [b"none"]
        assert link.accepted >= 2


async def test_a_connection_cut_in_the_middle_of_an_answer_is_not_used_again(
    make_transport: MakeTransport,
):
    """A server that ends its first answer half way, and answers well on the next connection."""
    served: list[list[bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mine: list[bytes] = []
        served.append(mine)
        while data := await reader.read(65536):
            mine.append(data)
            if b"SETNAME" in data:
                writer.write(b"+OK\r\n")
            elif len(served) == 1:
                writer.write(b"$10\r\nhalf")
                await writer.drain()
                break
            else:
                writer.write(b"$5\r\nwhole\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as fake:
        transport = make_transport(f"redis://127.0.0.1:{fake.sockets[0].getsockname()[1]}")

        assert await transport.command("GET", "a") == b"whole"
        assert await transport.command("GET", "b") == b"whole"
        await transport.close()

    assert len(served) == 2
    assert sum(b"GET" in data for mine in served for data in mine) == 3


async def test_what_is_no_redis_server_is_called_so_at_once(make_transport: MakeTransport):
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as fake:
        transport = make_transport(f"redis://127.0.0.1:{fake.sockets[0].getsockname()[1]}")
        with pytest.raises(StoreUnreachable, match="not a Redis server"):
            await transport.command("PING")


async def test_a_host_that_does_not_exist_is_told_at_once(make_transport: MakeTransport):
    transport = make_transport("redis://no-such-host.invalid", deadline=LONG)

    with pytest.raises(StoreUnreachable) as refused:
        await transport.command("PING")

    assert refused.value.hint
    assert "no-such-host" in str(refused.value)


async def test_a_socket_of_this_machine_does_as_well(server: Server, make_transport: MakeTransport):
    transport = make_transport(f"unix://{server.socket}?db=1")

    assert (await transport.run("open", ("make", 1, 1)))[:3] == [b"made", b"1", b"1"]
    with server.client(db=1) as client:
        assert client.dbsize() == 2


async def test_a_socket_that_is_not_there_is_named(make_transport: MakeTransport, tmp_path):
    transport = make_transport(f"unix://{tmp_path}/nobody.sock", deadline=0.2)

    with pytest.raises(StoreUnreachable) as refused:
        await transport.command("PING")

    assert "path" in refused.value.hint
