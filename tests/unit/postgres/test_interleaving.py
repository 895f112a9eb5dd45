"""Verbs that meet half way: one of them has not committed yet when the other comes along."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql

from lamplighter.connect import connect
from lamplighter.engines.postgres import ids
from lamplighter.engines.postgres.address import parse
from lamplighter.model.changes import Action, table_of
from lamplighter.port.conformance.builders import (
    claim,
    completed,
    handed_out,
    key,
    new_id,
    new_job,
    record,
    request,
    submit,
    with_quotas,
)
from lamplighter.port.conformance.clock import VirtualClock
from lamplighter.port.store import Engine
from lamplighter.port.values import (
    ChangeAnswer,
    QueueSettings,
    Retention,
    SubmitAnswer,
    TenantSettings,
)

Until = Callable[[Callable[[], object]], Awaitable[None]]
BY = {"by": "me", "reason": "test"}
WAITS = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"


class Other:
    """Somebody else, in the middle of a transaction."""

    def __init__(self, connection: psycopg.Connection, schema: str) -> None:
        self._connection = connection
        self._schema = sql.Identifier(schema)

    def does(self, text: str, *values: object) -> None:
        """Do something, and commit nothing."""
        self._connection.execute(sql.SQL(text).format(s=self._schema), values)

    def submits(self, job_id: str, queue: str = "default") -> None:
        self.does(
            "SELECT {s}.submit_one(%s, 2, 'work', '', %s, 'default', '{{}}', 0, NULL, NULL, NULL,"
            " 1, NULL, NULL)",
            queue,
            ids.uuid(job_id),
        )

    def takes_queue(self, queue: str) -> None:
        """Hold the lock that claims of this queue take."""
        self.does("SELECT set_config('search_path', %s, true)", self._schema.as_string())
        self.does("SELECT {s}.lock_queues(ARRAY[%s])", queue)

    def commits(self) -> None:
        self._connection.commit()


@contextmanager
def _other(url: str) -> Iterator[Other]:
    with psycopg.connect(url.partition("?")[0]) as connection:
        ids.register(connection)
        yield Other(connection, parse(url).schema)
        connection.rollback()


@pytest.fixture
def other(url: str) -> Iterator[Other]:
    with _other(url) as one:
        yield one


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    one = connect(url)
    await one.open()
    yield one
    await one.close()


@pytest.fixture
def waits(admin: psycopg.Connection, until: Until) -> Callable[[str], Awaitable[None]]:
    """Wait until a call of this function waits for a lock."""

    async def wait(function: str) -> None:
        await until(lambda: admin.execute(WAITS, (f"%{function}%",)).fetchone() is not None)

    return wait


async def test_two_submissions_of_the_same_ids_in_another_order_do_not_deadlock(
    engine: Engine, other: Other, waits: Callable[[str], Awaitable[None]]
):
    first, second = sorted((new_id(), new_id()))
    await submit(engine, new_job())
    other.submits(first)

    mine = asyncio.create_task(engine.jobs.submit([new_job(id=second), new_job(id=first)]))
    await waits("submit")
    other.submits(second)
    other.commits()

    assert [one.answer for one in await mine] == [SubmitAnswer.ALREADY] * 2


async def test_jobs_of_a_call_are_handed_out_in_its_order_whatever_their_ids(
    engine: Engine,
):
    given = sorted((new_id() for _ in range(10)), reverse=True)

    await submit(engine, *(new_job(id=job_id) for job_id in given))

    assert await handed_out(engine, 10) == given


async def test_holding_a_tenant_does_not_stop_who_makes_a_queue(
    engine: Engine, other: Other, waits: Callable[[str], Awaitable[None]]
):
    await submit(engine, new_job(tenant="a"))
    other.takes_queue("default")

    holding = asyncio.create_task(engine.settings.put_tenant("a", TenantSettings(held=True), **BY))
    await waits("put_tenant")
    await asyncio.wait_for(submit(engine, new_job(tenant="a", queue="new")), 5)
    assert not holding.done()
    other.commits()
    await holding

    assert await handed_out(engine, 5, "default", "new") == []


async def test_holding_a_queue_waits_for_the_claim_that_is_under_way(
    engine: Engine, other: Other, waits: Callable[[str], Awaitable[None]]
):
    await submit(engine, new_job())
    other.takes_queue("default")

    holding = asyncio.create_task(
        engine.settings.put_queue("default", QueueSettings(held=True), **BY)
    )
    await waits("put_queue")
    # What is no hold need not wait.
    patient = QueueSettings(max_wait_ms=5_000)
    await asyncio.wait_for(engine.settings.put_queue("default", patient, **BY), 5)
    other.commits()
    await holding

    assert await handed_out(engine, 5) == []


async def test_hold_waits_for_a_replay_and_then_holds(
    engine: Engine, other: Other, waits: Callable[[str], Awaitable[None]]
):
    (job_id,) = await submit(engine, new_job())
    await engine.jobs.settle([completed(one) for one in await claim(engine, 1)])
    effects = table_of(Action.REPLAY).effects
    replay = "SELECT {s}.change(ARRAY[%s]::uuid[], %s, false, '{{}}', '')"
    other.does(replay, ids.uuid(job_id), effects)

    holding = asyncio.create_task(engine.jobs.hold([job_id], **BY))
    await waits("change")
    other.commits()

    assert [one.answer for one in await holding] == [ChangeAnswer.DONE]
    assert (await record(engine, job_id)).hold is not None


async def test_what_commits_between_two_looks_of_a_claim_waits_for_the_next(
    engine: Engine,
    other: Other,
    admin: psycopg.Connection,
    waits: Callable[[str], Awaitable[None]],
    url: str,
):
    for queue in ("a", "b"):
        await submit(engine, new_job(queue=queue))
        assert len(await handed_out(engine, 1, queue)) == 1
    early = new_id()
    other.submits(early, "a")
    await submit(engine, *(new_job(queue="a") for _ in range(4)))
    await submit(engine, new_job(queue="b"))
    with _other(url) as third:
        third.does("SELECT FROM {s}.handed WHERE queue = 'b' FOR UPDATE")
        # Two of the first queue, one of the second, and then the rest of the first.
        claiming = asyncio.create_task(
            engine.jobs.claim(with_quotas(request(limit=6), ("a", 2), ("b", 1)))
        )
        await waits("claim")
        other.commits()
        third.commits()
    taken = (await claiming).claims

    assert len(taken) == len({one.job.id for one in taken}) == 5
    assert sorted(one.handout for one in taken if one.job.queue == "a") == [2, 3, 4, 5]
    assert await handed_out(engine, 5, "a", "b") == [early]


async def test_prune_leaves_the_shares_of_a_queue_that_is_busy(
    engine: Engine, other: Other, admin: psycopg.Connection, url: str
):
    await submit(engine, new_job())
    await claim(engine, 1)
    schema = parse(url).schema
    admin.execute(f"UPDATE {schema}.pulse SET clock = clock + 1000000000000")
    shares = f"SELECT count(*) FROM {schema}.share"

    other.takes_queue("default")
    await asyncio.wait_for(engine.jobs.prune(Retention(), 10), 5)
    assert admin.execute(shares).fetchone() == (1,)

    other.commits()
    await engine.jobs.prune(Retention(), 10)
    assert admin.execute(shares).fetchone() == (0,)


async def test_arrivals_that_claims_believe_to_have_seen_are_found_after_a_prune(
    engine: Engine, admin: psycopg.Connection, url: str
):
    await submit(engine, new_job())
    assert len(await handed_out(engine, 1)) == 1
    # As it is after a restore on another server, whose transaction numbers are behind.
    admin.execute(
        f"UPDATE {parse(url).schema}.pulse SET seen = (SELECT format('%s:%s:', n, n)::pg_snapshot"
        " FROM (SELECT pg_current_xact_id()::text::bigint + 50 AS n) AS ahead)"
    )
    missed = await submit(engine, new_job(), new_job())
    for _ in range(60):
        admin.execute("SELECT pg_current_xact_id()")
    assert await handed_out(engine, 5) == []

    await engine.jobs.prune(Retention(), 10)

    assert await handed_out(engine, 5) == missed


async def test_prunes_at_once_with_many_kept_keys_do_not_fail(url: str, clock: VirtualClock):
    engine = connect(url, clock_ms=clock.now_ms)
    await engine.open()
    try:
        jobs = [new_job(key=key(f"key-{number}")) for number in range(60)]
        await engine.jobs.submit(jobs)
        clock.advance(seconds=8 * 86_400)
        for _ in range(10):
            await asyncio.gather(*(engine.jobs.prune(Retention(), 2) for _ in range(3)))
        taken = await claim(engine, 60)
        await engine.jobs.settle([completed(one) for one in taken])
        await engine.jobs.purge([one.job.id for one in taken[:7]], **BY)
        # All have the same age, and the most are kept: those in between are found none the less.
        gone = 0
        for _ in range(20):
            gone += (await engine.jobs.prune(Retention(finished_ms=1 << 50), 2)).keys
        assert gone == 7
    finally:
        await engine.close()
