"""Jobs that run alone, jobs that kill, and what running jobs say."""

from lamplighter.model.job import JobState
from lamplighter.model.journal import lines_of

COUNTERS = ("attempt", "crashes", "losses")


async def lines(world, job_id: str) -> list[tuple[str, str]]:
    pieces = await world.engine.inspector.logs(job_id)
    return [(line.level, line.text) for line in lines_of(piece.piece for piece in pieces)]


def counters(record) -> tuple[int, ...]:
    return tuple(getattr(record.job, name) for name in COUNTERS)


async def test_an_isolated_job_runs_in_a_process_that_is_used_again(world):
    worker = await world.worker()
    records = [await world.ended(await world.submit("alone", what="work")) for _ in range(3)]

    pids = {int(record.result) for record in records}
    assert len(pids) == 1
    assert pids.isdisjoint(worker.child_pids())
    assert {record.state for record in records} == {JobState.SUCCEEDED}
    assert await lines(world, records[0].job.id) == [
        ("out", "about to work"),
        ("warning", "still about to work"),
    ]
    assert records[0].progress.note == "work"


async def test_an_isolated_job_that_kills_its_process_is_poison_and_harms_nobody(world):
    worker = await world.worker(speed=10.0)
    neighbours = [await world.submit("wait"), await world.submit("alone", what="wait")]
    for job_id in neighbours:
        await world.runs.seen(job_id, "start")

    record = await world.ended(await world.submit("alone", what="exit"))
    world.runs.release()

    assert (record.state, counters(record)) == (JobState.DEAD, (0, 3, 0))
    assert record.reason == "poison: it killed its process 3 times"
    assert "ended with code 3" in record.error.message
    for job_id in neighbours:
        kept = await world.ended(job_id)
        assert (kept.state, kept.lease) == (JobState.SUCCEEDED, 1)
    assert worker.told_of("child.died") == []


async def test_the_last_words_of_a_process_are_kept(world):
    await world.worker(speed=10.0)
    record = await world.ended(await world.submit("alone", what="crash"))

    assert "SIGABRT" in record.error.message
    assert "in alone" in record.error.traceback


async def test_a_job_that_kills_a_shared_process_is_found_and_its_neighbours_pay_nothing(world):
    worker = await world.worker(speed=10.0)
    neighbours = [await world.submit("wait") for _ in range(3)]
    for job_id in neighbours:
        await world.runs.seen(job_id, "start")

    killer = await world.submit("kill_its_process")
    await worker.told("child.died")
    record = await world.ended(killer)
    world.runs.release()

    assert (record.state, counters(record)) == (JobState.DEAD, (0, 3, 0))
    assert record.reason.startswith("poison")
    assert (await worker.told("type.isolated"))["type"] == "kill_its_process"
    for job_id in neighbours:
        kept = await world.ended(job_id)
        assert (kept.state, counters(kept)) == (JobState.SUCCEEDED, (0, 0, 0))
        assert kept.job.suspect
    assert len(worker.told_of("child.died")) == 1


async def test_what_a_job_says_is_seen_while_it_runs_and_after(world):
    await world.worker()
    job_id = await world.submit("chat")
    await world.runs.seen(job_id, "start")
    while not (said := await lines(world, job_id)):
        pass
    running = await world.engine.inspector.job(job_id)
    world.runs.release()
    await world.ended(job_id)

    assert said == [("out", "one"), ("info", "two ")]
    assert (running.state, running.progress.note) == (JobState.RUNNING, "half")
    assert (await lines(world, job_id))[-1] == ("out", "three")


async def test_a_handler_that_makes_no_progress_is_out_of_time(world):
    await world.worker()
    record = await world.ended(await world.submit("crawl", steps=10))

    assert record.state is JobState.DEAD
    assert "no progress for 0.5 s" in record.error.message
    assert record.progress.done >= 8
    assert record.finished_at_ms - record.claimed_at_ms >= 1_400


async def test_a_secret_is_in_no_log_and_no_error(world):
    await world.worker()
    record = await world.ended(await world.submit("charge", card="4111-1111"))

    assert "4111" not in record.error.message + record.error.traceback
    assert await lines(world, record.job.id) == [("out", "charging •••")]
