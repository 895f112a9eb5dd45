"""Event loops, forks and the end: connections belong to somebody, and are let go of quietly."""

import asyncio
import gc
import os
import socket
import threading
from collections.abc import Callable

import pytest
import redis

from lamplighter.engines.redis.address import parse
from lamplighter.engines.redis.transport import Transport
from lamplighter.model.errors import StoreBusy, StoreClosed, StoreUnreachable
from tests.servers.redis_stores import with_options
from tests.unit.redis.looks import clients

LONG = 20.0
MakeTransport = Callable[..., Transport]
LOOK = ("look", 1, 1)


def test_each_event_loop_has_its_own_connections(url: str, admin: redis.Redis):
    transport = Transport(parse(url), LONG)

    async def ask() -> int:
        return await transport.command("CLIENT", "ID")

    first, second = asyncio.run(ask()), asyncio.run(ask())
    assert first != second
    asyncio.run(transport.close())
    gc.collect()


def test_a_transport_is_closed_from_another_loop_than_the_one_that_uses_it(
    url: str, admin: redis.Redis
):
    transport = Transport(parse(url), LONG)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(transport.command("PING"), loop).result(LONG)

    asyncio.run(transport.close())

    with pytest.raises(StoreClosed):
        asyncio.run_coroutine_threadsafe(transport.command("PING"), loop).result(LONG)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(LONG)
    loop.close()


def test_a_loop_that_ended_leaves_nothing_that_complains(url: str):
    async def leave() -> None:
        await Transport(parse(url), LONG).command("PING")

    asyncio.run(leave())
    gc.collect()


async def test_closing_lets_calls_end_and_takes_no_more(url: str, admin: redis.Redis, until):
    transport = Transport(parse(url), LONG)
    ours = await transport.command("CLIENT", "ID")
    running = asyncio.create_task(transport.command("BLPOP", "empty", 0.2))
    await asyncio.sleep(0)

    await transport.close()

    assert await running is None
    with pytest.raises(StoreClosed):
        await transport.command("PING")
    await until(lambda: ours not in clients(admin))
    await transport.close()


def test_a_forked_child_leaves_its_parents_connections_alone(url: str):
    transport = Transport(parse(url), LONG)

    async def parent() -> None:
        before = await transport.command("CLIENT", "ID")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                asyncio.events._set_running_loop(None)
                asyncio.run(_in_child(transport))
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)  # noqa: ASYNC222 - nothing else is to happen
        assert status == 0
        assert await transport.command("CLIENT", "ID") == before
        await transport.close()

    asyncio.run(parent())


async def _in_child(transport: Transport) -> None:
    with pytest.raises(StoreClosed, match="forked"):
        await transport.command("PING")
    await transport.close()


async def test_a_shard_has_keys_of_its_own(
    url: str, make_transport: MakeTransport, admin: redis.Redis
):
    transport = make_transport(with_options(url, shards="3"))
    transport.divide(3)

    await transport.run("open", ("make", 1, 3), shard=2)

    assert admin.exists("{" + parse(url).prefix + ":2}:meta") == 1
    assert await transport.run("open", LOOK, shard=1) == [b"none"]


def test_the_socket_of_a_server_that_never_answers_is_closed():
    async def ask() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            transport = Transport(parse(f"redis://ada:secret@127.0.0.1:{port}"), 0.3)
            with pytest.raises((StoreUnreachable, StoreBusy)) as refused:
                await transport.command("PING")
            assert "secret" not in str(refused.value)
            await transport.close()

    asyncio.run(ask())
    gc.collect()
