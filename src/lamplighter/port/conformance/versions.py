"""Versions of a type: jobs that only some of them take wait for these, uncharged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.model.job import ALONE, NO_VERSION, ErrorInfo, JobState, Refusal
from lamplighter.model.outcome import AbandonCause, Abandoned, Failed, Misfit, Rejected, Released
from lamplighter.model.versions import Seat
from lamplighter.port.conformance.builders import claim, new_job, settle, submit
from lamplighter.port.values import NewWorker, TypeInfo, Why

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

ERROR = ErrorInfo(
    type="DoesNotFit",
    message="no argument `coupon`",
    refusals=(Refusal(version="h1", since_ms=7), Refusal(version="h2", since_ms=7)),
)
OLD = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'
NEW = '{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}'


def version(digest: str, schema: str = "{}", name: str = "work") -> TypeInfo:
    return TypeInfo(name=name, schema=schema, hash=digest, queue="default")


def worker(
    name: str, slot: int, *types: TypeInfo, queues: tuple[str, ...] = ("default",)
) -> NewWorker:
    return NewWorker(
        id=name, host="m", pid=7, queues=queues, slots=4, types=types, version_slot=slot
    )


@pytest.mark.parametrize("base", ["", "gpu"])
@pytest.mark.parametrize("wanted", ["version:3", NO_VERSION])
async def test_a_misfit_is_handed_only_to_versions_that_take_it_until_it_is_replayed(
    engine: Engine, base: str, wanted: str
) -> None:
    (job_id,) = await submit(engine, new_job(requirement=base))
    (one,) = await claim(engine, 1, requirements=(base,))
    await engine.jobs.settle([settle(one, Misfit(ERROR, wanted))])
    lane = f"{base}+{wanted}" if base else wanted

    assert await claim(engine, 1, requirements=("", "gpu", "version:1", ALONE)) == []
    (again,) = await claim(engine, 1, requirements=(lane,))
    assert (again.job.attempt, again.job.crashes, again.job.losses) == (0, 0, 0)
    await engine.jobs.settle([settle(again, Released())])
    (third,) = await claim(engine, 1, requirements=(lane,))
    await engine.jobs.settle([settle(third, Rejected("no"))])
    await engine.jobs.replay([job_id], by="test", reason="")
    assert await claim(engine, 1, requirements=(lane,)) == []
    assert [c.job.id for c in await claim(engine, 1, requirements=(base,))] == [job_id]


async def test_a_dead_misfit_that_is_retried_may_run_anywhere(engine: Engine) -> None:
    (job_id,) = await submit(engine, new_job())
    (one,) = await claim(engine, 1)
    await engine.jobs.settle([settle(one, Misfit(ERROR))])
    (two,) = await claim(engine, 1, requirements=(NO_VERSION,))
    (dead,) = await engine.jobs.settle([settle(two, Misfit(ERROR, dead="nobody took it"))])
    assert dead.state is JobState.DEAD

    await engine.jobs.retry([job_id], by="test", reason="")

    assert await claim(engine, 1, requirements=(NO_VERSION,)) == []
    assert len(await claim(engine, 1, requirements=("",))) == 1


async def test_a_misfit_is_due_at_once_and_keeps_what_refused_it(
    engine: Engine, clock: VirtualClock
) -> None:
    (job_id,) = await submit(engine, new_job())
    (one,) = await claim(engine, 1)
    clock.advance(seconds=5)
    await engine.jobs.settle([settle(one, Misfit(ERROR))])

    record = await engine.inspector.job(job_id)

    assert record is not None
    assert record.state is JobState.WAITING
    assert record.job.due_at_ms == clock.now_ms()
    assert record.error == ERROR
    assert await engine.inspector.attempts(job_id) == []


async def test_a_failure_keeps_the_version_that_takes_the_job(engine: Engine) -> None:
    await submit(engine, new_job())
    (one,) = await claim(engine, 1)
    await engine.jobs.settle([settle(one, Misfit(ERROR, "version:2"))])
    (two,) = await claim(engine, 1, requirements=("version:2",))
    failed = settle(two, Failed(ErrorInfo(type="ValueError", message="no")))

    await engine.jobs.settle([failed])
    await engine.jobs.retry([two.job.id], by="test", reason="")

    assert await claim(engine, 1, requirements=("",)) == []
    (three,) = await claim(engine, 1, requirements=("version:2",))
    assert three.job.attempt == 1


async def test_a_suspect_that_fits_some_versions_runs_alone_there(engine: Engine) -> None:
    await submit(engine, new_job())
    (one,) = await claim(engine, 1)
    await engine.jobs.settle([settle(one, Misfit(ERROR, "version:2"))])
    (two,) = await claim(engine, 1, requirements=("version:2",))

    await engine.jobs.settle([settle(two, Abandoned(AbandonCause.CHILD_DIED))])
    assert await claim(engine, 1, requirements=("version:2", ALONE)) == []
    (three,) = await claim(engine, 1, requirements=("version:2+alone",))
    await engine.jobs.settle([settle(three, Misfit(ERROR, "version:5"))])

    assert await claim(engine, 1, requirements=("version:5", "version:2+alone")) == []
    (four,) = await claim(engine, 1, requirements=("version:5+alone",))
    await engine.jobs.settle([settle(four, Misfit(ERROR, ""))])
    assert len(await claim(engine, 1, requirements=(ALONE,))) == 1


async def test_misfits_and_others_of_one_call_go_their_own_ways(engine: Engine) -> None:
    ids = await submit(engine, *(new_job() for _ in range(4)))
    claims = {one.job.id: one for one in await claim(engine, 4)}
    outcomes = [
        Misfit(ERROR, "version:1"),
        Abandoned(AbandonCause.CHILD_DIED),
        Released(),
        Misfit(ERROR, NO_VERSION),
    ]
    await engine.jobs.settle(
        [settle(claims[id_], outcome) for id_, outcome in zip(ids, outcomes, strict=True)]
    )

    for job_id, lane in zip(ids, ("version:1", ALONE, "", NO_VERSION), strict=True):
        assert [one.job.id for one in await claim(engine, 4, requirements=(lane,))] == [job_id]


async def test_a_misfit_for_which_a_cancel_was_requested_is_cancelled(engine: Engine) -> None:
    (job_id,) = await submit(engine, new_job())
    (one,) = await claim(engine, 1)
    await engine.jobs.cancel([job_id], by="test", reason="")

    (settled,) = await engine.jobs.settle([settle(one, Misfit(ERROR, "version:1"))])

    assert settled.state is JobState.CANCELLED


async def test_types_name_the_slots_of_live_workers_and_the_queues_served_there(
    engine: Engine, clock: VirtualClock
) -> None:
    both = ("default", "letters")
    await engine.membership.join(worker("w1", 3, version("h1"), queues=both))
    await engine.membership.join(worker("w2", 1, version("h1")))
    await engine.membership.join(worker("w3", 1, version("h1"), version("h9", name="scan")))
    await engine.membership.join(worker("w4", 0, version("h2")))

    default = ("default",)
    assert await _seats(engine) == {
        "h1": {Seat(slot=3, queues=both), Seat(slot=1, queues=default, workers=2)},
        "h9": {Seat(slot=1, queues=default)},
        "h2": {Seat(slot=0, queues=default)},
    }
    slots = {one.id: one.version_slot for one in await engine.inspector.workers()}
    assert slots == {"w1": 3, "w2": 1, "w3": 1, "w4": 0}

    await engine.membership.join(worker("w1", 4, version("h1"), queues=("letters",)))
    await engine.membership.leave("w3")
    assert await _seats(engine) == {
        "h1": {Seat(slot=4, queues=("letters",)), Seat(slot=1, queues=default)},
        "h9": set(),
        "h2": {Seat(slot=0, queues=default)},
    }
    clock.advance(seconds=31)
    assert await _seats(engine) == {"h1": set(), "h9": set(), "h2": set()}


async def _seats(engine: Engine) -> dict[str, set[Seat]]:
    return {row.hash: set(row.seats) for row in await engine.inspector.types()}


async def test_explain_says_that_no_live_version_takes_a_job_and_what_they_take(
    engine: Engine,
) -> None:
    await engine.membership.join(worker("w1", 1, version("h1", OLD)))
    (job_id,) = await submit(engine, new_job(args=b'{"a": 1, "b": "secret"}'))
    (one,) = await claim(engine, 1)
    await engine.jobs.settle([settle(one, Misfit(ERROR))])

    explanation = await engine.inspector.explain(job_id)

    assert explanation is not None
    assert explanation.reasons[0].why is Why.NO_VERSION
    text = explanation.reasons[0].text
    assert "work(a: integer, b: string)" in text
    assert "work(a: integer) (1 worker, version h1)" in text
    assert "secret" not in text


async def test_explain_says_which_versions_live_where_only_some_take_a_job(engine: Engine) -> None:
    await engine.membership.join(worker("w1", 1, version("h1", OLD)))
    await engine.membership.join(worker("w2", 2, version("h2", NEW)))
    (job_id,) = await submit(engine, new_job())
    (one,) = await claim(engine, 1)
    await engine.jobs.settle([settle(one, Misfit(ERROR, "version:2"))])

    explanation = await engine.inspector.explain(job_id)

    assert explanation is not None
    assert [reason.why for reason in explanation.reasons] == [Why.NEXT, Why.VERSION]
    assert "work(a: integer)" in explanation.reasons[1].text
    assert "work(a: integer = …, b: string = …)" in explanation.reasons[1].text


async def test_explain_says_that_nobody_in_its_queue_has_the_version_for_which_a_job_waits(
    engine: Engine,
) -> None:
    await engine.membership.join(worker("w1", 1, version("h1", NEW)))
    await engine.membership.join(worker("w2", 2, version("h1", NEW), queues=("letters",)))
    (job_id,) = await submit(engine, new_job())
    (one,) = await claim(engine, 1)
    await engine.jobs.settle([settle(one, Misfit(ERROR, "version:2"))])

    explanation = await engine.inspector.explain(job_id)

    assert explanation is not None
    assert [reason.why for reason in explanation.reasons] == [Why.NO_WORKER, Why.VERSION]
    assert "no live worker that serves queue `default`" in explanation.reasons[0].text
    assert "looked at again" in explanation.reasons[0].text


async def test_explain_tells_apart_versions_that_do_not_serve_the_queue_of_a_job(
    engine: Engine,
) -> None:
    await engine.membership.join(worker("w1", 1, version("h1", OLD)))
    await engine.membership.join(worker("w2", 2, version("h2", NEW), queues=("letters",)))
    (job_id,) = await submit(engine, new_job())
    (one,) = await claim(engine, 1)
    await engine.jobs.settle([settle(one, Misfit(ERROR))])

    explanation = await engine.inspector.explain(job_id)

    assert explanation is not None
    assert [reason.why for reason in explanation.reasons] == [Why.NO_VERSION]
    text = explanation.reasons[0].text
    assert "(1 worker, version h1)" in text
    assert "(1 worker, version h2, not in queue `default`)" in text
