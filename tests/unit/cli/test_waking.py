"""Whom a command wakes after it has changed jobs."""

import pytest

from lamplighter.cli import store
from lamplighter.model.job import JobState
from lamplighter.port.store import CANCEL_TOPIC, FINISHED_TOPIC
from lamplighter.port.values import ChangeAnswer, Changed
from tests.unit.worker.fakes import make_engine


@pytest.mark.parametrize(
    ("answer", "woken"),
    [
        (ChangeAnswer.REQUESTED, [CANCEL_TOPIC, FINISHED_TOPIC]),
        (ChangeAnswer.DONE, [FINISHED_TOPIC]),
        (ChangeAnswer.CONFLICT, []),
    ],
)
async def test_workers_hear_of_a_cancel_that_is_for_what_they_run(monkeypatch, answer, woken):
    engine = make_engine()

    async def nobody(_) -> None: ...

    async def cancel(ids) -> list[Changed]:
        return [Changed(one, answer, JobState.RUNNING) for one in ids]

    monkeypatch.setattr(store, "wake_workers", nobody)

    await store.change(engine, ["a"], cancel)

    assert engine.wakeup.notified == woken
