"""After a job is erased, nothing that was given to it or came of it is anywhere in its store."""

import sqlite3
from pathlib import Path

import pytest

from lamplighter.model.job import ErrorInfo, Extras, JobState
from lamplighter.model.journal import Journal, Progress
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import (
    completed,
    failed,
    key,
    new_job,
    pieces,
    record,
    running,
    settle_one,
)
from lamplighter.port.store import Engine
from lamplighter.port.values import ChangeAnswer, Recording

CANARY = "canary-7f3a9c"
BY = {"by": "alice", "reason": "asked for by its owner"}


async def sing(engine: Engine, end: JobState) -> str:
    """Run a job that has the canary in all that can hold it; give its id."""
    extras = Extras(tags=(CANARY,), metadata={"note": CANARY})
    job = new_job(
        args=f'{{"name":"{CANARY}"}}'.encode(), extras=extras, key=key(CANARY, body=CANARY)
    )
    taken = await running(engine, job)
    said = Journal(progress=Progress(done=1, note=CANARY), pieces=pieces(CANARY))
    await engine.jobs.record([Recording(job.id, taken.fence, said)])
    await engine.jobs.hold([job.id], by=CANARY, reason=CANARY)
    if end is JobState.DEAD:
        error = ErrorInfo(type=CANARY, message=CANARY, traceback=CANARY, fingerprint=CANARY)
        await settle_one(engine, failed(taken, error, retry=Retry(max_attempts=1)))
    else:
        await engine.jobs.cancel([job.id], by=CANARY, reason=CANARY)
        last = completed(taken, f'"{CANARY}"'.encode())
        await settle_one(engine, last if end is JobState.SUCCEEDED else failed(taken))
    found = await record(engine, job.id)
    assert found.state is end
    return job.id


def dump(url: str) -> str:
    """Everything that a store holds, as text."""
    if url.startswith("sqlite"):
        return _sqlite(Path(url.partition("///")[2].partition("?")[0]))
    if url.startswith("postgres"):
        return _postgres(url)
    return _redis(url)


def _sqlite(path: Path) -> str:
    with sqlite3.connect(path) as connection:
        return "\n".join(repr(row) for table in _tables(connection) for row in table)


def _tables(connection):
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in names:
        yield connection.execute(f'SELECT * FROM "{name}"').fetchall()


def _postgres(url: str) -> str:
    import psycopg

    from lamplighter.engines.postgres.address import parse

    found = []
    with psycopg.connect(url.partition("?")[0]) as connection:
        schema = parse(url).schema
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)
        ).fetchall()
        for (name,) in tables:
            rows = connection.execute(f'SELECT t::text FROM "{schema}"."{name}" AS t').fetchall()
            found += [str(row) for row in rows]
    return "\n".join(found)


def _redis(url: str) -> str:
    import redis

    client = redis.Redis.from_url(url.partition("?")[0])
    found = []
    for name in client.scan_iter():
        kind = client.type(name)
        read = {
            b"string": lambda one: [client.get(one)],
            b"hash": lambda one: list(client.hgetall(one).items()),
            b"zset": lambda one: client.zrange(one, 0, -1),
            b"set": client.smembers,
            b"list": lambda one: client.lrange(one, 0, -1),
        }[kind]
        found += [repr(name), *(repr(value) for value in read(name))]
    return "\n".join(found)


def holds(text: str) -> bool:
    """Whether the canary is in it, also as hex digits, as PostgreSQL shows bytes."""
    return CANARY in text or CANARY.encode().hex() in text


async def test_the_canary_is_found_nowhere_after_erasure(engine, store_url):
    for end in (JobState.DEAD, JobState.SUCCEEDED, JobState.CANCELLED):
        job_id = await sing(engine, end)
        before = dump(store_url)
        assert before.count(CANARY) + before.count(CANARY.encode().hex()) >= 5

        (said,) = await engine.jobs.erase([job_id], **BY)

        assert said.answer is ChangeAnswer.DONE
        assert not holds(dump(store_url))


async def test_nothing_is_left_in_the_file_of_an_embedded_store(engine, store_url):
    """Best effort: what a job wrote over while it ran may stand in free space until a VACUUM."""
    if not store_url.startswith("sqlite"):
        pytest.skip("servers keep their files to themselves")
    path = Path(store_url.partition("///")[2].partition("?")[0])
    job = new_job(args=f'{{"name":"{CANARY}"}}'.encode(), key=key(CANARY))
    await engine.jobs.submit([job])
    await engine.jobs.cancel([job.id], **BY)
    await engine.jobs.erase([job.id], **BY)
    await engine.close()
    files = [path, *path.parent.glob(f"{path.name}-*")]
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert [one.name for one in files if one.exists() and CANARY.encode() in one.read_bytes()] == []
