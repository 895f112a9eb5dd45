"""Durability: what the address asks for is held against the server, and replicas are waited for."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from lamplighter.connect import connect
from lamplighter.model.errors import StoreBusy, StoreError, StoreUnreachable
from lamplighter.model.job import Delivery
from lamplighter.port.checkup import Grade
from lamplighter.port.conformance.builders import (
    claim,
    completed,
    mark_start,
    new_job,
    recording,
    submit,
)
from lamplighter.port.store import Engine
from lamplighter.port.values import SettleAnswer, SubmitAnswer
from tests.servers.valkey import Server, any_program, start

Until = Callable[[Callable[[], object]], Awaitable[None]]
REPLICA_SECONDS = 1.5
"""Longer than a replica without a processor takes, shorter than anybody wants to wait for tests."""
HIDDEN = {"categories": ["+@all", "-@admin", "-@dangerous"], "commands": ["+info"]}


async def opened_and_closed(url: str) -> None:
    engine = connect(url)
    await engine.open()
    await engine.close()


async def refused(server: Server, **options: str) -> StoreError:
    """Say why the store is not opened; nothing was written."""
    with pytest.raises(StoreUnreachable) as found:
        await connect(server.url(**options)).open()
    with server.client() as admin:
        assert admin.dbsize() == 0
    return found.value


# ── what the server must be set to ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("durability", "settings", "named", "remedy"),
    [
        ("fsync", {"appendonly": "no"}, "appendonly=no", "CONFIG SET appendonly yes"),
        ("fsync", {}, "appendfsync=everysec", "CONFIG SET appendfsync always"),
        ("fsync", {"appendfsync": "no"}, "appendfsync=no", "CONFIG SET appendfsync always"),
        ("everysec", {"appendonly": "no"}, "appendonly=no", "CONFIG SET appendonly yes"),
        ("everysec", {"appendfsync": "no"}, "appendfsync=no", "CONFIG SET appendfsync everysec"),
        (
            "everysec",
            {"no-appendfsync-on-rewrite": "yes"},
            "no-appendfsync-on-rewrite=yes",
            "CONFIG SET no-appendfsync-on-rewrite no",
        ),
        ("replicated", {"appendonly": "no"}, "appendonly=no", "CONFIG SET appendonly yes"),
        ("replicated", {"appendfsync": "no"}, "appendfsync=no", "CONFIG SET appendfsync everysec"),
    ],
)
async def test_a_server_that_keeps_less_is_refused_and_the_remedy_mends_it(
    server: Server, durability: str, settings: dict[str, str], named: str, remedy: str
):
    with server.client() as admin:
        for name, value in settings.items():
            admin.config_set(name, value)

        error = await refused(server, durability=durability)

        assert f"durability={durability}" in error.cause
        assert named in error.cause
        assert remedy in error.hint
        assert "in the url: durability=" in error.hint
        # What the hint says is enough, in as many steps as there are settings.
        for _ in range(3):
            try:
                await opened_and_closed(server.url(durability=durability))
                break
            except StoreUnreachable as found:
                words = found.hint.partition("CONFIG SET ")[2].partition(",")[0].split()
                admin.config_set(*words)
        else:
            pytest.fail("the remedies do not help")


@pytest.mark.parametrize(
    ("durability", "flush"),
    [
        ("fsync", "always"),
        ("everysec", "everysec"),
        ("everysec", "always"),
        ("replicated", "everysec"),
        ("replicated", "always"),
        ("none", "no"),
    ],
)
async def test_a_server_that_keeps_enough_is_used(server: Server, durability: str, flush: str):
    with server.client() as admin:
        admin.config_set("appendfsync", flush)

    await opened_and_closed(server.url(durability=durability))


async def test_less_can_be_asked_for(server: Server):
    with server.client() as admin:
        admin.config_set("appendonly", "no")

    assert "durability=none" in (await refused(server)).hint
    await opened_and_closed(server.url(durability="none"))


@pytest.mark.parametrize("durability", ["fsync", "everysec", "replicated", "none"])
@pytest.mark.parametrize("limit", [0, 10**9])
async def test_a_server_that_drops_keys_is_refused_whatever_the_url_says(
    server: Server, durability: str, limit: int
):
    with server.client() as admin:
        admin.config_set("appendfsync", "always")
        admin.config_set("maxmemory", limit)
        admin.config_set("maxmemory-policy", "allkeys-lru")

        error = await refused(server, durability=durability)

        assert "maxmemory-policy=allkeys-lru" in error.cause
        assert "CONFIG SET maxmemory-policy noeviction" in error.hint
        admin.config_set("maxmemory-policy", "noeviction")
    await opened_and_closed(server.url(durability=durability))


@pytest.mark.parametrize("durability", ["fsync", "everysec"])
async def test_a_server_that_hides_its_settings_is_believed_and_doctor_says_so(
    server: Server, durability: str
):
    with server.client() as admin:
        admin.acl_setuser("ada", enabled=True, nopass=True, keys=["{lamp:*"], **HIDDEN)
        # Nobody can see that it is less.
        admin.config_set("appendfsync", "no")
    engine = connect(server.url(login="ada:any@", durability=durability))

    await engine.open()
    found = await engine.check_up()
    await engine.close()

    (told,) = [one for one in found.findings if one.check == "durability"]
    assert told.grade is Grade.NOTE
    assert told.text.startswith("unverified")
    assert engine.capabilities.loss_window in told.text
    assert found.survives["the server's machine fails"].startswith("unverified")


async def test_a_command_that_was_renamed_hides_the_settings_as_well(tmp_path: Path):
    renamed = tmp_path / "renamed.conf"
    renamed.write_text("rename-command CONFIG hidden\n")
    with start(any_program(), tmp_path, settings={"include": str(renamed)}) as server:
        engine = connect(server.url())
        await engine.open()
        found = await engine.check_up()
        await engine.close()

    (told,) = [one for one in found.findings if one.check == "durability"]
    assert told.text.startswith("unverified")


# ── replicas ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def replica(server: Server, tmp_path: Path) -> Iterator[Server]:
    """Another server that follows the first one."""
    with start(any_program(), tmp_path) as running:
        with running.client() as admin:
            admin.replicaof("127.0.0.1", server.port)
        with server.client() as admin:
            _until_followed(admin)
        yield running


def _until_followed(admin: redis.Redis) -> None:
    deadline = time.monotonic() + 20
    while admin.info("replication").get("slave0", {}).get("state") != "online":
        assert time.monotonic() < deadline, "the replica never followed"
        time.sleep(0.02)


@pytest.fixture
async def replicated(server: Server, replica: Server) -> AsyncIterator[Engine]:
    engine = connect(server.url(durability="replicated", replica_timeout=str(REPLICA_SECONDS)))
    await engine.open()
    yield engine
    await engine.close()


def has(server: Server, job_id: str) -> bool:
    with server.client() as client:
        return client.exists("{lamp:0}:job:" + job_id) == 1


async def test_an_acknowledged_job_is_on_the_replica(
    replicated: Engine, server: Server, replica: Server
):
    # With time for a replica that gets no processor for a while: it is asked what is there after
    # the answer, not how soon that comes.
    patient = connect(server.url(durability="replicated", replica_timeout="5"))
    await patient.open()
    for _ in range(20):
        job = new_job()
        await patient.jobs.submit([job])
        assert has(replica, job.id)
    await patient.close()


async def test_a_job_that_no_replica_confirms_is_stored_and_called_in_doubt(
    replicated: Engine, server: Server, replica: Server, caplog: pytest.LogCaptureFixture
):
    job = new_job()
    replica.freeze()
    try:
        with caplog.at_level(logging.WARNING), pytest.raises(StoreBusy) as doubtful:
            await replicated.jobs.submit([job])
    finally:
        replica.thaw()

    assert "is done, but may not be replicated: 0 of 1 replicas" in doubtful.value.cause
    assert "repeat" in doubtful.value.hint
    assert "may not be replicated" in caplog.text
    assert has(server, job.id)
    (again,) = await replicated.jobs.submit([job])
    assert again.answer is SubmitAnswer.ALREADY
    assert has(replica, job.id)


async def test_who_repeats_it_elsewhere_is_not_told_too_early(
    replicated: Engine, server: Server, replica: Server
):
    other = connect(server.url(durability="replicated", replica_timeout=str(REPLICA_SECONDS)))
    await other.open()
    await other.jobs.submit([new_job()])
    job = new_job()
    replica.freeze()
    try:
        for engine in (replicated, other, other):
            with pytest.raises(StoreBusy, match="may not be replicated"):
                await engine.jobs.submit([job])
    finally:
        replica.thaw()

    (answer,) = await other.jobs.submit([job])
    assert answer.answer is SubmitAnswer.ALREADY
    await other.close()


async def test_a_settle_that_no_replica_confirms_is_in_doubt_and_the_job_does_not_run_again(
    replicated: Engine, replica: Server
):
    await submit(replicated, new_job())
    (held,) = await claim(replicated)
    replica.freeze()
    try:
        with pytest.raises(StoreBusy, match="may not be replicated"):
            await replicated.jobs.settle([completed(held)])
    finally:
        replica.thaw()

    (settled,) = await replicated.jobs.settle([completed(held)])
    assert settled.answer is SettleAnswer.ALREADY
    assert await claim(replicated) == []


@pytest.mark.parametrize("verb", ["cancel", "hold", "unhold", "retry", "replay"])
async def test_what_an_operator_did_is_in_doubt_while_no_replica_confirms_it(
    replicated: Engine, replica: Server, verb: str
):
    (job_id,) = await submit(replicated, new_job())
    operate = getattr(replicated.jobs, verb)
    replica.freeze()
    try:
        with pytest.raises(StoreBusy, match="may not be replicated"):
            await operate([job_id], by="test", reason="to see it")
    finally:
        replica.thaw()

    assert len(await operate([job_id], by="test", reason="to see it")) == 1


async def test_a_start_that_no_replica_confirms_is_in_doubt_and_can_be_repeated(
    replicated: Engine, replica: Server
):
    await submit(replicated, replace(new_job(), delivery=Delivery.AT_MOST_ONCE))
    (taken,) = await claim(replicated)
    replica.freeze()
    try:
        with pytest.raises(StoreBusy, match="may not be replicated"):
            await mark_start(replicated, taken)
    finally:
        replica.thaw()

    assert await mark_start(replicated, taken)


async def test_claims_and_what_running_attempts_say_do_not_wait_for_replicas(
    replicated: Engine, replica: Server
):
    await submit(replicated, new_job(), new_job(delivery=Delivery.AT_MOST_ONCE))
    replica.freeze()
    try:
        taken = await claim(replicated, 2)
        assert len(taken) == 2
        assert [one.held for one in await replicated.jobs.record([recording(taken[0], "a")])] == [
            True
        ]
    finally:
        replica.thaw()


async def test_calls_that_wait_together_wait_once(replicated: Engine, replica: Server):
    replica.freeze()
    began = time.monotonic()
    try:
        answers = await asyncio.gather(
            *(replicated.jobs.submit([new_job()]) for _ in range(40)), return_exceptions=True
        )
    finally:
        replica.thaw()

    assert all(isinstance(one, StoreBusy) for one in answers)
    assert time.monotonic() - began < 4 * REPLICA_SECONDS


async def test_a_call_that_nobody_waits_for_any_more_does_not_disturb_the_others(
    replicated: Engine, replica: Server
):
    replica.freeze()
    tasks = [asyncio.create_task(replicated.jobs.submit([new_job()])) for _ in range(3)]
    await asyncio.sleep(0.05)
    tasks[0].cancel()
    tasks[1].cancel()
    replica.thaw()

    (answer,) = await tasks[2]
    assert answer.answer is SubmitAnswer.CREATED


async def test_signs_of_life_do_not_wait_for_replicas(replicated: Engine, replica: Server):
    replica.freeze()
    try:
        waiting = asyncio.create_task(replicated.jobs.submit([new_job()]))
        await asyncio.sleep(0.05)
        await replicated.membership.beat("nobody", 0)
        assert not waiting.done()
        with pytest.raises(StoreBusy):
            await waiting
    finally:
        replica.thaw()


async def test_as_many_replicas_as_asked_for_must_confirm(server: Server, replica: Server):
    engine = connect(
        server.url(durability="replicated", replicas="2", replica_timeout=str(REPLICA_SECONDS))
    )
    await engine.open()

    with pytest.raises(StoreBusy, match="1 of 2 replicas"):
        await engine.jobs.submit([new_job()])
    await engine.close()


async def test_a_primary_that_dies_while_a_replica_is_waited_for_is_asked_again(
    replicated: Engine, server: Server, replica: Server, until: Until
):
    job = new_job()
    replica.freeze()
    waiting = asyncio.create_task(replicated.jobs.submit([job]))
    await until(lambda: has(server, job.id))
    server.kill9()
    replica.thaw()
    await asyncio.to_thread(server.run)

    # Stored before, or again: it is one job, and when it is acknowledged the replica has it.
    deadline = time.monotonic() + 20
    while True:
        try:
            await waiting
            break
        except StoreBusy:
            assert time.monotonic() < deadline, "the replica never confirms"
            waiting = asyncio.create_task(replicated.jobs.submit([job]))
    assert has(replica, job.id)
    assert len(await claim(replicated, 10)) == 1


@pytest.mark.parametrize("durability", ["everysec", "none"])
async def test_nobody_waits_for_replicas_unless_asked_to(server: Server, durability: str):
    engine = connect(server.url(durability=durability))
    await engine.open()
    await submit(engine, new_job())
    (held,) = await claim(engine)
    await engine.jobs.settle([completed(held)])
    await engine.close()

    with server.client() as admin:
        assert "cmdstat_wait" not in admin.info("commandstats")


async def test_waiting_for_replicas_changes_nothing_in_the_store(
    replicated: Engine, server: Server
):
    with server.client() as admin:
        before = admin.hgetall("{lamp:0}:meta")
        await submit(replicated, new_job())

        assert admin.hgetall("{lamp:0}:meta") == before
        admin.delete("{lamp:0}:meta")
        await submit(replicated, new_job())
        assert admin.exists("{lamp:0}:meta") == 0
