"""What goes wrong around the engine must not spread: forks, broken rows, stuck neighbours."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sqlite3
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

from lamplighter.connect import connect
from lamplighter.engines.sqlite import checkpoint, writer
from lamplighter.model.errors import StoreClosed, StoreFull
from lamplighter.model.job import Delivery, Extras
from lamplighter.model.journal import Journal, Progress
from lamplighter.model.retry import Retry
from lamplighter.observability import events
from lamplighter.port.conformance.builders import mark_start, new_job, record, request, running
from lamplighter.port.values import Recording, Retention

if TYPE_CHECKING:
    from pathlib import Path

    from lamplighter.port.store import Engine

NO_DISK = OSError(28, "No space left on device")


def inner(engine: Engine) -> Any:
    return cast("Any", engine)._driver


def shell(path: Path, *statements: str) -> list[tuple[Any, ...]]:
    """Do to the file what no verb does."""
    connection = sqlite3.connect(path, isolation_level=None)
    rows: list[tuple[Any, ...]] = []
    for statement in statements:
        rows = connection.execute(statement).fetchall()
    connection.close()
    return rows


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_fork_waits_for_the_transaction_and_the_parent_goes_on(engine: Engine) -> None:
    inside, forked = threading.Event(), threading.Event()

    def slow(_: object) -> str:
        inside.set()
        forked.wait(0.2)
        return "done"

    call = asyncio.ensure_future(inner(engine)._writer.run(slow))
    await asyncio.to_thread(inside.wait)
    child = os.fork()
    if child == 0:
        os._exit(0 if inner(engine)._writer._connection._connection is None else 1)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    forked.set()

    assert os.waitstatus_to_exitcode(status) == 0
    assert await call == "done"
    await engine.jobs.submit([new_job()])
    assert (await engine.inspector.counts())["waiting"] == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_engine_from_before_the_fork_says_so_in_the_child(path: Path) -> None:
    engine = connect(f"sqlite:///{path}")
    asyncio.run(engine.open())
    child = os.fork()
    if child == 0:
        try:
            with inner(engine)._reader._connection.held():
                os._exit(1)
        except StoreClosed:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    asyncio.run(engine.close())
    assert os.waitstatus_to_exitcode(status) == 0


async def test_a_row_of_a_newer_version_does_not_stop_the_queue(engine: Engine, path: Path) -> None:
    strange = new_job(extras=Extras(retry=Retry(fixed=5)))
    broken, plain = new_job(extras=Extras(timeout=3.0)), new_job()
    await engine.jobs.submit([strange, broken, plain])
    stored = json.loads(shell(path, f"SELECT extras FROM job WHERE id = '{strange.id}'")[0][0])
    policy = {**json.loads(stored["retry"]), "shape": "round"}
    later = json.dumps({"retry": json.dumps(policy)})
    shell(
        path,
        f"UPDATE job SET extras = '{later}' WHERE id = '{strange.id}'",
        f"UPDATE job SET extras = '[not ours' WHERE id = '{broken.id}'",
    )

    claims = (await engine.jobs.claim(request(limit=10))).claims

    assert [claim.job.id for claim in claims] == [strange.id, broken.id, plain.id]
    assert claims[0].job.extras.retry == Retry(fixed=5)
    assert claims[1].job.extras == Extras()
    assert len(await engine.jobs.claims_of(claims[0].worker)) == 3


async def test_a_progress_that_cannot_be_read_says_nothing(engine: Engine, path: Path) -> None:
    taken = await running(engine)
    said = Journal(progress=Progress(done=1))
    await engine.jobs.record([Recording(taken.job.id, taken.fence, said)])
    for value in ("{", "7", "[1, 2]"):
        shell(path, f"UPDATE progress SET value = '{value}'")
        assert (await record(engine, taken.job.id)).progress is None


async def test_retention_keeps_up_with_requests_behind_long_runs(
    engine: Engine, path: Path
) -> None:
    await engine.jobs.submit([new_job() for _ in range(20)])
    for _ in range(20):
        await engine.jobs.claim(request(limit=1))
    shell(
        path,
        "UPDATE request SET at = 0",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) "
        "INSERT INTO request SELECT 'old' || i, 1 FROM n",
    )

    first = await engine.jobs.prune(Retention(), 10)
    assert first.more
    steps = 1
    while (await engine.jobs.prune(Retention(), 10)).more:
        steps += 1

    assert steps <= 6
    # The nonces under which jobs still run are the ones that stay.
    assert shell(path, "SELECT count(*) FROM request") == [(20,)]


async def test_opening_a_store_waits_for_nobody(engine: Engine, path: Path) -> None:
    await engine.jobs.submit([new_job()])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        second = connect(f"sqlite:///{path}")
        await asyncio.wait_for(second.open(), 2)
        assert (await second.inspector.counts())["waiting"] == 1
        await second.close()
    finally:
        other.execute("ROLLBACK")
        other.close()


async def test_closing_does_not_wait_for_ever_for_a_stopped_process(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_CLOSE_SECONDS", 0.1)
    engine = connect(f"sqlite:///{path}", deadline=0.1)
    await engine.open()
    inner_writer = inner(engine)._writer
    with path.with_name(path.name + "-write").open("r+") as side:
        fcntl.flock(side, fcntl.LOCK_EX)
        call = asyncio.ensure_future(engine.jobs.submit([new_job()]))
        await asyncio.wait_for(asyncio.gather(call, return_exceptions=True), 5)
        await asyncio.wait_for(engine.close(), 5)
        fcntl.flock(side, fcntl.LOCK_UN)
    # The thread lets go by itself once the lock is free.
    await asyncio.to_thread(inner_writer._thread.join)
    inner_writer._checkpointer.close()
    inner_writer._connection.close()
    inner_writer._turnstile.close()


async def test_a_checkpoint_that_fails_is_not_the_callers(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []

    def fail(_: object) -> None:
        told.append(1)

    monkeypatch.setattr(inner(engine)._writer._checkpointer, "finish_with", fail)
    inner(engine)._writer._checkpointer.finish = True
    inner(engine)._writer._checkpointer.large = True
    await engine.jobs.submit([new_job()])
    assert told == [1]
    monkeypatch.undo()

    class Broken:
        def execute(self, _: str) -> None:
            raise sqlite3.OperationalError("disk I/O error")

    inner(engine)._writer._checkpointer.finish_with(Broken())


async def test_a_repeated_start_of_what_may_run_once_is_brought_to_disk_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []

    def sync(_: str) -> None:
        synced.append(1)
        if len(synced) == 1:
            raise NO_DISK

    monkeypatch.setattr(writer, "_sync", sync)
    taken = await running(engine, new_job(delivery=Delivery.AT_MOST_ONCE))
    with pytest.raises(StoreFull):
        await mark_start(engine, taken)

    assert await mark_start(engine, taken)

    assert len(synced) == 2


async def test_a_log_that_cannot_start_over_is_told(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "ALARM_BYTES", 1)
    inner(engine)._writer._checkpointer._told = 1
    told: list[str] = []
    stop = events.listen(lambda name, _: told.append(name))
    await engine.jobs.submit([new_job()])
    inner(engine)._writer._checkpointer.look()
    stop()
    assert events.STORE_LOG_LARGE in told


async def test_at_rest_no_caller_waits_for_a_checkpoint(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    keeper = inner(engine)._writer._checkpointer
    monkeypatch.setattr(keeper, "finish_with", lambda _: told.append(1))
    keeper.finish = True
    await engine.jobs.submit([new_job()])
    assert told == []
    await asyncio.gather(*(engine.jobs.submit([new_job()]) for _ in range(9)))
    assert told
