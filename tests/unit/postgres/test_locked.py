"""A row that a frozen client has locked holds up no settlement and no recording of the others."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from lamplighter.connect import connect
from lamplighter.engines.postgres import ids
from lamplighter.engines.postgres.address import parse
from lamplighter.model.job import Fence, JobState
from lamplighter.model.lifecycle import Settlement
from lamplighter.port.conformance.builders import (
    claim,
    completed,
    failed,
    logged,
    new_job,
    record,
    recording,
    running,
    settle_one,
    submit,
)
from lamplighter.port.schedules import NewSchedule
from lamplighter.port.store import Engine
from lamplighter.port.values import ChangeAnswer, Changed, Recorded, Recording, SettleAnswer

DONE, ALREADY, LOST = SettleAnswer.DONE, SettleAnswer.ALREADY, SettleAnswer.LOST
BUSY = SettleAnswer.BUSY
PROMPTLY = 3.0


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    opened = connect(url)
    await opened.open()
    yield opened
    await opened.close()


class Client:
    """Locks jobs in a transaction that stays open, as a client that is stopped leaves it."""

    def __init__(self, connection: psycopg.Connection, schema: str) -> None:
        self._connection = connection
        self._schema = sql.Identifier(schema)

    def does(self, text: str, *values: object) -> None:
        self._connection.execute(sql.SQL(text).format(s=self._schema), values)

    def locks(self, job_id: str) -> None:
        self.does("SELECT FROM {s}.job WHERE id = %s FOR UPDATE", UUID(bytes=ids.uuid(job_id)))

    def lets_go(self) -> None:
        self._connection.rollback()


@pytest.fixture
def frozen(url: str) -> Iterator[Client]:
    with psycopg.connect(url.partition("?")[0]) as connection:
        yield Client(connection, parse(url).schema)
        connection.rollback()


async def settle(engine: Engine, settlements: list[Settlement]) -> list[SettleAnswer]:
    async with asyncio.timeout(PROMPTLY):
        return [one.answer for one in await engine.jobs.settle(settlements)]


async def say(engine: Engine, recordings: list[Recording]) -> list[Recorded]:
    async with asyncio.timeout(PROMPTLY):
        return await engine.jobs.record(recordings)


@pytest.mark.parametrize("ends", ["all succeed", "some fail"])
async def test_all_but_the_locked_job_are_settled_promptly(engine, frozen, ends):
    claims = [await running(engine) for _ in range(3)]
    settlements = [completed(one, b"1") for one in claims]
    if ends == "some fail":
        settlements[1:] = [failed(claims[1]), completed(claims[2], b"1")]
    frozen.locks(claims[1].job.id)

    assert await settle(engine, settlements) == [DONE, BUSY, DONE]

    found = [await record(engine, one.job.id) for one in claims]
    states = [JobState.SUCCEEDED, JobState.RUNNING, JobState.SUCCEEDED]
    assert [one.state for one in found] == states
    assert await settle(engine, settlements) == [ALREADY, BUSY, ALREADY]
    frozen.lets_go()
    assert await settle(engine, settlements) == [ALREADY, DONE, ALREADY]


async def test_nothing_is_written_of_a_settlement_that_is_busy(engine, frozen):
    taken = await running(engine)
    said = replace(completed(taken), journal=recording(taken, "last words").journal)
    frozen.locks(taken.job.id)

    (answer,) = await engine.jobs.settle([said])

    assert (answer.answer, answer.state) == (BUSY, JobState.RUNNING)
    assert await logged(engine, taken.job.id) == []
    (attempt,) = await engine.inspector.attempts(taken.job.id)
    assert attempt.outcome == "running"


async def test_two_settlements_of_one_locked_job_are_both_busy(engine, frozen):
    taken = await running(engine)
    frozen.locks(taken.job.id)

    assert await settle(engine, [completed(taken), failed(taken)]) == [BUSY, BUSY]


async def test_a_locked_job_that_runs_under_another_fence_is_lost(engine, frozen):
    mine, other = await running(engine), await running(engine)
    former = replace(other, fence=Fence(other.fence.lease, "0" * 16))
    frozen.locks(other.job.id)

    assert await settle(engine, [completed(mine), completed(former)]) == [DONE, LOST]
    assert await say(engine, [recording(former, "a")]) == [Recorded(other.job.id, held=False)]


async def test_a_settled_job_that_waits_again_and_is_locked_is_known_to_be_settled(engine, frozen):
    taken = await running(engine)
    await settle_one(engine, failed(taken))
    frozen.locks(taken.job.id)

    assert await settle(engine, [failed(taken)]) == [ALREADY]


@pytest.mark.parametrize("verb", ["settle", "record"])
async def test_a_lock_that_is_held_for_a_moment_is_waited_for(engine, frozen, verb):
    taken = await running(engine)
    frozen.locks(taken.job.id)

    asyncio.get_running_loop().call_later(0.01, frozen.lets_go)

    if verb == "settle":
        assert await settle(engine, [completed(taken)]) == [DONE]
    else:
        assert await say(engine, [recording(taken, "a")]) == [Recorded(taken.job.id, held=True)]


async def test_a_schedule_that_is_being_fired_is_waited_for_however_long_it_takes(engine, frozen):
    schedule = NewSchedule(id="nightly", spec="{}", tenant="default", type="work", due_ms=1)
    await engine.schedules.put_schedules([schedule], by="test")
    taken = await running(engine, new_job(schedule="nightly"))
    frozen.does("SELECT FROM {s}.schedule FOR UPDATE")

    asyncio.get_running_loop().call_later(0.3, frozen.lets_go)

    assert await settle(engine, [completed(taken)]) == [DONE]


async def test_a_cancel_of_a_locked_job_holds_up_no_claim_of_its_queue(engine, frozen):
    taken = await running(engine)
    (waiting,) = await submit(engine, new_job())
    frozen.locks(taken.job.id)

    cancel = asyncio.create_task(engine.jobs.cancel([taken.job.id], by="test", reason=""))
    await asyncio.sleep(0.3)
    async with asyncio.timeout(PROMPTLY):
        assert [one.job.id for one in await claim(engine, 1)] == [waiting]
    assert not cancel.done()
    frozen.lets_go()

    assert await cancel == [Changed(taken.job.id, ChangeAnswer.REQUESTED, JobState.RUNNING)]


async def test_all_but_the_locked_job_are_recorded_promptly(engine, frozen):
    claims = [await running(engine) for _ in range(3)]
    said = [replace(recording(one, "words"), started=True) for one in claims]
    frozen.locks(claims[1].job.id)

    answers = await say(engine, said)

    assert answers == [
        Recorded(claims[0].job.id, held=True),
        Recorded(claims[1].job.id, held=False, busy=True),
        Recorded(claims[2].job.id, held=True),
    ]
    assert [await logged(engine, one.job.id) for one in claims] == [["words"], [], ["words"]]
    marks = {one.job.id: one.started for one in await engine.jobs.claims_of(claims[0].worker)}
    assert [marks[one.job.id] for one in claims] == [True, False, True]

    frozen.lets_go()
    assert await say(engine, said) == [Recorded(one.job.id, held=True) for one in claims]
    assert await logged(engine, claims[1].job.id) == ["words"]
