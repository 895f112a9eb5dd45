"""A store that a test has left is emptied so well that the next one can take it for a new one."""

import asyncio

import psycopg
from psycopg import sql

from lamplighter.connect import connect
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Succeeded
from lamplighter.port.conformance.builders import claim, new_job, submit
from lamplighter.port.conformance.clock import VirtualClock
from lamplighter.port.conformance.schedule_builders import new_schedule, put
from lamplighter.port.values import QueueSettings, Retention
from tests.servers import stores
from tests.servers.stores import shared_postgres_ends

__all__ = ["shared_postgres_ends"]

BY = {"by": "alice", "reason": "to leave something behind"}


async def make(url: str, *, fill: bool) -> None:
    clock = VirtualClock()
    engine = connect(url, clock_ms=clock.now_ms)
    await engine.open()
    if fill:
        await submit(engine, *(new_job(held=bool(number % 2)) for number in range(6)))
        await engine.settings.put_queue("default", QueueSettings(max_wait_ms=5), **BY)
        await put(engine, new_schedule())
        for one in await claim(engine, 3):
            await engine.jobs.settle([settle(one, Succeeded())])
        for _ in range(3):
            clock.advance(seconds=86_400)
            await engine.jobs.prune(Retention(), 100)
    await engine.close()


def schema_of(url: str) -> str:
    return url.rpartition("schema=")[2]


def seen(url: str) -> dict[str, list[tuple]]:
    """All tables and sequences of the store, with what they hold."""
    with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
        relations = connection.execute(
            "SELECT relname, relkind FROM pg_class "
            "WHERE relnamespace = %s::text::regnamespace AND relkind IN ('r', 'p', 'S')",
            (schema_of(url),),
        ).fetchall()
        held = {}
        for name, kind in relations:
            what = sql.SQL("last_value, is_called" if kind in {b"S", "S"} else "*")
            table = sql.Identifier(schema_of(url), name)
            rows = connection.execute(sql.SQL("SELECT {} FROM {}").format(what, table)).fetchall()
            held[name] = sorted(rows)
        return held


def test_a_store_that_was_emptied_is_like_a_new_one(tmp_path):
    with stores.emptied_schemas(tmp_path) as fresh, stores.postgres_schemas(tmp_path) as new:
        used, untouched = fresh(), new()
        asyncio.run(make(used, fill=True))
        asyncio.run(make(untouched, fill=False))
        as_new, left = seen(untouched), seen(used)

        stores._empty(stores._shared.url(), [schema_of(used)])
        stores._shared.emptied.remove(schema_of(used))  # it comes back at the end of this block

        assert {name for name, rows in left.items() if rows != as_new.get(name)} > {"done", "queue"}
        assert set(left) > set(as_new), "a day has come and got a table"
        assert seen(used) == as_new
    assert schema_of(used) in stores._shared.emptied


def test_where_no_store_was_made_there_is_none_to_give_on(tmp_path):
    with stores.emptied_schemas(tmp_path) as fresh:
        untouched = [schema_of(fresh()) for _ in range(len(stores._shared.emptied) + 2)]

    assert untouched[-1] not in stores._shared.emptied
