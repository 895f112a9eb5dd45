import pytest

from lamplighter.model.errors import InvalidOption
from lamplighter.model.job import TERMINAL, JobState, Level, Status, status_of


def status(state, **changes):
    facts = {"due": True, "attempt": 0, "held": False, "cancel_requested": False} | changes
    return status_of(state, **facts)


@pytest.mark.parametrize("state", sorted(TERMINAL | {JobState.BLOCKED}))
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("cancel", [False, True])
def test_other_states_are_shown_as_they_are(state, held, cancel):
    shown = status(state, held=held, cancel_requested=cancel, due=False, attempt=3)

    assert shown == state.value


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, Status.READY),
        ({"attempt": 2}, Status.READY),
        ({"due": False}, Status.SCHEDULED),
        ({"due": False, "attempt": 1}, Status.RETRYING),
        ({"held": True}, Status.PAUSED),
        ({"held": True, "due": False, "attempt": 1}, Status.PAUSED),
    ],
)
def test_a_waiting_job_is_shown_by_due_time_hold_and_past(facts, expected):
    assert status(JobState.WAITING, **facts) is expected


def test_a_running_job_shows_a_cancel_request():
    assert status(JobState.RUNNING, held=True) is Status.RUNNING
    assert status(JobState.RUNNING, cancel_requested=True) is Status.CANCELLING


def test_levels_are_read_by_name_and_ordered():
    assert sorted(Level) == [Level.CRITICAL, Level.HIGH, Level.NORMAL, Level.LOW]
    assert [Level.of(level.label) for level in Level] == list(Level)
    assert Level.of("High") is Level.HIGH


@pytest.mark.parametrize("bad", ["urgent", "", 2, None])
def test_an_unknown_level_is_refused(bad):
    with pytest.raises(InvalidOption, match="priority"):
        Level.of(bad)
