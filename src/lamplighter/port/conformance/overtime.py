"""Explain: a running job whose timeout has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.model.job import Delivery, Extras
from lamplighter.port.conformance.builders import finished, mark_start, new_job, running
from lamplighter.port.values import NewWorker, Renewal, TypeInfo, Why

if TYPE_CHECKING:
    from lamplighter.model.job import Claim
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine
    from lamplighter.port.values import Reason


async def _join(engine: Engine, *versions: dict[str, object]) -> None:
    types = tuple(
        TypeInfo(name="work", schema="{}", hash=f"{number:016x}", queue="default", options=options)
        for number, options in enumerate(versions)
    )
    await engine.membership.join(
        NewWorker(id="w1", host="here", pid=1, queues=("default",), slots=4, types=types)
    )


async def _kept(engine: Engine, taken: Claim) -> list[Reason]:
    """Return the reasons of a job whose lease is kept."""
    await engine.jobs.renew([Renewal(taken.job.id, taken.fence)], 30_000)
    return await _reasons(engine, taken.job.id)


async def _reasons(engine: Engine, job_id: str) -> list[Reason]:
    explanation = await engine.inspector.explain(job_id)
    assert explanation is not None
    return explanation.reasons


async def test_explain_says_that_the_timeout_of_a_job_has_passed(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine, new_job(extras=Extras(timeout=60.0)))
    clock.advance(seconds=59)
    assert [one.why for one in await _kept(engine, taken)] == [Why.RUNNING]
    clock.advance(seconds=6)

    runs, over = await _kept(engine, taken)

    assert (runs.why, over.why) == (Why.RUNNING, Why.TIMED_OUT)
    assert "its timeout of 1 min passed 5.0 s ago" in over.text


async def test_explain_says_nothing_of_the_timeout_of_a_job_that_has_not_started(
    engine: Engine, clock: VirtualClock
) -> None:
    once = new_job(extras=Extras(timeout=10.0), delivery=Delivery.AT_MOST_ONCE)
    taken = await running(engine, once)
    clock.advance(seconds=20)

    assert [one.why for one in await _kept(engine, taken)] == [Why.RUNNING]

    await mark_start(engine, taken)
    assert [one.why for one in await _kept(engine, taken)] == [Why.RUNNING, Why.TIMED_OUT]


async def test_explain_takes_the_longest_published_timeout_and_says_when_its_process_ends(
    engine: Engine, clock: VirtualClock
) -> None:
    await _join(engine, {"timeout": 10, "hard_after": 20.0}, {"timeout": 30.0, "hard_after": 3})
    taken = await running(engine)
    began = clock.now_ms()
    clock.advance(seconds=29)
    assert len(await _kept(engine, taken)) == 1
    clock.advance(seconds=2)

    _, over = await _kept(engine, taken)

    assert (over.why, over.until_ms) == (Why.TIMED_OUT, began + 50_000)
    assert "killed in 19.0 s" in over.text


async def test_explain_does_not_promise_an_end_that_has_passed(
    engine: Engine, clock: VirtualClock
) -> None:
    await _join(engine, {"timeout": 10, "hard_after": 2.0})
    taken = await running(engine)
    clock.advance(seconds=13)

    _, over = await _kept(engine, taken)

    assert (over.why, over.until_ms) == (Why.TIMED_OUT, None)
    assert "killed when the jobs beside it have ended, or their grace has" in over.text


async def test_explain_knows_no_timeout_that_nobody_has_published(
    engine: Engine, clock: VirtualClock
) -> None:
    taken, ended = await running(engine), await finished(engine)
    clock.advance(seconds=1_000_000)

    assert [one.why for one in await _kept(engine, taken)] == [Why.RUNNING]
    assert [one.why for one in await _reasons(engine, ended.job.id)] == [Why.FINISHED]
