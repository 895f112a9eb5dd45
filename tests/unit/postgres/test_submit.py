"""Submit while others write the same: every id and every key once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.engines.postgres import ids
from lamplighter.engines.postgres.call import Row
from lamplighter.engines.postgres.verbs.submit import submit as verb
from lamplighter.model.job import Claim, NewJob
from lamplighter.model.journal import Journal, Progress
from lamplighter.port.conformance.builders import (
    claim,
    completed,
    finished,
    key,
    new_job,
    running,
    submit,
)
from lamplighter.port.store import Engine
from lamplighter.port.values import Settled, SubmitAnswer, Submitted

Until = Callable[[Callable[[], object]], Awaitable[None]]

CREATED, ALREADY = SubmitAnswer.CREATED, SubmitAnswer.ALREADY
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE pid <> %s AND wait_event_type = 'Lock'"


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    opened = connect(url)
    await opened.open()
    await finished(opened)  # the lane is there, so that nobody waits for that
    yield opened
    await opened.close()


class Slow:
    """A caller that has written and not yet committed."""

    def __init__(self, url: str) -> None:
        place, _, _ = url.partition("?")
        self.schema = parse_qs(urlsplit(url).query)["schema"][0]
        self.connection = psycopg.connect(place)
        ids.register(self.connection)

    def function(self, name: str) -> str:
        return f'"{self.schema}"."{name}"'

    async def rows(
        self,
        statement: str,
        parameters: Sequence[object] = (),
        *,
        urgent: bool = False,
        instead: str | None = None,
    ) -> list[Row]:
        text: Any = statement
        cursor = self.connection.execute(text, parameters, binary=True)
        return cursor.fetchall() if cursor.description else []

    async def submit(self, *jobs: NewJob) -> list[Submitted]:
        return await verb(self, jobs)


@pytest.fixture
def slow(engine: Engine, url: str) -> Iterator[Slow]:
    caller = Slow(url)
    yield caller
    caller.connection.close()


@pytest.mark.parametrize("case", [*product(["key", "id"], ["commit", "rollback"])], ids="-".join)
async def test_who_submits_the_same_waits_for_the_first_to_end(
    engine: Engine,
    slow: Slow,
    admin: psycopg.Connection,
    until: Until,
    case: tuple[str, str],
) -> None:
    what, end = case
    first = new_job(key=key() if what == "key" else None)
    second = new_job(key=key()) if what == "key" else new_job(id=first.id)
    assert await slow.submit(first) == [Submitted(first.id, CREATED)]

    waiting = asyncio.create_task(engine.jobs.submit([second]))
    await until(lambda: _waits(admin, slow))
    getattr(slow.connection, end)()

    expected = Submitted(first.id, ALREADY) if end == "commit" else Submitted(second.id, CREATED)
    assert await waiting == [expected]
    assert len(await claim(engine, 10)) == 1


async def test_the_id_of_a_job_that_is_just_ending_is_already(
    engine: Engine, slow: Slow, admin: psycopg.Connection, until: Until
) -> None:
    taken = await running(engine)
    await submit(engine, new_job())
    # Everything is written, and a lock in the way keeps the settle from its end.
    await slow.rows(f"LOCK TABLE {slow.function('progress')} IN ACCESS EXCLUSIVE MODE")
    settled = asyncio.create_task(_settle_with_progress(engine, taken))
    await until(lambda: _waits(admin, slow))
    again = asyncio.create_task(engine.jobs.submit([new_job(id=taken.job.id)]))
    await until(lambda: _waits(admin, slow) == 2)

    slow.connection.rollback()

    assert (await settled)[0].answer == "done"
    assert await again == [Submitted(taken.job.id, ALREADY)]
    assert taken.job.id not in [one.job.id for one in await claim(engine, 10)]


async def test_a_job_behind_one_that_has_ended_is_handed_out(engine: Engine, slow: Slow) -> None:
    ended, fresh = await finished(engine), new_job()

    answers = await engine.jobs.submit([new_job(id=ended.job.id), fresh])
    await engine.jobs.submit([new_job(id=ended.job.id)])

    assert [one.answer for one in answers] == [ALREADY, CREATED]
    assert await slow.rows(f"SELECT count(*) FROM {slow.function('arrival')}") == [(1,)]
    assert [one.job.id for one in await claim(engine, 10)] == [fresh.id]


async def test_a_key_is_not_taken_by_a_job_whose_id_came_from_somebody_else(
    engine: Engine, slow: Slow, admin: psycopg.Connection, until: Until
) -> None:
    first = new_job()
    await slow.submit(first)

    waiting = asyncio.create_task(engine.jobs.submit([new_job(id=first.id, key=key())]))
    await until(lambda: _waits(admin, slow))
    slow.connection.commit()

    assert await waiting == [Submitted(first.id, ALREADY)]
    other = new_job(key=key(body="another"))
    assert await engine.jobs.submit([other]) == [Submitted(other.id, CREATED)]


async def test_new_lanes_made_by_many_at_once_are_made_once(engine: Engine) -> None:
    def batch(number: int) -> list[NewJob]:
        jobs = [new_job(f"type-{n}", queue=f"queue-{n % 3}") for n in range(12)]
        return jobs[number:] + jobs[:number]

    answers = await asyncio.gather(*(engine.jobs.submit(batch(number)) for number in range(8)))

    assert {one.answer for answer in answers for one in answer} == {CREATED}
    found = await engine.inspector.queues()
    assert [(queue.name, queue.ready) for queue in found] == [
        ("default", 0),
        ("queue-0", 32),
        ("queue-1", 32),
        ("queue-2", 32),
    ]


async def _settle_with_progress(engine: Engine, taken: Claim) -> list[Settled]:
    said = replace(completed(taken), journal=Journal(progress=Progress(done=1)))
    return await engine.jobs.settle([said])


def _waits(admin: psycopg.Connection, slow: Slow) -> int:
    row = admin.execute(WAITS, (slow.connection.info.backend_pid,)).fetchone()
    assert row is not None
    return row[0]
