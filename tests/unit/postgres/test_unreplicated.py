"""A synchronous standby that is away, and somebody who does not want to wait for it."""

import asyncio
import logging

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.model.errors import StoreBusy
from lamplighter.port.conformance.builders import new_job
from lamplighter.port.values import SubmitAnswer
from tests.servers.postgres import Server

WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def expect_standby(admin: psycopg.Connection, names: str) -> None:
    admin.execute("SET synchronous_commit = local")
    admin.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    admin.execute("SELECT pg_reload_conf()")
    # Who commits waits only after the checkpointer has heard of it.
    admin.execute("CHECKPOINT")


@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
@pytest.mark.parametrize("count", [1, 2])
async def test_a_commit_that_was_not_replicated_is_not_told_as_one_that_was(
    server: Server, until, caplog: pytest.LogCaptureFixture, count: int, end: str
):
    engine = connect(server.url())
    await engine.open()
    jobs = [new_job() for _ in range(count)]
    with server.connect() as admin:
        expect_standby(admin, "nobody")
        await until(lambda: admin.execute("SHOW synchronous_standby_names").fetchone() != ("",))
        asked = asyncio.create_task(engine.jobs.submit(jobs))
        await until(lambda: admin.execute(WAITING).fetchall())

        admin.execute(f"SELECT {end}(pid) FROM ({WAITING}) AS waiting")
        with caplog.at_level(logging.WARNING), pytest.raises(StoreBusy) as doubtful:
            await asked
        expect_standby(admin, "")

    assert "may not be replicated" in doubtful.value.cause
    assert "repeat" in doubtful.value.hint
    assert "may not be replicated" in caplog.text
    # It is there, and who repeats the call is told so.
    answers = {one.answer for one in await engine.jobs.submit(jobs)}
    assert answers == {SubmitAnswer.ALREADY}
    await engine.close()
