"""Answers get lost after the work was done: every verb is repeated, and done once."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from lamplighter import runtime
from lamplighter.connect import connect
from lamplighter.model.job import JobState
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Succeeded
from lamplighter.port.conformance.builders import new_job
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest, Renewal, SettleAnswer, SubmitAnswer
from tests.proxies.link import Link
from tests.proxies.redis_wire import RedisWire, end_of
from tests.servers.valkey import Server


@pytest.fixture
def link(server: Server):
    with Link(("127.0.0.1", server.port), wire=RedisWire) as link:
        yield link


@pytest.fixture
async def engine(link: Link) -> AsyncIterator[Engine]:
    engine = connect(f"redis://127.0.0.1:{link.port}", deadline=20.0)
    await engine.open()
    await engine.inspector.counts()  # the server knows our scripts from here on, and we it
    yield engine
    link.heal()
    await engine.close()


def request(limit: int) -> ClaimRequest:
    return ClaimRequest(
        nonce=runtime.nonce(),
        worker="ada",
        queues=(("default", limit),),
        types=("work",),
        limit=limit,
        lease_ms=30_000,
    )


def lose(link: Link, count: int) -> None:
    link.cut_replies(count, when=lambda asked: b"EVAL" in asked[:40])


async def test_a_submission_whose_answer_was_lost_is_stored_once(engine: Engine, link: Link):
    lose(link, 3)
    jobs = [new_job() for _ in range(50)]

    answers = await engine.jobs.submit(jobs)

    assert len(link.cuts) == 3
    assert {one.answer for one in answers} <= {SubmitAnswer.CREATED, SubmitAnswer.ALREADY}
    assert [one.id for one in answers] == [job.id for job in jobs]
    assert (await engine.inspector.counts())["waiting"] == 50


async def test_a_claim_whose_answer_was_lost_hands_out_the_same_jobs(engine: Engine, link: Link):
    jobs = [new_job() for _ in range(20)]
    await engine.jobs.submit(jobs)
    lose(link, 2)

    claimed = await engine.jobs.claim(request(10))

    assert len(link.cuts) == 2
    assert [one.job.id for one in claimed.claims] == [job.id for job in jobs[:10]]
    assert {one.fence.lease for one in claimed.claims} == {1}
    assert (await engine.inspector.counts())["running"] == 10


async def test_settlements_whose_answer_was_lost_are_written_once(engine: Engine, link: Link):
    await engine.jobs.submit([new_job() for _ in range(10)])
    claims = (await engine.jobs.claim(request(10))).claims
    lose(link, 2)

    answers = await engine.jobs.settle([settle(one, Succeeded(b"1")) for one in claims])

    assert len(link.cuts) == 2
    assert {one.answer for one in answers} == {SettleAnswer.ALREADY}
    assert {one.state for one in answers} == {JobState.SUCCEEDED}
    assert (await engine.inspector.counts())["succeeded"] == 10


async def test_a_renewal_whose_answer_was_lost_holds(engine: Engine, link: Link):
    await engine.jobs.submit([new_job() for _ in range(3)])
    claims = (await engine.jobs.claim(request(3))).claims
    lose(link, 2)

    renewed = await engine.jobs.renew([Renewal(one.job.id, one.fence) for one in claims], 60_000)

    assert len(link.cuts) == 2
    assert [one.held for one in renewed] == [True] * 3


async def test_jobs_that_many_submit_and_claim_over_a_bad_line_are_each_done_once(
    engine: Engine, link: Link
):
    link.cut_replies(chance=0.1, seed=7, when=lambda asked: b"EVAL" in asked[:40])
    jobs = [new_job() for _ in range(400)]
    done: list[str] = []

    async def client(mine: list) -> None:
        for job in mine:
            await engine.jobs.submit([job])

    async def worker() -> None:
        while len(done) < len(jobs):
            claims = (await engine.jobs.claim(request(7))).claims
            settled = [settle(one, Succeeded(b"1")) for one in claims]
            for answer in await engine.jobs.settle(settled):
                assert answer.answer in (SettleAnswer.DONE, SettleAnswer.ALREADY)
                done.append(answer.id)
            await asyncio.sleep(0)

    async with asyncio.timeout(50):
        await asyncio.gather(*(client(jobs[n::4]) for n in range(4)), *(worker() for _ in range(3)))

    assert sorted(done) == sorted(job.id for job in jobs)
    assert len(link.cuts) > 10
    link.heal()
    assert (await engine.inspector.counts())["succeeded"] == 400


def test_the_proxy_knows_where_an_answer_ends():
    whole = b"*3\r\n$3\r\na\r\n\r\n*-1\r\n*2\r\n:5\r\n+OK\r\n"

    assert end_of(bytearray(whole + b"rest"), 0) == len(whole)
    assert not any(end_of(bytearray(whole[:n]), 0) for n in range(len(whole)))
