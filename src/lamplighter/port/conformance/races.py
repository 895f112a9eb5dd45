"""Races: the same promises when many act at once, in one process and in several."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from lamplighter import runtime
from lamplighter.model.job import JobState
from lamplighter.port.conformance.builders import (
    abandoned,
    claim,
    completed,
    failed,
    key,
    new_job,
    record,
    records,
    settle_one,
    submit,
)
from lamplighter.port.values import ChangeAnswer, SettleAnswer, SubmitAnswer, TenantSettings

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Awaitable, Callable

    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.conformance.plugin import OpenEngine
    from lamplighter.port.store import Engine

    Factory = Callable[[], Awaitable[Engine]]

BY = {"by": "test", "reason": "for the test"}
JOBS = 1_000


async def test_sixteen_claimers_get_a_thousand_jobs_once_each(
    engine: Engine, engine_factory: Factory
) -> None:
    engines = [engine, await engine_factory()]
    ids = await submit(engine, *(new_job(tenant=f"t{n % 7}") for n in range(JOBS)))

    async def take(number: int) -> list[tuple[str, int]]:
        taken: list[tuple[str, int]] = []
        while batch := await claim(engines[number % 2], 7, worker=f"worker-{number}"):
            taken += [(one.job.id, one.handout) for one in batch]
        return taken

    taken = [one for part in await asyncio.gather(*map(take, range(16))) for one in part]

    assert sorted(job_id for job_id, _ in taken) == sorted(ids)
    assert sorted(number for _, number in taken) == list(range(1, JOBS + 1))


async def test_claiming_and_settling_at_once_runs_every_job_once(
    engine: Engine, engine_factory: Factory
) -> None:
    engines = [engine, await engine_factory()]
    ids = await submit(engine, *(new_job() for _ in range(300)))

    async def work(number: int) -> list[SettleAnswer]:
        answers: list[SettleAnswer] = []
        mine = engines[number % 2]
        while batch := await claim(mine, 5, worker=f"worker-{number}"):
            settled = await mine.jobs.settle([completed(one) for one in batch])
            answers += [one.answer for one in settled]
        return answers

    answers = [one for part in await asyncio.gather(*map(work, range(8))) for one in part]

    assert Counter(answers) == {SettleAnswer.DONE: len(ids)}
    assert {one.state for one in await records(engine, ids)} == {JobState.SUCCEEDED}


async def test_settle_against_rescue_has_one_winner(
    engine: Engine, engine_factory: Factory, clock: VirtualClock
) -> None:
    other = await engine_factory()
    await submit(engine, *(new_job() for _ in range(50)))
    claims = await claim(engine, 50)
    clock.advance(seconds=31)

    ends = await asyncio.gather(*(settle_one(engine, completed(one)) for one in claims))
    assert {one.answer for one in ends} == {SettleAnswer.DONE}
    late = await other.jobs.settle([abandoned(one) for one in claims])
    assert {one.answer for one in late} == {SettleAnswer.ALREADY}


async def test_settle_and_rescue_at_once_agree_on_the_winner(
    engine: Engine, engine_factory: Factory, clock: VirtualClock
) -> None:
    other = await engine_factory()
    await submit(engine, *(new_job() for _ in range(50)))
    claims = await claim(engine, 50)
    clock.advance(seconds=31)

    answers = await asyncio.gather(
        *(
            settle_one(*pair)
            for one in claims
            for pair in ((engine, completed(one)), (other, abandoned(one)))
        )
    )

    for one, mine, theirs in zip(claims, answers[::2], answers[1::2], strict=True):
        assert {mine.answer, theirs.answer} == {SettleAnswer.DONE, SettleAnswer.ALREADY}
        won = mine.answer is SettleAnswer.DONE
        expected = JobState.SUCCEEDED if won else JobState.WAITING
        assert (await record(engine, one.job.id)).state is expected


async def test_cancel_against_a_success_is_decided_once(
    engine: Engine, engine_factory: Factory
) -> None:
    other = await engine_factory()
    await submit(engine, *(new_job() for _ in range(30)))
    claims = await claim(engine, 30)

    cancels, settles = await asyncio.gather(
        asyncio.gather(*(other.jobs.cancel([one.job.id], **BY) for one in claims)),
        asyncio.gather(*(settle_one(engine, completed(one)) for one in claims)),
    )

    answers = {one[0].answer for one in cancels}
    assert answers <= {ChangeAnswer.REQUESTED, ChangeAnswer.CONFLICT}
    assert {one.answer for one in settles} == {SettleAnswer.DONE}
    states = {one.state for one in await records(engine, [one.job.id for one in claims])}
    assert states == {JobState.SUCCEEDED}


async def test_cancel_against_a_failure_ends_cancelled_whoever_is_first(
    engine: Engine, engine_factory: Factory
) -> None:
    other = await engine_factory()
    await submit(engine, *(new_job() for _ in range(30)))
    claims = await claim(engine, 30)

    cancels, _ = await asyncio.gather(
        asyncio.gather(*(other.jobs.cancel([one.job.id], **BY) for one in claims)),
        asyncio.gather(*(settle_one(engine, failed(one)) for one in claims)),
    )

    answers = {one[0].answer for one in cancels}
    assert answers <= {ChangeAnswer.REQUESTED, ChangeAnswer.DONE}
    states = {one.state for one in await records(engine, [one.job.id for one in claims])}
    assert states == {JobState.CANCELLED}


async def test_cancel_against_claim_never_loses_the_request(
    engine: Engine, engine_factory: Factory
) -> None:
    other = await engine_factory()
    ids = await submit(engine, *(new_job() for _ in range(60)))

    cancels, batches = await asyncio.gather(
        asyncio.gather(*(other.jobs.cancel([job_id], **BY) for job_id in ids)),
        asyncio.gather(*(claim(engine, 6) for _ in range(10))),
    )

    taken = {one.job.id for batch in batches for one in batch}
    for (answer,) in cancels:
        found = await record(engine, answer.id)
        if answer.id in taken:
            assert (answer.answer, found.state) == (ChangeAnswer.REQUESTED, JobState.RUNNING)
            assert found.cancel is not None
        else:
            assert (answer.answer, found.state) == (ChangeAnswer.DONE, JobState.CANCELLED)


async def test_a_job_is_either_handed_out_or_held_first(
    engine: Engine, engine_factory: Factory
) -> None:
    other = await engine_factory()
    ids = await submit(engine, *(new_job() for _ in range(60)))

    _, batches = await asyncio.gather(
        asyncio.gather(*(other.jobs.hold([job_id], **BY) for job_id in ids)),
        asyncio.gather(*(claim(engine, 3) for _ in range(10))),
    )

    taken = {one.job.id for batch in batches for one in batch}
    for found in await records(engine, ids):
        assert found.hold is not None
        running = found.job.id in taken
        assert found.state is (JobState.RUNNING if running else JobState.WAITING)
    assert await claim(engine, 100) == []


async def test_no_job_is_handed_out_after_its_tenants_hold_was_acknowledged(
    engine: Engine, engine_factory: Factory
) -> None:
    other = await engine_factory()
    await submit(engine, *(new_job(tenant="blue") for _ in range(200)))
    after_hold: list[int] = []

    async def take() -> None:
        while batch := await claim(engine, 2):
            after_hold.append(len(batch))

    async def stop() -> None:
        await other.settings.put_tenant("blue", TenantSettings(held=True), **BY)
        # Claims that were already under way may still be answered; new ones must find nothing.
        assert await claim(other, 2) == []

    await asyncio.gather(take(), take(), stop())

    assert await claim(engine, 2) == []
    assert sum(after_hold) <= 200


async def test_one_key_submitted_by_many_at_once_makes_one_job(
    engine: Engine, engine_factory: Factory
) -> None:
    engines = [engine, await engine_factory()]

    answers = await asyncio.gather(
        *(engines[n % 2].jobs.submit([new_job(key=key())]) for n in range(40))
    )

    flat = [one for part in answers for one in part]
    assert Counter(one.answer for one in flat) == {
        SubmitAnswer.CREATED: 1,
        SubmitAnswer.ALREADY: 39,
    }
    assert len({one.id for one in flat}) == 1
    assert len(await claim(engine, 100)) == 1


async def test_one_id_submitted_by_many_at_once_makes_one_job(
    engine: Engine, engine_factory: Factory
) -> None:
    engines = [engine, await engine_factory()]
    job = new_job()

    answers = await asyncio.gather(*(engines[n % 2].jobs.submit([job]) for n in range(40)))

    assert Counter(one.answer for (one,) in answers)[SubmitAnswer.CREATED] == 1
    assert len(await claim(engine, 100)) == 1


@pytest.mark.timeout(120)
async def test_two_processes_share_a_store_and_no_job(
    open_engine: OpenEngine, store_url: str, connector: str
) -> None:
    engine = await open_engine(store_url, runtime.now_ms)
    ids = await submit(engine, *(new_job(tenant=f"t{n % 5}") for n in range(JOBS)))
    contenders = [await _start(store_url, connector, f"process-{n}") for n in range(2)]

    lines = await asyncio.gather(*map(_contend, contenders))

    claimed = [one for part in lines for line in part for one in line.get("claimed", [])]
    settled = [one for part in lines for line in part for one in line.get("settled", [])]
    assert sorted(job_id for job_id, _, _ in claimed) == sorted(ids)
    assert {lease for _, lease, _ in claimed} == {1}
    assert sorted(number for _, _, number in claimed) == list(range(1, JOBS + 1))
    assert Counter(answer for _, answer in settled) == {"done": JOBS}
    assert all(any("claimed" in line for line in part) for part in lines), "one got nothing"


async def _start(url: str, connector: str, worker: str) -> Process:
    """Start a contender and wait until it has opened the store."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "lamplighter.port.conformance.contender",
        url,
        "--worker",
        worker,
        "--connector",
        connector,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert json.loads(await process.stdout.readline()) == {"ready": True}
    return process


async def _contend(process: Process) -> list[dict[str, list[Any]]]:
    """Let it run to its end; gives the lines it printed."""
    output, _ = await process.communicate(b"go\n")
    assert process.returncode == 0
    return [json.loads(line) for line in output.splitlines()]
