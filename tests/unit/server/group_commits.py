"""What group commit does, on whichever store the fixture `url` names."""

import asyncio

import pytest

from lamplighter import App, options
from lamplighter.client import Client
from lamplighter.model.errors import StoreFull
from lamplighter.model.job import NewJob
from lamplighter.port.values import SubmitAnswer
from lamplighter.server import group_commit
from lamplighter.server.group_commit import BATCH_BYTES, GroupCommit


class Scene:
    """A group commit on a real store, whose writes are noted and can be held up."""

    def __init__(self, client: Client, engine) -> None:
        self.client = client
        self.group = GroupCommit(client)
        self.most = engine.capabilities.max_batch
        self.written: list[list[NewJob]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.error: Exception | None = None
        self.engine = engine
        self._submit = engine.jobs.submit
        engine.jobs.submit = self._noted

    @property
    def batches(self) -> list[int]:
        return list(map(len, self.written))

    async def _noted(self, jobs):
        self.written.append(jobs)
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return await self._submit(jobs)

    def job(self, size: int = 1, **given) -> NewJob:
        args = b'{"order": "%b"}' % (b"x" * size)
        return self.client.new_job("charge", args, options.read(given))

    async def begin(self, *jobs) -> list[asyncio.Task]:
        """Submit jobs at the same time, and wait until whoever can write has begun."""
        tasks = [asyncio.ensure_future(self.group.submit(job)) for job in jobs]
        before = -1
        while before != len(self.batches):
            before = len(self.batches)
            for _ in range(10):
                await asyncio.sleep(0)
        return tasks

    async def stored(self, job) -> bool:
        return await self.engine.inspector.job(job.id) is not None


@pytest.fixture
async def scene(url):
    app = App(url)
    engine = await app.engine()
    client = Client(app.settings)
    client.connections.adopt(engine)
    made = Scene(client, engine)
    yield made
    await made.group.close()
    await app.close()


async def test_a_job_that_comes_alone_is_written_alone_and_at_once(scene):
    job = scene.job()
    said = await scene.group.submit(job)
    assert (said.id, said.answer) == (job.id, SubmitAnswer.CREATED)
    assert scene.batches == [1]
    assert await scene.stored(job)


async def test_those_that_come_together_are_written_together(scene):
    jobs = [scene.job() for _ in range(30)]
    await asyncio.gather(*await scene.begin(*jobs))
    assert scene.batches == [30]


async def test_what_comes_while_others_are_written_forms_the_next_batch(scene):
    scene.open.clear()
    tasks = await scene.begin(scene.job())
    tasks += await scene.begin(*[scene.job() for _ in range(20)])
    for _ in range(3):
        tasks += await scene.begin(*[scene.job() for _ in range(10)])
    assert scene.batches == [1, 20]
    scene.open.set()
    answers = await asyncio.gather(*tasks)
    assert scene.batches == [1, 20, 30]
    assert len({said.id for said in answers}) == 51


@pytest.mark.parametrize("at_once", [1, 2])
async def test_who_comes_when_the_last_batch_has_just_ended_is_written(scene, monkeypatch, at_once):
    monkeypatch.setattr(group_commit, "AT_ONCE", at_once)

    async def one_after_the_other() -> None:
        for _ in range(20):
            await scene.group.submit(scene.job())

    async with asyncio.timeout(20):
        await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
    assert sum(scene.batches) == 20 * at_once


async def test_no_batch_is_larger_than_the_store_takes(scene):
    jobs = [scene.job() for _ in range(min(scene.most, 200) * 2 + 1)]
    await asyncio.gather(*await scene.begin(*jobs))
    assert sum(scene.batches) == len(jobs)
    assert max(scene.batches) <= scene.most


async def test_large_jobs_make_small_batches(scene):
    jobs = [scene.job(size=60_000) for _ in range(25)]
    await asyncio.gather(*await scene.begin(*jobs))
    assert len(scene.batches) > 1
    assert max(scene.batches) * 60_000 < BATCH_BYTES + 60_000


async def test_one_that_is_refused_keeps_nobody_else_out(scene):
    from dataclasses import replace

    good = [scene.job() for _ in range(7)]
    bad = replace(scene.job(), queue="half of a pair: \ud83d")
    tasks = await scene.begin(*good[:4], bad, *good[4:])
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    refused = answers.pop(4)
    assert isinstance(refused, Exception)
    assert [said.answer for said in answers] == [SubmitAnswer.CREATED] * 7
    assert all([await scene.stored(job) for job in good])


async def test_a_key_used_before_is_the_answer_to_that_one_only(scene):
    first = scene.job(idempotency_key="k")
    await scene.group.submit(first)
    other, same = scene.job(2, idempotency_key="k"), scene.job(idempotency_key="k")
    answers = await asyncio.gather(*await scene.begin(other, same, scene.job()))
    assert [said.answer.value for said in answers] == ["conflict", "already", "created"]
    assert answers[1].id == first.id


async def test_a_key_twice_in_one_batch_is_one_job(scene):
    jobs = [scene.job(idempotency_key="k") for _ in range(10)]
    answers = await asyncio.gather(*await scene.begin(*jobs))
    assert len({said.id for said in answers}) == 1
    assert sorted(said.answer.value for said in answers) == ["already"] * 9 + ["created"]


async def test_who_goes_away_takes_nobody_along(scene):
    scene.open.clear()
    written = [scene.job() for _ in range(3)]
    tasks = await scene.begin(*written)
    tasks += await scene.begin(scene.job())
    waiting = [scene.job() for _ in range(3)]
    later = await scene.begin(*waiting)
    tasks[1].cancel()
    later[1].cancel()
    await asyncio.gather(tasks[1], later[1], return_exceptions=True)
    scene.open.set()
    await asyncio.gather(tasks[0], tasks[2], later[0], later[2])
    assert scene.batches == [3, 1, 2]
    assert all([await scene.stored(job) for job in written])
    assert [await scene.stored(job) for job in waiting] == [True, False, True]


async def test_what_the_store_says_of_itself_is_told_to_all(scene):
    scene.error = StoreFull("the disk is full", hint="make room")
    tasks = await scene.begin(*[scene.job() for _ in range(5)])
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(said) for said in answers] == [StoreFull] * 5
    assert scene.batches == [5]
    scene.error = None
    assert (await scene.group.submit(scene.job())).answer is SubmitAnswer.CREATED


async def test_closing_does_not_wait_for_ever(scene):
    scene.open.clear()
    tasks = await scene.begin(scene.job())
    await scene.group.close(seconds=0.01)
    (answer,) = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answer, asyncio.CancelledError)


async def test_closing_waits_until_all_is_written(scene):
    scene.open.clear()
    jobs = [scene.job() for _ in range(3)]
    tasks = [task for job in jobs for task in await scene.begin(job)]
    closing = asyncio.ensure_future(scene.group.close())
    await asyncio.sleep(0)
    assert not closing.done()
    scene.open.set()
    await closing
    assert all(task.done() for task in tasks)
    assert all([await scene.stored(job) for job in jobs])
