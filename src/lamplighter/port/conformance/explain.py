"""Explain: why a job is not running, the most decisive reason first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import AbandonCause, Abandoned
from lamplighter.port.conformance.builders import claim, finished, new_job, running, submit
from lamplighter.port.values import (
    NewWorker,
    QueueSettings,
    TenantSettings,
    TypeInfo,
    TypeSettings,
    Why,
)

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "alice", "reason": "maintenance"}


async def test_explain_says_that_a_job_has_finished_or_runs(engine: Engine) -> None:
    ended, taken = await finished(engine), await running(engine)

    assert await _why(engine, ended.job.id) == Why.FINISHED
    assert await _why(engine, taken.job.id) == Why.RUNNING


async def test_explain_says_when_a_job_is_due(engine: Engine, clock: VirtualClock) -> None:
    (job_id,) = await submit(engine, new_job(delay_ms=60_000))

    explanation = await engine.inspector.explain(job_id)

    assert explanation is not None
    (reason,) = [one for one in explanation.reasons if one.why is Why.NOT_DUE]
    assert reason.until_ms == clock.now_ms() + 60_000
    assert explanation.reasons[0] is reason


@pytest.mark.parametrize("what", [Why.HELD_JOB, Why.HELD_QUEUE, Why.HELD_TYPE, Why.HELD_TENANT])
async def test_explain_says_who_holds_it_and_why(engine: Engine, what: Why) -> None:
    job = new_job("mail", queue="letters", tenant="blue")
    await submit(engine, job)
    if what is Why.HELD_JOB:
        await engine.jobs.hold([job.id], **BY)
    elif what is Why.HELD_QUEUE:
        await engine.settings.put_queue("letters", QueueSettings(held=True), **BY)
    elif what is Why.HELD_TYPE:
        await engine.settings.put_type("mail", TypeSettings(held=True), **BY)
    else:
        await engine.settings.put_tenant("blue", TenantSettings(held=True), **BY)

    explanation = await engine.inspector.explain(job.id)

    assert explanation is not None
    first = explanation.reasons[0]
    assert (first.why, first.mark and first.mark.by) == (what, "alice")
    assert first.text


async def test_explain_counts_the_jobs_of_its_tenant_before_it(engine: Engine) -> None:
    await _live_worker(engine)
    await submit(engine, *(new_job(tenant="blue") for _ in range(5)))
    (job_id,) = await submit(engine, new_job(tenant="blue"))

    explanation = await engine.inspector.explain(job_id)

    assert explanation is not None
    (reason,) = [one for one in explanation.reasons if one.why is Why.BEHIND]
    assert reason.count == 5


async def test_explain_says_that_no_live_worker_knows_the_type(engine: Engine) -> None:
    (job_id,) = await submit(engine, new_job("nobody knows me"))
    await _live_worker(engine)

    assert await _why(engine, job_id) == Why.NO_WORKER


async def test_explain_says_that_a_suspect_runs_alone(engine: Engine) -> None:
    (job_id,) = await submit(engine, new_job())
    (one,) = await claim(engine, 1)
    await engine.jobs.settle([settle(one, Abandoned(AbandonCause.CHILD_DIED))])

    explanation = await engine.inspector.explain(job_id)

    assert explanation is not None
    assert explanation.reasons[-1].why is Why.SUSPECT
    assert len(explanation.reasons) > 1


async def test_explain_says_that_a_job_is_next(engine: Engine) -> None:
    await _live_worker(engine)
    (job_id,) = await submit(engine, new_job())

    assert await _why(engine, job_id) == Why.NEXT


async def _live_worker(engine: Engine) -> None:
    work = TypeInfo(name="work", schema="{}", hash="h", queue="default")
    await engine.membership.join(
        NewWorker(id="w1", host="here", pid=1, queues=("default",), slots=5, types=(work,))
    )


async def _why(engine: Engine, job_id: str) -> Why:
    explanation = await engine.inspector.explain(job_id)
    assert explanation is not None
    assert explanation.record.job.id == job_id
    return explanation.reasons[0].why
