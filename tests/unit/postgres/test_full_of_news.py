"""A server whose queue of notifications is full: jobs are stored all the same, in silence."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.engines.postgres import wakeup
from lamplighter.engines.postgres.wakeup import channel_of
from lamplighter.model.errors import StoreError
from lamplighter.port.checkup import Grade
from lamplighter.port.conformance.builders import new_job
from lamplighter.port.store import Engine
from lamplighter.port.values import SubmitAnswer
from tests.servers.postgres import Server, newest_server, start

CREATED, ALREADY = SubmitAnswer.CREATED, SubmitAnswer.ALREADY
FULL = "too many notifications in the NOTIFY queue"
SETTABLE_FROM = 17
CHANNEL = channel_of("lamplighter")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Server]:
    """A server with room for few notifications."""
    binaries = newest_server()
    if binaries.version[0] < SETTABLE_FROM:
        pytest.skip("the queue of this server is too large to be filled")
    with start(binaries, tmp_path, settings={"max_notify_queue_pages": "64"}) as server:
        yield server


@pytest.fixture
def sleeper(small: Server) -> Iterator[psycopg.Connection]:
    """Somebody who listens to something else, and hears nothing because of an open transaction."""
    with psycopg.connect(small.url()) as connection:
        connection.execute("LISTEN gossip")
        connection.commit()
        connection.execute("SELECT 1")
        yield connection


@pytest.fixture
async def engine(small: Server) -> AsyncIterator[Engine]:
    opened = connect(small.url())
    await opened.open()
    yield opened
    await opened.close()


def fill(server: Server) -> None:
    with server.connect() as talker, pytest.raises(psycopg.Error, match=FULL):
        talk(talker)


def talk(talker: psycopg.Connection) -> None:
    while True:
        talker.execute(
            "SELECT pg_notify('gossip', repeat('a', 7000) || n) FROM generate_series(1, 50) n"
        )


def complaints(server: Server) -> int:
    return server.log.read_text(encoding="utf-8").count(FULL)


async def test_a_single_job_is_stored_and_answered_as_ever(
    small: Server, sleeper: psycopg.Connection, engine: Engine
):
    fill(small)
    before = complaints(small)
    jobs = [new_job() for _ in range(5)]

    answers = [(await engine.jobs.submit([job]))[0].answer for job in jobs]

    assert answers == [CREATED] * 5
    assert (await engine.inspector.counts())["waiting"] == 5
    # Only the first has tried to say something.
    assert complaints(small) == before + 1
    assert (await engine.jobs.submit([jobs[0]]))[0].answer is ALREADY


async def test_telling_is_given_up_for_a_while(
    small: Server, sleeper: psycopg.Connection, engine: Engine, until
):
    fill(small)
    before = complaints(small)
    await engine.wakeup.notify("a")
    await until(lambda: complaints(small) == before + 1)

    for _ in range(5):
        await engine.wakeup.notify("a")
        await engine.jobs.submit([new_job()])

    assert complaints(small) == before + 1


async def test_it_is_tried_again_after_a_while_without_an_error(
    small: Server,
    sleeper: psycopg.Connection,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(wakeup, "_MUTE_SECONDS", 0.0)
    fill(small)
    await engine.jobs.submit([new_job()])
    before = complaints(small)

    for _ in range(5):
        await engine.wakeup.notify("a")
        await engine.jobs.submit([new_job()])
        assert not await engine.wakeup._notify(["a"])

    assert complaints(small) == before


async def test_it_is_told_again_when_there_is_room(
    small: Server,
    sleeper: psycopg.Connection,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(wakeup, "_MUTE_SECONDS", 0.0)
    fill(small)
    await engine.jobs.submit([new_job()])
    sleeper.close()
    with small.connect() as ear:
        ear.execute(f"LISTEN {CHANNEL}")

        await engine.wakeup.notify("a")

        heard = await asyncio.to_thread(lambda: [*ear.notifies(timeout=20.0, stop_after=1)])
        assert [note.channel for note in heard] == [CHANNEL]
        sender = engine.wakeup._sender
        assert sender is not None
        await sender
        await engine.jobs.submit([new_job()])  # says it itself, as before
        heard = await asyncio.to_thread(lambda: [*ear.notifies(timeout=20.0, stop_after=1)])
        assert [note.channel for note in heard] == [CHANNEL]


async def test_a_job_that_is_too_much_itself_is_told(engine: Engine, small: Server):
    # Longer than a key in an index can be.
    too_long = "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(4000))

    with pytest.raises(StoreError, match="index row"):
        await engine.jobs.submit([new_job(tenant=too_long)])

    assert not engine.wakeup._muted()
    assert (await engine.inspector.counts())["waiting"] == 0


async def test_doctor_warns_before_it_is_full(small: Server, sleeper: psycopg.Connection):
    engine = connect(small.url())
    fill(small)

    (found,) = [one for one in (await engine.check_up()).findings if one.check == "wake-ups"]

    assert found.grade is Grade.WARNING
    assert "% full" in found.text
    assert "idle in transaction" in found.remedy
