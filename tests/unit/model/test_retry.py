import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.model.errors import InvalidOption
from lamplighter.model.retry import LONGEST_DELAY, Retry, abandoned_delay

seconds = st.floats(0, LONGEST_DELAY)
chances = st.floats(0, 1, exclude_max=True)
policies = st.one_of(
    st.builds(
        Retry,
        max_attempts=st.integers(1, 50),
        base=seconds,
        factor=st.floats(1, 100),
        cap=seconds,
        jitter=st.floats(0, 1),
    ),
    st.builds(Retry, max_attempts=st.integers(1, 50), fixed=seconds),
    st.builds(Retry, delays=st.lists(seconds, max_size=10)),
)


def test_the_default_doubles_from_one_second_to_five_minutes_five_times():
    retry = Retry()

    assert [retry.delay_after(n, (), 0.0) for n in range(1, 6)] == [1, 2, 4, 8, None]
    assert Retry(max_attempts=99).delay_after(50, (), 0.0) == 300


def test_jitter_adds_up_to_its_part():
    assert Retry().delay_after(1, (), 0.999) == pytest.approx(1.3, rel=0.01)


def test_named_delays_make_one_attempt_more_than_delays():
    retry = Retry(delays=[60, 300, 1800])

    assert retry.max_attempts == 4
    assert [retry.delay_after(n, (), 0.5) for n in range(1, 5)] == [60, 300, 1800, None]


def test_a_function_is_asked_and_bounded():
    asked = []

    def function(attempt):
        asked.append(attempt)
        return attempt * 10

    retry = Retry(function=function)

    assert [retry.delay_after(n, (), 0.0) for n in (1, 2)] == [10, 20]
    assert asked == [1, 2]


@pytest.mark.parametrize("answer", [-1, float("nan"), float("inf"), "soon", True, None])
def test_a_functions_senseless_answer_is_refused(answer):
    with pytest.raises(InvalidOption):
        Retry(function=lambda _: answer).delay_after(1, (), 0.0)


def test_errors_not_to_be_retried_are_known_by_class_name_and_base():
    retry = Retry(no_retry_on=[LookupError, "MyError"])

    assert retry.delay_after(1, ("KeyError", "LookupError", "Exception"), 0.0) is None
    assert retry.delay_after(1, ("MyError",), 0.0) is None
    assert retry.delay_after(1, ("ValueError",), 0.0) is not None


@given(policies, st.integers(1, 60), chances)
def test_a_delay_is_finite_and_ends_with_the_attempts(retry, attempt, chance):
    delay = retry.delay_after(attempt, (), chance)

    assert (delay is None) == (attempt >= retry.max_attempts)
    if delay is not None:
        assert 0 <= delay <= 2 * LONGEST_DELAY


@given(st.integers(1, 10**9), chances)
def test_a_huge_attempt_number_does_not_overflow(attempt, chance):
    assert Retry(max_attempts=10**10, factor=100).delay_after(attempt, (), chance) <= 390


@given(policies)
def test_a_policy_survives_being_stored(retry):
    assert Retry.from_json(retry.to_json()) == retry
    assert json.loads(retry.to_json())["max_attempts"] == retry.max_attempts


def test_a_function_cannot_be_stored():
    with pytest.raises(InvalidOption, match="function"):
        Retry(function=lambda _: 1.0).to_json()


@pytest.mark.parametrize(
    "options",
    [
        {"max_attempts": 0},
        {"max_attempts": True},
        {"fixed": -1},
        {"fixed": float("nan")},
        {"delays": [float("inf")]},
        {"delays": [True]},
        {"delays": [1], "max_attempts": 3},
        {"delays": [1], "fixed": 1},
        {"fixed": 1, "function": lambda _: 1.0},
        {"factor": 0.5},
        {"cap": LONGEST_DELAY + 1},
        {"no_retry_on": "ValueError"},
        {"no_retry_on": ValueError},
        {"no_retry_on": 5},
        {"no_retry_on": [5]},
    ],
)
def test_senseless_options_are_refused(options):
    with pytest.raises(InvalidOption):
        Retry(**options)


def test_plain_data_makes_a_policy_and_unknown_words_are_refused():
    assert Retry.from_options({"fixed": 5, "max_attempts": 2}) == Retry(fixed=5, max_attempts=2)
    with pytest.raises(InvalidOption, match="tries"):
        Retry.from_options({"tries": 3})


def test_an_abandoned_job_waits_twice_as_long_each_time():
    assert [abandoned_delay(n, 1) for n in range(4)] == [1, 2, 4, 8]
    assert abandoned_delay(10**6, 1) == 300


def test_jobs_that_died_together_do_not_come_back_together():
    assert [abandoned_delay(3, chance) for chance in (0, 0.5, 1)] == [4, 6, 8]
