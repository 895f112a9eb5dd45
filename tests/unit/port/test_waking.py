"""Who is woken after jobs were changed."""

import pytest

from lamplighter.model.changes import Action, ChangeAnswer, Changed
from lamplighter.model.job import JobState
from lamplighter.port.bulk import wake
from lamplighter.port.store import CANCEL_TOPIC, FINISHED_TOPIC
from tests.unit.worker.fakes import make_engine


@pytest.mark.parametrize(
    ("answer", "woken"),
    [
        (ChangeAnswer.REQUESTED, [CANCEL_TOPIC, FINISHED_TOPIC]),
        (ChangeAnswer.DONE, [FINISHED_TOPIC]),
        (ChangeAnswer.CONFLICT, []),
    ],
)
async def test_workers_hear_of_a_cancel_that_is_for_what_they_run(answer, woken):
    engine = make_engine()

    await wake(engine, Action.CANCEL, [], [Changed("a", answer, JobState.RUNNING)])

    assert engine.wakeup.notified == woken
