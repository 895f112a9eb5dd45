"""One writer: group commit, one savepoint per caller, deadlines, a full disk, a bounded log."""

from __future__ import annotations

import asyncio
import fcntl
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from lamplighter.connect import connect
from lamplighter.engines.sqlite import database, writer
from lamplighter.model.errors import StoreBusy, StoreFull
from lamplighter.model.job import Delivery
from lamplighter.model.journal import Journal
from lamplighter.port.conformance.builders import (
    completed,
    mark_start,
    new_job,
    pieces,
    recording,
    request,
    running,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lamplighter.model.job import NewJob
    from lamplighter.port.store import Engine


def connection_of(engine: Engine) -> sqlite3.Connection:
    """Reach the writer's own connection, to break it on purpose."""
    inner = cast("Any", engine)._driver
    return cast("sqlite3.Connection", inner._writer._connection._connection)


async def waiting(engine: Engine) -> int:
    return (await engine.inspector.counts())["waiting"]


async def test_a_caller_that_fails_does_not_take_its_neighbours_with_it(engine: Engine) -> None:
    good = [new_job() for _ in range(20)]
    bad = replace(new_job(), cost=cast("int", object()))
    calls = [engine.jobs.submit([job]) for job in [*good[:10], bad, *good[10:]]]

    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert sum(isinstance(answer, Exception) for answer in answers) == 1
    assert await waiting(engine) == 20


async def test_calls_made_together_share_commits(engine: Engine) -> None:
    commits: list[str] = []
    connection_of(engine).set_trace_callback(
        lambda text: commits.append(text) if text == "COMMIT" else None
    )
    await asyncio.gather(*(engine.jobs.submit([new_job()]) for _ in range(200)))
    assert len(commits) < 50
    assert await waiting(engine) == 200


async def test_a_full_disk_is_named_and_nothing_is_half_written(engine: Engine) -> None:
    await engine.jobs.submit([new_job()])
    connection = connection_of(engine)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 1}").fetchall()

    with pytest.raises(StoreFull, match="full"):
        await engine.jobs.submit([new_job(args=b'"' + b"x" * 60_000 + b'"') for _ in range(9)])
    assert await waiting(engine) == 1

    connection.execute("PRAGMA max_page_count = 1000000").fetchall()
    await engine.jobs.submit([new_job()])
    assert await waiting(engine) == 2


async def test_another_programs_open_transaction_is_named(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_BUSY_MS", 100)
    engine = connect(f"sqlite:///{path}")
    await engine.open()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreBusy, match="lock"):
        await engine.jobs.submit([new_job()])

    other.execute("ROLLBACK")
    other.close()
    await engine.jobs.submit([new_job()])
    assert await waiting(engine) == 1
    await engine.close()


async def test_a_write_lock_held_for_too_long_ends_in_an_error_and_no_late_write(
    path: Path,
) -> None:
    engine = connect(f"sqlite:///{path}", deadline=0.2)
    await engine.open()
    with path.with_name(path.name + "-write").open("r+") as side:
        fcntl.flock(side, fcntl.LOCK_EX)
        first = asyncio.ensure_future(engine.jobs.submit([new_job()]))
        second = asyncio.ensure_future(engine.jobs.submit([new_job()]))
        for call in (first, second):
            with pytest.raises(StoreBusy, match="another process holds"):
                await call
        fcntl.flock(side, fcntl.LOCK_UN)

    await engine.jobs.submit([new_job()])
    assert await waiting(engine) == 1
    await engine.close()


async def test_the_log_does_not_grow_without_bound(engine: Engine, path: Path) -> None:
    log = path.with_name(path.name + "-wal")
    for _ in range(300):
        await engine.jobs.submit([new_job(args=b'"' + b"x" * 9_000 + b'"') for _ in range(20)])
    assert log.stat().st_size < 40 * 1024 * 1024


async def test_closing_writes_what_was_asked_before(path: Path) -> None:
    engine = connect(f"sqlite:///{path}")
    await engine.open()
    calls = [asyncio.ensure_future(engine.jobs.submit([new_job()])) for _ in range(5)]
    await asyncio.sleep(0)
    await engine.close()
    await asyncio.gather(*calls)
    again = connect(f"sqlite:///{path}")
    await again.open()
    assert await waiting(again) == 5
    await again.close()


async def synced(engine: Engine, monkeypatch: pytest.MonkeyPatch, *jobs: NewJob) -> list[str]:
    """Submit and claim; gives what was brought to disk for the claim, and at which level."""
    told: list[str] = []
    monkeypatch.setattr(writer, "_sync", lambda _: told.append("sync"))
    await engine.jobs.submit(jobs)
    connection_of(engine).set_trace_callback(
        lambda text: told.append(text) if "synchronous" in text else None
    )
    claimed = await engine.jobs.claim(request(types=tuple({job.type for job in jobs})))
    assert len(claimed.claims) == len(jobs)
    return told


async def test_a_claim_does_not_wait_for_the_disk(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = await synced(engine, monkeypatch, new_job())
    assert told == ["PRAGMA synchronous = NORMAL"]
    await engine.jobs.submit([new_job()])
    assert told[-1] == "PRAGMA synchronous = FULL"


async def test_a_start_of_what_may_run_once_waits_for_the_disk_and_its_claim_does_not(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = replace(new_job(), delivery=Delivery.AT_MOST_ONCE)
    told = await synced(engine, monkeypatch, once)
    assert told == ["PRAGMA synchronous = NORMAL"]

    (taken,) = await engine.jobs.claims_of("worker-1")
    await mark_start(engine, taken)

    assert told == ["PRAGMA synchronous = NORMAL", "sync"]


async def test_a_recording_does_not_wait_for_the_disk_and_last_words_do(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = await running(engine)
    await engine.jobs.submit([new_job()])
    told: list[str] = []
    monkeypatch.setattr(writer, "_sync", lambda _: told.append("sync"))
    connection_of(engine).set_trace_callback(
        lambda text: told.append(text) if "synchronous" in text else None
    )

    await engine.jobs.record([recording(taken, "a")])
    assert told == ["PRAGMA synchronous = NORMAL"]
    await engine.jobs.settle([replace(completed(taken), journal=Journal(pieces=pieces("a", "b")))])

    assert told == ["PRAGMA synchronous = NORMAL", "PRAGMA synchronous = FULL"]


async def test_jobs_that_say_nothing_cost_no_statement_for_it(engine: Engine) -> None:
    await engine.jobs.submit([new_job() for _ in range(3)])
    told: list[str] = []
    connection_of(engine).set_trace_callback(told.append)

    claimed = await engine.jobs.claim(request(limit=3))
    await engine.jobs.settle([completed(taken) for taken in claimed.claims])

    assert len(claimed.claims) == 3
    assert [text for text in told if "progress" in text or " log" in text] == []
    assert any("UPDATE job" in text for text in told)
