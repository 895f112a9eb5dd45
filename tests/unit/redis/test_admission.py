"""A server whose memory runs short takes no new jobs, and lets those it has come to their end."""

import re
import time
from collections.abc import AsyncIterator, Iterator
from typing import cast

import pytest
import redis

from lamplighter.connect import connect
from lamplighter.engines.redis import admission, scripts
from lamplighter.engines.redis.faults import MemoryFull
from lamplighter.engines.redis.keys import EXPIRING
from lamplighter.model.activity import Tally
from lamplighter.model.errors import StoreFull
from lamplighter.port.conformance.builders import (
    claim,
    completed,
    failed,
    new_job,
    recording,
    submit,
)
from lamplighter.port.store import Engine, queue_topic
from lamplighter.port.values import (
    NewWorker,
    QueueSettings,
    Renewal,
    Retention,
    SettleAnswer,
    SubmitAnswer,
)
from tests.servers.valkey import Server

ROOM = 400_000_000
FLAGGED = "#!lua flags=allow-oom\n"
REFUSED_AT_THE_END = {
    "submit",
    "enter_queues",
    "record",
    "open",
    "fire",
    "trigger",
    "put_schedules",
    "put_token",
    "backfill",
}
"""Scripts that write and must not when the memory is used up."""
HINTS = {b"told", *(name.encode() for name in EXPIRING)}


def fill(admin: redis.Redis, share: float) -> None:
    """Set the limit so that this share of it is used."""
    info = admin.info("memory")
    used = int(info["used_memory"]) - int(info["mem_not_counted_for_evict"])
    admin.config_set("maxmemory", int(used / share))


@pytest.fixture
async def engine(server: Server, admin: redis.Redis) -> AsyncIterator[Engine]:
    """A store on a server that has a limit, and is far from it."""
    # So much that what a test adds does not change the share.
    admin.setrange("ballast", 50_000_000, b"x")
    admin.config_set("maxmemory", ROOM)
    engine = connect(server.url())
    await engine.open()
    yield engine
    await engine.close()


@pytest.fixture
def admin(server: Server) -> Iterator[redis.Redis]:
    with server.client() as client:
        yield client


async def refusal(engine: Engine) -> MemoryFull:
    """Submit until that is refused: a look holds for a second."""
    deadline = time.monotonic() + 20
    while True:
        assert time.monotonic() < deadline, "nothing was refused"
        try:
            await engine.jobs.submit([new_job()])
        except StoreFull as error:
            return cast("MemoryFull", error)


def stored(admin: redis.Redis) -> int:
    """Count the keys, without those that are only hints."""
    return sum(not HINTS & set(key.split(b":")) for key in admin.scan_iter(count=1000))


def looks(admin: redis.Redis) -> int:
    return admin.info("commandstats").get("cmdstat_info", {}).get("calls", 0)


async def test_from_80_percent_on_new_jobs_are_refused_with_a_time_to_try_again(
    engine: Engine, admin: redis.Redis
):
    fill(admin, 0.85)

    refused = await refusal(engine)
    before = stored(admin)

    assert refused.retry_after > 0
    assert "from 80% on no new jobs are taken" in refused.cause
    assert "nothing of this call was stored" in refused.cause
    assert "maxmemory" in refused.hint
    with pytest.raises(StoreFull):
        await engine.jobs.submit([new_job()])
    assert stored(admin) == before


async def test_below_that_they_are_taken(engine: Engine, admin: redis.Redis, monkeypatch):
    monkeypatch.setattr(admission, "SECONDS", 0.0)
    fill(admin, 0.6)

    for _ in range(20):
        await submit(engine, new_job())


async def test_who_opens_a_store_that_is_nearly_full_is_refused_at_once(
    engine: Engine, server: Server, admin: redis.Redis
):
    fill(admin, 0.9)
    late = connect(server.url())
    await late.open()

    with pytest.raises(StoreFull):
        await late.jobs.submit([new_job()])
    await late.close()


async def test_all_else_goes_on(engine: Engine, admin: redis.Redis):
    await submit(engine, *(new_job() for _ in range(3)))
    fill(admin, 0.9)
    await refusal(engine)

    first, second = await claim(engine, 2)
    (settled,) = await engine.jobs.settle([completed(first)])
    (renewed,) = await engine.jobs.renew([Renewal(second.job.id, second.fence)], 30_000)

    assert settled.answer is SettleAnswer.DONE
    assert renewed.held


async def test_with_room_again_they_are_taken_again(engine: Engine, admin: redis.Redis):
    fill(admin, 0.9)
    await refusal(engine)
    admin.config_set("maxmemory", ROOM)

    deadline = time.monotonic() + 20
    while True:
        assert time.monotonic() < deadline, "it is never told that there is room"
        try:
            (answer,) = await engine.jobs.submit([new_job()])
            break
        except StoreFull:
            pass
    assert answer.answer is SubmitAnswer.CREATED


async def test_a_look_is_taken_once_a_second_at_most(engine: Engine, admin: redis.Redis):
    before, began = looks(admin), time.monotonic()
    for _ in range(300):
        await engine.jobs.submit([new_job()])
    seconds = time.monotonic() - began
    # Ours count, too.
    assert looks(admin) - before <= seconds / admission.SECONDS + 2


async def test_who_is_refused_again_and_again_does_not_trouble_the_server(
    engine: Engine, admin: redis.Redis
):
    fill(admin, 0.9)
    await refusal(engine)

    def calls() -> int:
        return sum(one["calls"] for one in admin.info("commandstats").values())

    before, began = calls(), time.monotonic()
    for _ in range(1_000):
        with pytest.raises(StoreFull):
            await engine.jobs.submit([new_job()])
    assert calls() - before <= (time.monotonic() - began) / admission.SECONDS + 3


async def test_without_a_limit_nobody_looks(server: Server, admin: redis.Redis, monkeypatch):
    monkeypatch.setattr(admission, "SECONDS", 0.0)
    engine = connect(server.url())
    await engine.open()
    before = looks(admin)
    for _ in range(10):
        await engine.jobs.submit([new_job()])
    await engine.close()

    assert looks(admin) == before + 1  # this one


def test_what_the_buffers_of_replicas_take_does_not_count():
    gate = admission.Admission("redis://host", admission.Memory(limit=100, used=0))

    gate.note(b"used_memory:95\r\nmem_not_counted_for_evict:20\r\nmaxmemory:100\r\n")
    assert not gate.full
    gate.note(b"used_memory:95\r\nmem_not_counted_for_evict:10\r\nmaxmemory:100\r\n")
    assert gate.full
    gate.note(b"used_memory:95\r\nmaxmemory:0\r\n")
    assert not gate.full


# ── nothing left ─────────────────────────────────────────────────────────────────────────────


async def test_at_the_end_of_its_memory_jobs_still_come_to_their_end(
    engine: Engine, admin: redis.Redis
):
    """All verbs but those that add: each with effect, so that a refusal would show."""
    jobs = [new_job() for _ in range(8)]
    await submit(engine, *jobs)
    (spoilt,) = await claim(engine)
    await engine.jobs.settle([failed(spoilt)])
    admin.config_set("maxmemory", 1)

    await engine.membership.join(
        NewWorker(id="w", host="h", pid=1, queues=("default",), slots=1, types=())
    )
    await engine.membership.beat("w", 1)
    assert await engine.membership.lead("prune", "w", 1_000)
    assert await engine.activity.tally("w", 1, Tally(started=1))
    held, other = await claim(engine, 2)
    await engine.jobs.renew([Renewal(held.job.id, held.fence)], 60_000)
    (settled,) = await engine.jobs.settle([completed(held)])
    assert settled.answer is SettleAnswer.DONE
    waiting = [job.id for job in jobs if job.id not in (held.job.id, other.job.id, spoilt.job.id)]
    note = {"by": "ada", "reason": "full"}
    await engine.jobs.hold(waiting[:1], **note)
    await engine.jobs.unhold(waiting[:1], **note)
    await engine.jobs.retry([spoilt.job.id], **note)
    await engine.jobs.cancel(waiting[1:2], **note)
    await engine.jobs.replay(waiting[1:2], **note)
    await engine.jobs.purge([held.job.id], **note)
    await engine.settings.put_queue("default", QueueSettings(held=True), **note)
    await engine.jobs.rescue(10)
    await engine.jobs.prune(Retention(), 100)
    await engine.wakeup.notify(queue_topic("default"))
    assert not await engine.wakeup.wait([queue_topic("other")], 0.01)
    await engine.membership.leave("w")
    assert (await engine.inspector.counts())["succeeded"] == 0


async def test_at_the_end_of_its_memory_nothing_is_added(engine: Engine, admin: redis.Redis):
    job = new_job()
    await submit(engine, job, new_job())
    held = (await claim(engine))[0]
    admin.config_set("maxmemory", 1)
    before = stored(admin)

    refused = await refusal(engine)
    with pytest.raises(MemoryFull):
        await engine.jobs.record([recording(held, "x")])

    assert refused.retry_after > 0
    assert stored(admin) == before


async def test_the_server_s_own_refusal_is_told_in_the_same_way(server: Server, admin: redis.Redis):
    engine = connect(server.url())
    await engine.open()  # before there is a limit, so that nobody looks
    admin.config_set("maxmemory", 1)
    before = stored(admin)
    job = new_job()

    with pytest.raises(MemoryFull) as refused:
        await engine.jobs.submit([job])

    assert refused.value.retry_after > 0
    assert "nothing of this call was stored" in refused.value.cause
    assert stored(admin) == before
    admin.config_set("maxmemory", 0)
    (answer,) = await engine.jobs.submit([job])
    assert answer.answer is SubmitAnswer.CREATED
    await engine.close()


def test_every_script_that_writes_says_whether_it_goes_on_without_memory():
    wrong: list[str] = []
    for name in scripts.names():
        text = scripts.script(name).text.decode()
        writes = not re.search(r"^-- TOUCHES  nothing\b", text, re.MULTILINE)
        if text.startswith(FLAGGED) != (writes and name not in REFUSED_AT_THE_END):
            wrong.append(name)

    assert not wrong
