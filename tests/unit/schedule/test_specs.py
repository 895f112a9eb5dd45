"""What a schedule is survives being stored, and equal schedules have equal texts."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter import Cron, Days, Except, Interval, Once, Retry, RRule
from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import Delivery, Extras, Level
from lamplighter.model.recurring import KEEP_LIMIT, CatchUp, Overlap, Policy, Spec, Template
from lamplighter.port import specs

START = datetime(2027, 1, 1, 8, tzinfo=UTC)
NIGHTLY = Cron("30 2 * * *", timezone="Europe/Berlin", gap="skip", overlap="both")
TEMPLATE = Template(type="report", args=b'{"a":1}')
CALENDARS = [
    NIGHTLY,
    Cron("H H(0-5) * * MON#2", seed="default\x01nightly"),
    Interval(timedelta(minutes=5), anchor=START),
    Once(START),
    RRule("FREQ=MONTHLY;BYDAY=-1FR", start=START, timezone="Asia/Tokyo"),
    Except(NIGHTLY | Once(START), Days([date(2027, 12, 25)], "Europe/Berlin")),
]


def spec(**fields) -> Spec:
    return replace(Spec(calendar=NIGHTLY, template=TEMPLATE), **fields)


@pytest.mark.parametrize("calendar", CALENDARS, ids=repr)
def test_every_calendar_survives(calendar):
    given = spec(calendar=calendar)
    assert specs.from_text(specs.to_text(given), "nightly") == given


def test_everything_about_the_job_survives():
    template = Template(
        type="größer ✓",
        args='{"name":"ö\\u0000"}'.encode(),
        queue="money",
        level=Level.CRITICAL,
        tenant="acme",
        delivery=Delivery.AT_MOST_ONCE,
        extras=Extras(
            retry=Retry(delays=[1, 2]),
            timeout=7.5,
            tags=("eu", "vip"),
            metadata={"a": [1, None]},
            secrets=("card",),
        ),
        cost=3,
    )
    given = spec(template=template)
    assert specs.from_text(specs.to_text(given), "x") == given


INSTANTS = st.none() | st.integers(0, 1 << 45)
POLICIES = st.builds(
    Policy,
    overlap=st.sampled_from(Overlap),
    catch_up=st.sampled_from(CatchUp),
    window_ms=st.integers(0, 1 << 40),
    jitter_ms=st.integers(0, 1 << 40),
    start_ms=INSTANTS,
    max_runs=st.none() | st.integers(1, 1 << 40),
    hold_after=st.none() | st.integers(1, 1 << 40),
    keep_succeeded=st.integers(0, KEEP_LIMIT),
    keep_failed=st.integers(0, KEEP_LIMIT),
)


@given(policy=POLICIES)
def test_every_policy_survives_and_is_written_the_same_way_each_time(policy):
    text = specs.to_text(spec(policy=policy))
    found = specs.from_text(text, "x")
    assert found.policy == policy
    assert specs.to_text(found) == text


def test_what_is_as_usual_is_not_written_so_that_defaults_may_grow():
    assert "policy" not in specs.to_text(spec())
    assert specs.to_text(spec()) == specs.to_text(spec(policy=Policy(window_ms=3_600_000)))
    assert specs.to_text(spec()) != specs.to_text(spec(policy=Policy(window_ms=1)))


def test_the_text_does_not_depend_on_how_an_expression_was_spaced():
    spaced = spec(
        calendar=Cron("30   2 * *  *", timezone="Europe/Berlin", gap="skip", overlap="both")
    )
    assert specs.to_text(spaced) == specs.to_text(spec())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "every minute",
        "[]",
        "{}",
        "null",
        specs.to_text(spec()).replace('"cron"', '"moon"'),
        specs.to_text(spec()).replace('"level":2', '"level":99').replace('"level":1', '"level":99'),
        specs.to_text(spec(policy=Policy(window_ms=7))).replace("window_ms", "windows"),
        specs.to_text(spec(policy=Policy(overlap=Overlap.ALLOW))).replace("allow", "perhaps"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_name_of_the_schedule(text):
    with pytest.raises(InvalidInput, match="nightly") as caught:
        specs.from_text(text, "nightly")
    assert "put it again" in caught.value.hint
