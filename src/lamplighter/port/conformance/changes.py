"""What operators do to jobs is as the table in `model.changes` says, in every situation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.model.changes import Action, Decision, Effect, Situation, decide
from lamplighter.model.filters import EVERY_JOB
from lamplighter.model.job import JobState
from lamplighter.port.conformance.builders import died, finished, new_job, record, running, submit
from lamplighter.port.values import ChangeAnswer, Changed

if TYPE_CHECKING:
    from lamplighter.model.job import JobRecord
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "alice", "reason": "by the table"}
S = JobState
SITUATIONS = (
    *(Situation(S.WAITING, held, due=due) for held in (False, True) for due in (False, True)),
    *(Situation(S.RUNNING, held, asked) for held in (False, True) for asked in (False, True)),
    *(Situation(ended) for ended in (S.SUCCEEDED, S.DEAD, S.CANCELLED)),
)
BECOMES = {
    Effect.END: JobState.CANCELLED,
    Effect.RESUME: JobState.WAITING,
    Effect.RESTART: JobState.WAITING,
}


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("before", SITUATIONS, ids=lambda one: "-".join(map(str, one)))
async def test_an_action_has_the_effect_that_the_table_names(
    engine: Engine, clock: VirtualClock, action: Action, before: Situation
) -> None:
    job_id = await _bring_about(engine, before)
    expected = decide(action, before)

    (answer,) = await getattr(engine.jobs, action.value)([job_id], **BY)

    if expected.effect in {Effect.REMOVE, Effect.ERASE}:
        assert answer == Changed(job_id, ChangeAnswer.DONE, None)
        assert await engine.inspector.job(job_id) is None
        return
    state = BECOMES.get(expected.effect, before.state)
    assert answer == Changed(job_id, expected.answer, state)
    _agrees(await record(engine, job_id), before, expected, clock.now_ms())


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("before", SITUATIONS, ids=lambda one: "-".join(map(str, one)))
async def test_an_id_that_is_named_twice_is_answered_as_by_two_calls(
    engine: Engine, action: Action, before: Situation
) -> None:
    first = await _bring_about(engine, before)
    by_two: list[Changed] = []
    for _ in range(2):
        by_two += await engine.jobs.change(action, [first], by=BY["by"], reason=BY["reason"])
    await _away(engine)
    second = await _bring_about(engine, before)

    by_one = await engine.jobs.change(action, [second, second], by=BY["by"], reason=BY["reason"])

    assert [(one.answer, one.state) for one in by_one] == [
        (one.answer, one.state) for one in by_two
    ]


async def _away(engine: Engine) -> None:
    """Leave no job to be claimed in place of the next."""
    ids = [one.job.id for one in (await engine.inspector.jobs(EVERY_JOB, limit=10)).jobs]
    await engine.jobs.cancel(ids, **BY)


def _agrees(found: JobRecord, before: Situation, expected: Decision, now: int) -> None:
    effect = expected.effect
    assert found.state is BECOMES.get(effect, before.state)
    assert found.job.generation == (effect is Effect.RESTART)
    if found.state not in {S.WAITING, S.RUNNING}:
        return
    assert (found.cancel is not None) == (before.cancelling or effect is Effect.ASK)
    assert (found.hold is not None) == (
        effect is Effect.HOLD or (before.held and effect is not Effect.UNHOLD)
    )
    if found.state is S.WAITING:
        due = before.due or effect in {Effect.DUE_NOW, Effect.RESUME, Effect.RESTART}
        assert (found.job.due_at_ms <= now) == due


async def _bring_about(engine: Engine, wanted: Situation) -> str:
    match wanted.state:
        case JobState.SUCCEEDED:
            return (await finished(engine)).job.id
        case JobState.DEAD:
            return (await died(engine)).job.id
        case JobState.RUNNING:
            job_id = (await running(engine)).job.id
        case _:
            (job_id,) = await submit(engine, new_job(delay_ms=0 if wanted.due else 60_000))
    if wanted.held:
        await engine.jobs.hold([job_id], **BY)
    if wanted.cancelling or wanted.state is S.CANCELLED:
        await engine.jobs.cancel([job_id], **BY)
    return job_id
