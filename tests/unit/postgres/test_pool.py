"""The pool: calls outlive what happens to connections, and end with their deadline."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable

import psycopg
import pytest

from lamplighter.engines.postgres.address import parse
from lamplighter.engines.postgres.pool import Pool, Pools
from lamplighter.model.errors import (
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreUnreachable,
)
from tests.servers.postgres import Server
from tests.servers.stores import with_parts

LONG = 20.0
SLEEP = "SELECT pg_sleep(60)"
NAP = "SELECT pg_sleep(3)"
"""For calls that are given up at the end of a test, too late to be stopped in the server."""
ALIVE = "SELECT count(*) FROM pg_stat_activity WHERE query = %s AND state = 'active'"


@pytest.fixture
async def make_pool() -> AsyncIterator[Callable[..., Pool]]:
    pools: list[Pool] = []

    def make(url: str, deadline: float = LONG) -> Pool:
        pools.append(Pool(parse(url), deadline))
        return pools[-1]

    yield make
    for pool in pools:
        pool.let_go()


@pytest.fixture
async def pool(url: str, make_pool: Callable[..., Pool]) -> Pool:
    return make_pool(url)


def count(admin: psycopg.Connection, statement: str, *values: object) -> int:
    row = admin.execute(statement, values).fetchone()
    assert row is not None
    return row[0]


async def test_connections_are_made_when_needed_and_used_again(pool: Pool):
    pids = {(await pool.rows("SELECT pg_backend_pid()"))[0][0] for _ in range(10)}

    assert len(pids) == 1


async def test_no_more_connections_are_made_than_the_url_allows(
    url: str, make_pool: Callable[..., Pool]
):
    pool = make_pool(with_parts(url, pool="5", listen="off"))

    calls = [pool.rows("SELECT pg_backend_pid() FROM pg_sleep(0.01)") for _ in range(40)]
    urgent = [pool.rows("SELECT pg_backend_pid()", urgent=True) for _ in range(5)]
    pids = {rows[0][0] for rows in await asyncio.gather(*calls, *urgent)}

    assert len(pids) == 5


async def test_a_busy_pool_does_not_keep_an_urgent_call_waiting(pool: Pool):
    busy = [asyncio.create_task(pool.rows(NAP)) for _ in range(10)]
    await asyncio.sleep(0)

    assert await pool.rows("SELECT 1", urgent=True) == [(1,)]

    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)


async def test_a_call_that_waits_for_a_connection_too_long_is_told_so(
    url: str, make_pool: Callable[..., Pool]
):
    pool = make_pool(url)
    busy = [asyncio.create_task(pool.rows(NAP)) for _ in range(10)]
    await asyncio.sleep(0)

    with pytest.raises(StoreBusy, match="connections"):
        await pool.rows("SELECT 1", patience=0.1)

    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)


async def test_a_call_past_its_deadline_ends_and_is_stopped_in_the_server(
    pool: Pool, admin: psycopg.Connection, until
):
    with pytest.raises(StoreBusy, match="no answer in"):
        await pool.rows(SLEEP + " -- 1", patience=0.3)

    await until(lambda: count(admin, ALIVE, SLEEP + " -- 1") == 0)
    assert await pool.rows("SELECT 1") == [(1,)]


async def test_a_cancelled_call_is_stopped_in_the_server(
    pool: Pool, admin: psycopg.Connection, until
):
    task = asyncio.create_task(pool.rows(SLEEP))
    await until(lambda: count(admin, ALIVE, SLEEP) == 1)

    task.cancel()

    assert isinstance(
        (await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError
    )
    await until(lambda: count(admin, ALIVE, SLEEP) == 0)
    assert await pool.rows("SELECT 1") == [(1,)]


async def test_a_call_outlives_connections_that_were_cut(pool: Pool, admin: psycopg.Connection):
    first = await asyncio.gather(
        *(pool.rows("SELECT pg_backend_pid() FROM pg_sleep(0.05)") for _ in range(2))
    )
    pids = [rows[0][0] for rows in first]
    admin.execute("SELECT pg_terminate_backend(p) FROM unnest(%s) AS p", (pids,))

    ((pid,),) = await pool.rows("SELECT pg_backend_pid()")

    assert pid not in pids


async def test_a_call_under_way_is_repeated_when_its_connection_is_cut(
    pool: Pool, admin: psycopg.Connection, until
):
    # The first run of the statement is cut while it sleeps; the second finds the mark.
    admin.execute("CREATE TABLE IF NOT EXISTS public.cut_mark (n integer)")
    admin.execute("TRUNCATE public.cut_mark")
    statement = (
        "SELECT CASE WHEN EXISTS (SELECT FROM public.cut_mark) THEN 7 "
        "ELSE (SELECT 1 FROM pg_sleep(60)) END"
    )
    task = asyncio.create_task(pool.rows(statement))
    await until(lambda: count(admin, ALIVE, statement) == 1)
    admin.execute("INSERT INTO public.cut_mark VALUES (1)")
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = %s", (statement,)
    )

    assert await task == [(7,)]
    admin.execute("DROP TABLE public.cut_mark")


@pytest.mark.parametrize("code", ["40001", "40P01", "53300", "55P03", "57P03", "25006"])
async def test_what_may_pass_is_tried_again(pool: Pool, admin: psycopg.Connection, code: str):
    admin.execute("CREATE SEQUENCE public.tries")
    try:
        await pool.rows(
            "DO $$ BEGIN IF nextval('public.tries') < 3 THEN "
            f"RAISE 'no' USING ERRCODE = '{code}'; END IF; END $$"
        )

        assert count(admin, "SELECT last_value FROM public.tries") == 3
    finally:
        admin.execute("DROP SEQUENCE public.tries")


async def test_what_fails_for_good_is_told_at_once_and_keeps_its_connection(pool: Pool):
    ((before,),) = await pool.rows("SELECT pg_backend_pid()")

    with pytest.raises(StoreDamaged, match="no_such_table"):
        await pool.rows("SELECT * FROM no_such_table")
    with pytest.raises(StoreError, match="division by zero"):
        await pool.rows("SELECT 1 / 0")

    assert await pool.rows("SELECT pg_backend_pid()") == [(before,)]


async def test_a_server_that_comes_back_answers_the_call_that_waited(
    server: Server, make_pool: Callable[..., Pool]
):
    pool = make_pool(server.url())
    await pool.rows("SELECT 1")
    server.kill9()
    waiting = asyncio.create_task(pool.rows("SELECT 2"))
    await asyncio.sleep(0.1)
    assert not waiting.done()

    await asyncio.to_thread(server.run)

    assert await waiting == [(2,)]


async def test_a_server_that_stays_away_is_told_with_the_cause(
    server: Server, make_pool: Callable[..., Pool]
):
    pool = make_pool(server.url(), deadline=0.5)
    server.stop()
    began = time.monotonic()

    with pytest.raises(StoreUnreachable) as refused:
        await pool.rows("SELECT 1")

    assert "refused" in str(refused.value)
    assert "port" in refused.value.hint
    assert 0.4 < time.monotonic() - began < LONG / 2


async def test_a_server_that_accepts_and_says_nothing_ends_the_call_in_time(
    make_pool: Callable[..., Pool],
):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        pool = make_pool(f"postgresql://ada:secret@127.0.0.1:{port}/db?sslmode=disable")

        with pytest.raises(StoreUnreachable) as refused:
            await pool.rows("SELECT 1", patience=0.3)

    assert "secret" not in str(refused.value)


async def test_nothing_is_left_in_the_session(pool: Pool, admin: psycopg.Connection):
    for n in range(20):
        await pool.rows("SELECT %s::integer, set_config('search_path', 'elsewhere', true)", (n,))

    ((prepared, path),) = await pool.rows(
        "SELECT (SELECT count(*) FROM pg_prepared_statements), current_setting('search_path')"
    )

    assert (prepared, "elsewhere" in path) == (0, False)


async def test_a_closed_pool_lets_calls_end_and_takes_no_more(
    url: str, admin: psycopg.Connection, until
):
    pool = Pool(parse(url), LONG)
    ((pid,),) = await pool.rows("SELECT pg_backend_pid()")
    running = asyncio.create_task(pool.rows("SELECT 5 FROM pg_sleep(0.2)"))
    await asyncio.sleep(0)

    await pool.close()

    assert await running == [(5,)]
    with pytest.raises(StoreClosed):
        await pool.rows("SELECT 1")
    await until(
        lambda: count(admin, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", pid) == 0
    )


def test_each_event_loop_has_its_own_connections(url: str):
    pools = Pools(parse(url), LONG, None)

    async def ask() -> int:
        return (await pools.rows("SELECT pg_backend_pid()"))[0][0]

    first, second = asyncio.run(ask()), asyncio.run(ask())
    asyncio.run(pools.close())

    assert first != second


async def test_the_tests_clock_is_told_with_each_call(url: str):
    clock = [5]
    pools = Pools(parse(url), LONG, lambda: clock[0])
    now = "SELECT current_setting('lamplighter.now')"
    assert await pools.rows(now) == [("5",)]
    clock[0] = 6
    assert await pools.rows(now) == [("6",)]
    await pools.close()


def test_a_forked_child_is_refused_and_leaves_the_parents_connection_alone(url: str):
    pools = Pools(parse(url), LONG, None)

    async def use() -> bytes:
        ((before,),) = await pools.rows("SELECT pg_backend_pid()")
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, _in_child(pools).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as answers:
            said = answers.read()
        await asyncio.to_thread(os.waitpid, child, 0)
        assert await pools.rows("SELECT pg_backend_pid()") == [(before,)]
        await pools.close()
        return said

    assert b"forked" in asyncio.run(use())


def _in_child(pools: Pools) -> str:
    pool = next(iter(pools._pools.values()))
    coroutine = pool.rows("SELECT 1")
    try:
        coroutine.send(None)
    except StoreClosed as error:
        pool.let_go()
        return str(error)
    return "not refused"
