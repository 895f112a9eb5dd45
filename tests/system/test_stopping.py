"""Cancels, timeouts, and workers that are asked to end."""

import asyncio
import signal

import pytest

from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.engines.sqlite.turnstile import Turnstile
from lamplighter.model.job import JobState
from lamplighter.worker.supervisor import Supervisor
from tests.proxies.addresses import target_of, through
from tests.proxies.link import Link
from tests.servers import postgres
from tests.servers.stores import with_parts
from tests.system.conftest import PATIENCE, World, until

LATE = 10.0
"""Seconds after its grace within which a worker has ended, whatever the store does."""


@pytest.fixture
async def afar(tmp_path):
    """A world whose workers reach their PostgreSQL server through a link that can be broken."""
    with postgres.start(postgres.newest_server(), tmp_path, fast=True) as server:
        url = with_parts(server.url(), durability="none")
        with Link(target_of(url)) as link:
            world = World(tmp_path)
            world.engine, world.url, world.link = connect(url), through(url, link.port), link
            await world.engine.open()
            yield world
            link.heal(close=True)
            await world.close()


async def ends_within(worker, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        assert await worker.process.wait() == 0


@pytest.mark.parametrize("type", ["wait", "wait_in_thread"])
async def test_a_running_job_is_cancelled(world, type):
    await world.worker(lease=3.0)
    job_id = await world.submit(type)
    await world.runs.seen(job_id, "start")

    await world.engine.jobs.cancel([job_id], by="test", reason="changed my mind")
    record = await world.ended(job_id)

    assert record.state is JobState.CANCELLED
    assert world.runs.lines(job_id, "end") == []


async def test_a_handler_that_finishes_in_spite_of_a_cancel_has_succeeded(world):
    await world.worker(lease=3.0)
    job_id = await world.submit("wait_stubbornly")
    await world.runs.seen(job_id, "start")

    await world.engine.jobs.cancel([job_id], by="test", reason="changed my mind")
    record = await world.ended(job_id)

    assert record.state is JobState.SUCCEEDED
    assert record.result == b'"done anyway"'


@pytest.mark.parametrize("type", ["wait", "wait_in_thread"])
async def test_a_handler_past_its_timeout_is_stopped(world, type):
    worker = await world.worker()

    job_id = await world.submit(type, timeout=0.2)
    settled = await worker.told("job.settled", job_id=job_id)

    assert settled["outcome"] == "timed_out"
    assert "0.2 s" in settled["error"]
    assert 0.2 <= settled["seconds"] < 1.0
    assert len(worker.child_pids()) == 1


async def test_a_handler_past_its_hard_end_is_killed_after_its_neighbours_have_finished(world):
    worker = await world.worker(hard_after=0.3)
    neighbour = await world.submit("wait")
    first = await world.runs.seen(neighbour, "start")

    job_id = await world.submit("deaf_for_ever", timeout=0.3)
    retired = await worker.told("child.retired")
    # Capacity is back while the old child still lives.
    added = await world.ended(await world.submit("add", a=1, b=1))
    assert worker.told_of("child.died") == []
    world.runs.release()
    kept = await world.ended(neighbour)
    died = await worker.told("child.died")
    await worker.told("job.settled", job_id=job_id, outcome="timed_out")
    (attempt, *_) = await world.engine.inspector.attempts(job_id)

    assert retired["pid"] == died["pid"] == int(first[2])
    assert died["status"] == -signal.SIGKILL
    assert attempt.outcome == "timed_out"
    assert "0.3 s" in attempt.error.message
    assert "killed" in attempt.error.message
    assert added.worker.endswith("/c1")
    assert kept.state is JobState.SUCCEEDED
    assert kept.lease == 1


@pytest.mark.parametrize("type", ["deaf_impatient", "deaf_impatient_alone"])
async def test_a_type_may_have_a_hard_end_of_its_own(world, type):
    worker = await world.worker(hard_after=600.0)

    job_id = await world.submit(type, timeout=0.3)
    record = await world.ended(job_id)
    (row,) = [one for one in await world.engine.inspector.types() if one.name == type]

    assert record.state is JobState.DEAD
    assert "0.3 s" in record.error.message
    assert "killed" in record.error.message
    assert (row.options["timeout"], row.options["hard_after"]) == (3600.0, 0.3)
    assert worker.process.returncode is None


async def test_neighbours_that_do_not_finish_within_the_grace_are_given_back_uncharged(world):
    worker = await world.worker(hard_after=0.3, grace=0.3)
    neighbour = await world.submit("wait")
    await world.runs.seen(neighbour, "start")

    job_id = await world.submit("deaf_thread", timeout=0.3)
    await world.runs.seen(neighbour, "start", count=2)
    await worker.told("job.settled", job_id=job_id, outcome="timed_out")
    world.runs.release()
    kept = await world.ended(neighbour)

    assert kept.state is JobState.SUCCEEDED
    assert (kept.job.attempt, kept.job.crashes, kept.job.losses) == (0, 0, 0)
    assert not kept.job.suspect


async def test_a_handler_sees_that_its_time_is_over(world):
    await world.worker()

    job_id = await world.submit("see_timeout", timeout=0.2)
    await world.runs.seen(job_id, "TimedOut")


async def test_a_reload_reads_the_program_anew_and_loses_nothing(world):
    worker = await world.worker(children=2)
    await worker.told("child.started", count=2)
    running = await world.submit("wait")
    await world.runs.seen(running, "start")

    worker.signal(signal.SIGHUP)
    await worker.told("child.started", count=4)
    await worker.told("child.retired", count=2)
    later = await world.ended(await world.submit("add", a=1, b=1))
    world.runs.release()
    record = await world.ended(running)

    assert later.worker.rpartition("/")[2] in {"c2", "c3"}
    assert (record.state, record.lease) == (JobState.SUCCEEDED, 1)
    assert worker.told_of("child.died") == []


async def test_sigterm_lets_running_jobs_finish_and_takes_nothing_new(world):
    worker = await world.worker(slots=2)
    running = [await world.submit("wait"), await world.submit("wait_in_thread")]
    for job_id in running:
        await world.runs.seen(job_id, "start")
    worker.signal(signal.SIGTERM)
    later = await world.submit("wait")
    world.runs.release()
    status = await worker.ended()

    assert status == 0
    for job_id in running:
        assert (await world.engine.inspector.job(job_id)).state is JobState.SUCCEEDED
    assert (await world.engine.inspector.job(later)).state is not JobState.RUNNING
    assert await world.engine.inspector.workers() == []


async def test_after_the_grace_the_rest_is_given_back_uncharged(world):
    worker = await world.worker(grace=0.3)
    ids = [await world.submit("wait"), await world.submit("deaf_thread")]
    for job_id in ids:
        await world.runs.seen(job_id, "start")

    worker.signal(signal.SIGINT)
    status = await worker.ended()

    assert status == 0
    for job_id in ids:
        record = await world.engine.inspector.job(job_id)
        assert record.state is JobState.WAITING
        assert (record.job.attempt, record.job.losses) == (0, 0)


async def test_a_second_signal_shortens_the_grace(world):
    worker = await world.worker(grace=3600.0, short_grace=0.2)
    job_id = await world.submit("wait")
    await world.runs.seen(job_id, "start")

    # Two signals of one number that come together would be one.
    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGINT)
    status = await worker.ended()

    assert status == 0
    assert await world.runs.seen(job_id, "stopped")
    assert (await world.engine.inspector.job(job_id)).state is JobState.WAITING


@pytest.mark.parametrize("children", [1, 3])
@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("tests.system.absent:app", "there is no module"),
        ("tests.system.broken_program:app", "ZeroDivisionError"),
        ("tests.system.program:nothing", "has no `nothing`"),
        ("tests.system.program:os", "not an App"),
    ],
)
async def test_an_app_that_cannot_be_imported_ends_the_worker_with_the_reason(
    world, spec, words, children
):
    worker = await world.worker(spec, ready=False, children=children)

    assert await worker.ended() == 1
    assert words in worker.errors
    assert "hint:" in worker.errors


async def test_a_handler_that_closed_stdout_does_not_spoil_the_end(world):
    worker = await world.worker()
    record = await world.ended(await world.submit("close_stdout"))
    worker.signal(signal.SIGTERM)
    assert await worker.ended() == 0
    assert record.state is JobState.SUCCEEDED
    assert worker.told_of("child.died") == []


async def test_a_child_that_had_not_begun_is_not_said_to_have_died_when_the_worker_ends(world):
    worker = await world.worker("tests.system.slow_program:app", ready=False)
    await until(world.runs.path.exists)

    worker.signal(signal.SIGTERM)

    assert await worker.ended() == 0
    assert worker.told_of("child.died") == []


async def test_a_worker_that_could_not_keep_to_its_grace_ends_with_the_error(world, monkeypatch):
    async def broken(_supervisor) -> None:
        raise RuntimeError("no grace")

    monkeypatch.setattr(Supervisor, "_kill_after_grace", broken)
    supervisor = Supervisor("tests.system.program:app", Settings(url=world.url, children=1))

    with pytest.raises(RuntimeError, match="no grace"):
        async with asyncio.timeout(PATIENCE):
            await supervisor.run()
    assert supervisor.draining


@pytest.mark.parametrize("trouble", ["hang", "refuse"])
async def test_a_busy_worker_ends_soon_after_its_grace_though_the_store_is_away(afar, trouble):
    worker = await afar.worker(grace=1.0)
    job_id = await afar.submit("deaf_thread")
    await afar.runs.seen(job_id, "start")
    getattr(afar.link, trouble)()

    worker.signal(signal.SIGTERM)

    await ends_within(worker, 1.0 + LATE)
    # Nobody could give it back: it is rescued when its lease has ended.
    assert (await afar.engine.inspector.job(job_id)).state is JobState.RUNNING


@pytest.mark.parametrize("trouble", ["hang", "refuse"])
async def test_a_second_signal_ends_an_idle_worker_soon_though_the_store_is_away(afar, trouble):
    worker = await afar.worker(grace=3600.0)
    getattr(afar.link, trouble)()

    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGINT)

    await ends_within(worker, Settings().short_grace + LATE)


async def test_a_worker_that_waits_for_the_store_to_begin_ends_at_once(afar):
    afar.link.hang()
    worker = await afar.worker(ready=False, grace=3600.0)
    await until(lambda: afar.link.accepted)

    worker.signal(signal.SIGTERM)

    await ends_within(worker, LATE)


async def test_a_worker_ends_soon_after_its_grace_though_somebody_holds_the_file(world, tmp_path):
    worker = await world.worker(grace=1.0)
    job_id = await world.submit("deaf_thread")
    await world.runs.seen(job_id, "start")
    turnstile = Turnstile(tmp_path / "jobs.db")
    await asyncio.to_thread(turnstile.enter)

    try:
        worker.signal(signal.SIGTERM)
        await ends_within(worker, 1.0 + LATE)
    finally:
        turnstile.close()
