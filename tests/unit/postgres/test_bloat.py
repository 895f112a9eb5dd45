"""A snapshot that somebody keeps open (a backup, a forgotten session) keeps every dead row. Verbs
must not walk over them, and the server must remove them soon after it may."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import IsolationLevel

from lamplighter.engines.postgres.verbs.claim import claim
from lamplighter.engines.postgres.verbs.settle import settle
from lamplighter.engines.postgres.verbs.submit import submit
from lamplighter.port.conformance.builders import completed, new_job, request
from tests.servers.postgres import Server, newest_server, start
from tests.unit.postgres.plans.acts import ACTS
from tests.unit.postgres.plans.caller import Caller
from tests.unit.postgres.plans.filling import QUEUE, TYPES, prepare
from tests.unit.postgres.plans.looks import Plans
from tests.unit.postgres.plans.stores import FULL, QUIET, new_store

Until = Callable[[Callable[[], object]], Awaitable[None]]

pytestmark = pytest.mark.timeout(1_200)

TENANTS = 20
NOTED = {"edge", "handed", "pulse", "share", "turn"}
WATCHED = ("submit", "claim", "renew", "settle", "settle failures", "cancel", "hold", "rescue",
           "prune", "explain")  # fmt: skip
# Few big claims leave dead jobs, many small ones also what claims note for each other.
ROUNDS = {
    "claims_of_500": (100 if FULL else 20, 500),
    "claims_of_10": (5_000 if FULL else 1_000, 10),
}

BUSY = """
SELECT relname::text, n_live_tup, n_dead_tup FROM pg_stat_user_tables
WHERE schemaname = %s AND n_tup_upd + n_tup_del >= %s
"""
OPTIONS = """
SELECT coalesce(
    (SELECT option_value::float FROM pg_options_to_table(reloptions) WHERE option_name = %s),
    current_setting(%s)::float)
FROM pg_class WHERE oid = %s::regclass
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with start(newest_server(), folder, settings=QUIET, fast=True) as running:
        yield running


@pytest.fixture(scope="module", params=ROUNDS)
def pages(server: Server, request: pytest.FixtureRequest) -> dict[str, tuple[Plans, Plans]]:
    """What the verbs do in a swept store, and in the same one full of what is dead."""
    call = new_store(server, request.param)
    try:
        return asyncio.run(_look_before_and_after(server, call, *ROUNDS[request.param]))
    finally:
        call.close()


@pytest.mark.parametrize("verb", WATCHED)
def test_what_is_dead_is_in_nobodys_way(pages: dict[str, tuple[Plans, Plans]], verb: str) -> None:
    swept, bloated = pages[verb]

    assert bloated.buffers <= 5 * max(100, swept.buffers), _growth(swept, bloated)


def test_claims_stop_at_the_first_row_that_lives(pages: dict[str, tuple[Plans, Plans]]) -> None:
    # A bitmap is made of all rows that fit, dead ones too, and lets none of them be forgotten.
    _, bloated = pages["claim"]

    assert [
        look for look in bloated.looks if look.kind == "Bitmap Heap Scan" and look.table in NOTED
    ] == []


@pytest.fixture
def sweeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that looks for dead rows every second."""
    folder = tmp_path_factory.mktemp("sweeping")
    often = {"autovacuum_naptime": "1s"}
    with start(newest_server(), folder, settings=often, fast=True) as running:
        yield running


async def test_rows_that_live_briefly_are_swept_by_their_number_and_soon(
    sweeping: Server, until: Until
) -> None:
    call = await asyncio.to_thread(new_store, sweeping, "swept")
    await prepare(call)
    rounds = 600
    await _work(call, rounds, 10)
    call.run("SELECT pg_stat_force_next_flush()")
    # Whatever has had a dead row for every claim has rows that live briefly.
    busy = [name for name, _, _ in call.run(BUSY, (call.schema, rounds // 2))]

    assert {"job", "turn"} <= set(busy)
    for name in busy:
        share = _option(call, name, "autovacuum_vacuum_scale_factor")
        assert share <= 0.05, f"{name} is swept only when {share:.0%} of it are dead"
        assert _option(call, name, "autovacuum_vacuum_threshold") <= 5_000, name

    # And it does happen: soon none of them has more dead rows than it may.
    await until(lambda: not _crowded(call))
    call.close()


def _crowded(call: Caller) -> list[str]:
    """Name the tables with more dead rows than the server is told to leave."""
    call.run("SELECT pg_stat_clear_snapshot()")
    return [
        name
        for name, _, dead in call.run(BUSY, (call.schema, 1))
        if dead > _option(call, name, "autovacuum_vacuum_threshold") + 100
    ]


def _option(call: Caller, table: str, name: str) -> float:
    ((value,),) = call.run(OPTIONS, (name, name, f'"{call.schema}"."{table}"'))
    return value


async def _look_before_and_after(
    server: Server, call: Caller, rounds: int, limit: int
) -> dict[str, tuple[Plans, Plans]]:
    await prepare(call)
    await _work(call, rounds, limit)
    call.run("VACUUM ANALYZE")
    swept = await _look(call)
    with _snapshot(server):
        await _work(call, rounds, limit)
        # As the server does by itself, again and again: few rows live, and plans are made anew.
        call.run("ANALYZE")
        bloated = await _look(call)
    return {verb: (swept[verb], bloated[verb]) for verb in WATCHED}


async def _look(call: Caller) -> dict[str, Plans]:
    found: dict[str, Plans] = {}
    for _ in range(2):
        for verb in WATCHED:
            act = await ACTS[verb](call)
            _, found[verb] = await call.watch(act)
    return found


async def _work(call: Caller, rounds: int, limit: int) -> None:
    """Let many jobs be submitted, handed out and succeed; their leases are over at once."""
    left = rounds * limit
    while left > 0:
        many = min(left, 5_000)
        jobs = [new_job("mail", queue=QUEUE, tenant=f"t{n % TENANTS}") for n in range(many)]
        await submit(call, jobs)
        for _ in range(many // limit):
            asked = request(QUEUE, types=TYPES, limit=limit, lease_ms=1)
            taken = (await claim(call, asked)).claims
            assert len(taken) == limit
            await settle(call, [completed(one) for one in taken])
        left -= many


@contextmanager
def _snapshot(server: Server) -> Generator[None]:
    """See the database as it is now, for as long as this lasts, as a backup does."""
    with psycopg.connect(server.url()) as connection:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT count(*) FROM pg_class")
        yield


def _growth(swept: Plans, bloated: Plans) -> str:
    """Say where the pages were touched."""
    tables = sorted({look.table for look in bloated.looks}, key=bloated.buffers_of, reverse=True)
    return "\n".join(
        [
            f"{swept.buffers} pages in a swept store, {bloated.buffers} now; of them in",
            *(f"{name}: {swept.buffers_of(name)}, {bloated.buffers_of(name)}" for name in tables),
        ]
    )
