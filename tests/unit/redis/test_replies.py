"""What a server says instead of an answer: asked again, or told with cause and remedy."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import redis

from lamplighter.connect import connect
from lamplighter.engines.redis.address import parse
from lamplighter.engines.redis.transport import Transport
from lamplighter.model.errors import (
    StoreBusy,
    StoreError,
    StoreForbidden,
    StoreForeign,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
)
from tests.servers.valkey import Server
from tests.unit.redis.looks import clients

LONG = 20.0
MakeTransport = Callable[..., Transport]
LOOK = ("look", 1, 1)


@pytest.fixture
def busy_server(server: Server) -> Iterator[Server]:
    """A server that runs a script without end, until somebody kills it."""
    with server.client() as admin:
        admin.config_set("busy-reply-threshold", 10)
        thread = threading.Thread(target=_run_for_ever, args=(server,))
        thread.start()
        _until_busy(admin)
        yield server
        _kill_script(admin)
        thread.join(LONG)


def _run_for_ever(server: Server) -> None:
    with server.client() as client, pytest.raises(redis.ResponseError):
        client.eval("local n = 0 while true do n = n + 1 end", 0)


def _until_busy(admin: redis.Redis) -> None:
    for _ in range(2_000):
        try:
            admin.ping()
        except redis.ResponseError:
            return
        time.sleep(0.01)
    pytest.fail("the server never said that it is busy")


def _kill_script(admin: redis.Redis) -> None:
    with contextlib.suppress(redis.ResponseError):  # a test may have done so
        admin.script_kill()


async def test_a_busy_server_is_asked_again(busy_server: Server, make_transport: MakeTransport):
    waiting = asyncio.create_task(make_transport(busy_server.url()).run("open", LOOK))
    await asyncio.sleep(0.1)
    assert not waiting.done()

    with busy_server.client() as admin:
        _kill_script(admin)

    assert await waiting == [b"none"]


async def test_a_server_busy_for_too_long_is_called_busy(
    busy_server: Server, make_transport: MakeTransport
):
    transport = make_transport(busy_server.url(), deadline=0.5)

    with pytest.raises(StoreBusy, match="BUSY") as refused:
        await transport.run("open", LOOK)

    assert "SCRIPT KILL" in refused.value.hint


async def test_a_server_that_became_a_replica_is_asked_again_on_a_new_connection(
    server: Server, make_transport: MakeTransport
):
    transport = make_transport(server.url())
    await transport.command("PING")
    with server.client() as admin:
        before = clients(admin)
        admin.replicaof("127.0.0.1", 1)
        admin.config_set("replica-serve-stale-data", "yes")
        waiting = asyncio.create_task(transport.run("open", ("make", 1, 1)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        admin.replicaof("NO", "ONE")

        assert (await waiting)[:3] == [b"made", b"1", b"1"]
        assert not clients(admin) & before


async def test_a_server_that_stays_a_replica_only_reads(
    server: Server, make_transport: MakeTransport
):
    transport = make_transport(server.url(), deadline=0.3)
    with server.client() as admin:
        admin.replicaof("127.0.0.1", 1)

        with pytest.raises(StoreReadOnly, match="only reads"):
            await transport.run("open", ("make", 1, 1))


async def test_a_replica_without_its_primary_is_called_busy(
    server: Server, make_transport: MakeTransport
):
    transport = make_transport(server.url(), deadline=0.3)
    with server.client() as admin:
        admin.config_set("replica-serve-stale-data", "no")
        admin.replicaof("127.0.0.1", 1)

        with pytest.raises(StoreBusy, match="MASTERDOWN"):
            await transport.run("open", LOOK)


async def test_used_up_memory_refuses_the_whole_write(
    server: Server, make_transport: MakeTransport
):
    transport = make_transport(server.url())
    await transport.command("CONFIG", "SET", "maxmemory", 1)

    with pytest.raises(StoreFull, match="memory") as refused:
        await transport.run("open", ("make", 1, 1))

    assert "maxmemory" in refused.value.hint
    with server.client() as admin:
        assert admin.dbsize() == 0


@pytest.mark.parametrize(
    ("login", "said"),
    [("", "NOAUTH"), (":wrong@", "WRONGPASS"), ("nobody:secret@", "WRONGPASS")],
)
async def test_a_wrong_login_is_refused_at_once(
    server: Server, make_transport: MakeTransport, login: str, said: str
):
    with server.client() as admin:
        admin.config_set("requirepass", "secret")
    transport = make_transport(server.url(login=login), deadline=LONG)
    began = time.monotonic()

    with pytest.raises(StoreUnreachable, match=said) as refused:
        await transport.command("PING")

    assert "password" in refused.value.hint
    assert time.monotonic() - began < LONG / 2
    assert "secret" not in str(refused.value)


async def test_a_password_where_none_is_wanted_is_refused(
    server: Server, make_transport: MakeTransport
):
    transport = make_transport(server.url(login=":secret@"))

    with pytest.raises(StoreUnreachable, match="login"):
        await transport.command("PING")


async def test_the_right_login_is_let_in(server: Server, make_transport: MakeTransport):
    with server.client() as admin:
        admin.acl_setuser(
            "ada", enabled=True, passwords=["+se/cr@t"], keys=["{lamp:*"], categories=["+@all"]
        )
    transport = make_transport(server.url(login="ada:se%2Fcr%40t@"))

    assert (await transport.run("open", ("make", 1, 1)))[:3] == [b"made", b"1", b"1"]
    with pytest.raises(StoreForbidden, match="ACL SETUSER"):
        await transport.command("GET", "not ours")


async def test_a_user_who_may_not_be_named_may_still_work(
    server: Server, make_transport: MakeTransport
):
    with server.client() as admin:
        admin.acl_setuser(
            "ada",
            enabled=True,
            nopass=True,
            keys=["{lamp:*"],
            commands=[
                "+evalsha",
                "+eval",
                "+type",
                "+exists",
                "+set",
                "+hset",
                "+hget",
                "+hmget",
                "+time",
            ],
        )
    transport = make_transport(server.url(login="ada:any@"))

    assert (await transport.run("open", ("make", 1, 1)))[:3] == [b"made", b"1", b"1"]


async def test_a_database_that_is_not_there_is_refused(
    server: Server, make_transport: MakeTransport
):
    with pytest.raises(StoreUnreachable, match="DB index") as refused:
        await make_transport(server.url(99)).command("PING")

    assert "databases" in refused.value.hint


async def test_a_server_without_room_for_us_is_called_busy(
    server: Server, make_transport: MakeTransport
):
    with server.client() as admin:
        admin.config_set("maxclients", 1)
        transport = make_transport(server.url(), deadline=0.3)

        with pytest.raises(StoreBusy, match="max number of clients"):
            await transport.command("PING")


async def test_a_key_of_another_program_is_called_foreign(
    transport: Transport, admin: redis.Redis, url: str
):
    await connect(url).migrate()
    key = "{" + parse(url).prefix + ":0}:told"
    admin.lpush(key, "x")

    with pytest.raises(StoreForeign, match="another program"):
        await transport.run("notify", ["topic"])
    admin.delete(key)


async def test_what_fails_for_good_is_told_at_once_and_keeps_its_connection(
    transport: Transport, admin: redis.Redis
):
    await transport.command("PING")
    before = clients(admin)

    with pytest.raises(StoreError, match="boom"):
        await transport.command("EVAL", "error('boom')", 0)

    await transport.command("PING")
    assert clients(admin) == before
