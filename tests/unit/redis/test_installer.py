"""Opening a store: made once, ours, of this version, on a server that keeps what it promises."""

import asyncio
import os
import subprocess
import sys

import pytest
import redis

from lamplighter.connect import connect
from lamplighter.engines.redis import installer
from lamplighter.engines.redis.address import parse
from lamplighter.model.errors import (
    InvalidOption,
    InvalidUrl,
    StoreClosed,
    StoreForeign,
    StoreNewer,
    StoreOlder,
    StoreReadOnly,
    StoreUnreachable,
)
from lamplighter.port.store import Engine
from tests.servers.redis_stores import with_options
from tests.servers.valkey import Server


def meta(url: str) -> str:
    return "{" + parse(url).prefix + ":0}:meta"


async def opened_and_closed(url: str, **options: bool) -> Engine:
    engine = connect(url)
    await engine.open(**options)
    await engine.close()
    return engine


# ── making a store ───────────────────────────────────────────────────────────────────────────


async def test_a_new_store_is_marked_as_ours(url: str, admin: redis.Redis):
    await opened_and_closed(url)

    found = admin.hgetall(meta(url))
    assert found[b"program"] == b"lamplighter"
    assert (found[b"version"], found[b"shards"]) == (b"2", b"1")
    assert int(found[b"made"]) > 1_700_000_000_000


async def test_opening_a_store_that_is_there_changes_nothing(url: str, admin: redis.Redis):
    await opened_and_closed(url)
    before = admin.hgetall(meta(url))

    await opened_and_closed(url)
    await opened_and_closed(url, create=False)

    assert admin.hgetall(meta(url)) == before


async def test_many_who_open_a_new_store_at_once_make_one(url: str, admin: redis.Redis):
    engines = [connect(with_options(url, shards="4")) for _ in range(20)]
    await asyncio.gather(*(engine.open() for engine in engines))

    assert admin.hget(meta(url), "shards") == b"4"
    await asyncio.gather(*(engine.close() for engine in engines))


async def test_without_leave_to_create_a_missing_store_is_refused(url: str, admin: redis.Redis):
    with pytest.raises(StoreUnreachable, match="no store") as refused:
        await connect(url).open(create=False)

    assert "migrate" in refused.value.hint
    assert admin.exists(meta(url)) == 0


async def test_migrate_makes_a_store_and_says_so(url: str):
    assert await connect(url).migrate() == (0, installer.LAYOUTS.newest)
    assert await connect(url).migrate() == (installer.LAYOUTS.newest, installer.LAYOUTS.newest)


async def test_a_store_that_is_not_open_says_so(url: str):
    engine = connect(url)

    with pytest.raises(StoreClosed, match="not open"):
        await engine.inspector.counts()
    await engine.close()


# ── shards ───────────────────────────────────────────────────────────────────────────────────


async def test_the_number_of_shards_is_decided_when_the_store_is_made(url: str):
    await opened_and_closed(with_options(url, shards="3"))

    with pytest.raises(InvalidUrl, match="made with 3") as refused:
        await opened_and_closed(with_options(url, shards="4"))

    assert "shards=3" in refused.value.hint


async def test_who_does_not_name_the_shards_takes_those_of_the_store(url: str):
    await opened_and_closed(with_options(url, shards="3"))
    engine = connect(url)
    await engine.open()

    assert engine.capabilities.shards == 3
    await engine.close()


# ── not ours ─────────────────────────────────────────────────────────────────────────────────


async def test_a_newer_store_is_refused(url: str, admin: redis.Redis):
    await opened_and_closed(url)
    admin.hset(meta(url), "version", installer.LAYOUTS.newest + 1)

    for work in (connect(url).open(), connect(url).migrate()):
        with pytest.raises(StoreNewer, match="version 3"):
            await work


async def test_a_store_from_before_the_first_release_is_refused(url: str, admin: redis.Redis):
    await opened_and_closed(url)
    admin.hset(meta(url), "version", installer.LAYOUTS.first - 1)

    for work in (connect(url).open(), connect(url).migrate()):
        with pytest.raises(StoreOlder, match=r"has version 1, .* cannot be migrated"):
            await work


@pytest.mark.parametrize(
    ("name", "kind"),
    [("meta", "string"), ("meta", "hash"), ("seq", "string"), ("anything", "hash")],
)
async def test_a_key_of_somebody_else_in_our_place_is_refused(
    url: str, admin: redis.Redis, name: str, kind: str
):
    key = meta(url).removesuffix("meta") + name
    if kind == "hash":
        admin.hset(key, "other", "thing")
    else:
        admin.set(key, "thing")

    try:
        with pytest.raises(StoreForeign) as refused:
            await connect(url).open()

        assert key in str(refused.value)
        assert "prefix" in refused.value.hint
        assert admin.keys(meta(url).removesuffix("meta") + "*") == [key.encode()]
    finally:
        admin.delete(key)


async def test_a_store_whose_mark_was_damaged_is_refused(url: str, admin: redis.Redis):
    await opened_and_closed(url)
    admin.hset(meta(url), "shards", "many")

    with pytest.raises(StoreForeign):
        await connect(url).open()


async def test_stores_with_other_prefixes_are_no_neighbours(url: str, admin: redis.Redis):
    admin.set("not-a-store", "x")
    await opened_and_closed(url)
    others = [with_options(url, prefix=parse(url).prefix + end) for end in (".x", ":1", ":1:1")]
    for other in reversed(others):
        await opened_and_closed(other)

    assert admin.exists(meta(url), *map(meta, others)) == 4
    admin.delete("not-a-store", *map(meta, others))


async def test_a_prefix_that_begins_another_one_may_come_later(url: str, admin: redis.Redis):
    longer = with_options(url, prefix=parse(url).prefix + ":1")
    await opened_and_closed(longer)

    await opened_and_closed(url)

    assert admin.exists(meta(url), meta(longer)) == 2
    admin.delete(meta(longer))


# ── servers ──────────────────────────────────────────────────────────────────────────────────


async def test_a_replica_is_refused(server: Server):
    with server.client() as admin:
        admin.replicaof("127.0.0.1", 1)

        with pytest.raises(StoreReadOnly, match="replica"):
            await opened_and_closed(server.url())


async def test_a_server_that_is_just_starting_is_waited_for(server: Server):
    await opened_and_closed(server.url())
    server.stop()
    opening = asyncio.create_task(opened_and_closed(server.url(), create=False))
    await asyncio.sleep(0.1)

    await asyncio.to_thread(server.run)

    await opening


async def test_a_store_outlives_a_kill_of_its_server(server: Server):
    await opened_and_closed(server.url(shards="2"))
    server.kill9()
    await asyncio.to_thread(server.run)

    await opened_and_closed(server.url(shards="2"), create=False)


async def test_rights_are_not_ours_to_give(url: str):
    with pytest.raises(InvalidOption, match="ada") as refused:
        await connect(url).grant(run=["ada"])

    assert "ACL SETUSER ada" in refused.value.hint


def test_a_missing_driver_is_named():
    program = (
        "import sys; sys.modules['hiredis'] = None\n"
        "from lamplighter.connect import connect\n"
        "connect('redis://host')"
    )

    run = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    said = run.stderr

    assert "InvalidUrl: the url asks for Redis, whose driver `hiredis` is not installed" in said
    assert "pip install '.[redis]'" in said


async def test_a_forked_child_is_told_to_open_its_own_store(url: str):
    engine = connect(url)
    await engine.open()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            asyncio.events._set_running_loop(None)
            asyncio.run(_in_child(engine))
            status = 0
        finally:
            os._exit(status)

    _, status = os.waitpid(child, 0)  # noqa: ASYNC222 - nothing else is to happen
    assert status == 0
    await engine.inspector.counts()
    await engine.close()


async def _in_child(engine: Engine) -> None:
    with pytest.raises(StoreClosed, match="forked"):
        await engine.inspector.counts()
    await engine.close()
