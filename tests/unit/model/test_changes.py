"""The tables of actions fit the table of moves."""

import pytest

from lamplighter.model.changes import (
    SITUATIONS,
    Action,
    ChangeAnswer,
    Changed,
    Effect,
    Situation,
    acts_on,
    answers,
    decide,
    shown_as,
    table_of,
)
from lamplighter.model.job import JobState
from lamplighter.model.lifecycle import TRANSITIONS, allowed

TARGETS = {
    Effect.END: JobState.CANCELLED,
    Effect.ASK: JobState.RUNNING,
    Effect.DUE_NOW: JobState.WAITING,
    Effect.RESUME: JobState.WAITING,
    Effect.RESTART: JobState.WAITING,
    Effect.REMOVE: None,
    Effect.ERASE: None,
}


@pytest.mark.parametrize("action", Action)
def test_every_act_that_moves_a_job_is_a_move_of_the_table_of_moves(action: Action):
    for job in SITUATIONS:
        effect = decide(action, job).effect
        assert effect not in TARGETS or allowed(job.state, action.value, TARGETS[effect]), (
            action,
            job,
        )


@pytest.mark.parametrize("move", [t for t in TRANSITIONS if t.event in set(Action)], ids=str)
def test_every_move_of_an_operator_is_made_in_some_situation(move):
    acts = {
        decide(Action(move.event), job).effect for job in SITUATIONS if job.state is move.source
    }

    assert any(effect in TARGETS and TARGETS[effect] is move.target for effect in acts)


@pytest.mark.parametrize("action", Action)
def test_exactly_what_changes_nothing_is_already_so_or_a_conflict(action: Action):
    for job in SITUATIONS:
        effect, answer = decide(action, job)
        nothing = answer in {ChangeAnswer.ALREADY, ChangeAnswer.CONFLICT}
        assert (effect is Effect.NOTHING) == nothing, (action, job)


def test_retry_and_replay_of_a_dead_job_differ():
    dead = Situation(JobState.DEAD)

    assert decide(Action.RETRY, dead).effect is Effect.RESUME
    assert decide(Action.REPLAY, dead).effect is Effect.RESTART


@pytest.mark.parametrize("action", Action)
def test_a_table_has_the_effect_of_each_situation_at_its_number(action: Action):
    assert [Effect(letter) for letter in table_of(action).effects] == [
        decide(action, job).effect for job in SITUATIONS
    ]
    assert [job.number for job in SITUATIONS] == list(range(len(SITUATIONS)))


def test_only_actions_on_jobs_that_have_not_ended_lock_queues():
    locking = {action for action in Action if table_of(action).locks_queues}

    assert locking == {Action.CANCEL, Action.HOLD, Action.UNHOLD, Action.RETRY}


@pytest.mark.parametrize(
    ("action", "job", "said"),
    [
        (Action.CANCEL, Situation(JobState.WAITING), ["done", "already"]),
        (Action.CANCEL, Situation(JobState.RUNNING), ["requested", "already"]),
        (Action.HOLD, Situation(JobState.WAITING), ["done", "already"]),
        (Action.RETRY, Situation(JobState.DEAD), ["done", "already"]),
        (Action.REPLAY, Situation(JobState.DEAD), ["done", "conflict"]),
        (Action.PURGE, Situation(JobState.DEAD), ["done", "unknown"]),
    ],
)
def test_an_id_named_twice_is_answered_as_by_two_calls(
    action: Action, job: Situation, said: list[str]
):
    answered = answers(table_of(action), ["a", "a"], {"a": job.number})

    assert [one.answer for one in answered] == said


def test_a_job_that_was_not_found_is_unknown():
    found = answers(table_of(Action.HOLD), ["a"], {})

    assert found == [Changed("a", ChangeAnswer.UNKNOWN, None)]


@pytest.mark.parametrize("action", Action)
def test_a_table_of_some_statuses_leaves_all_other_jobs_alone(action: Action):
    whole, some = table_of(action), table_of(action, frozenset({"ready", "dead"}))

    for job in SITUATIONS:
        if shown_as(job) & {"ready", "dead"}:
            assert some.effects[job.number] == whole.effects[job.number]
            assert some.answers[job.number] is whole.answers[job.number]
        else:
            assert Effect(some.effects[job.number]) is Effect.NOTHING
            assert some.answers[job.number] is ChangeAnswer.CONFLICT


def test_a_retry_of_dead_jobs_alone_locks_no_queue():
    assert not table_of(Action.RETRY, frozenset({"dead"})).locks_queues


@pytest.mark.parametrize(
    ("job", "statuses"),
    [
        (Situation(JobState.WAITING, due=False), {"scheduled", "retrying"}),
        (Situation(JobState.WAITING), {"ready"}),
        (Situation(JobState.WAITING, held=True, due=False), {"paused"}),
        (Situation(JobState.RUNNING, held=True), {"claimed", "running"}),
        (Situation(JobState.RUNNING, cancelling=True), {"cancelling"}),
        (Situation(JobState.DEAD, held=True), {"dead"}),
    ],
)
def test_a_situation_is_shown_as_one_of_its_statuses(job: Situation, statuses: set[str]):
    assert shown_as(job) == statuses


@pytest.mark.parametrize("action", Action)
def test_an_action_does_nothing_in_other_statuses_than_those_it_acts_on(action: Action):
    meant = acts_on(action)

    assert meant
    for job in SITUATIONS:
        if decide(action, job).effect is not Effect.NOTHING:
            assert shown_as(job) <= meant
    for status in meant:
        found = [job for job in SITUATIONS if status in shown_as(job)]
        assert any(decide(action, job).effect is not Effect.NOTHING for job in found)
