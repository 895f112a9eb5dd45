"""Schedules with the same calendar share it, unless their names decide what it says."""

import pytest

from lamplighter import Cron
from lamplighter.model.errors import InvalidInput
from lamplighter.model.recurring import DEFAULT_POLICY, Spec, Template
from lamplighter.port import specs


def text_of(calendar: Cron, args: bytes = b"{}") -> str:
    return specs.to_text(Spec(calendar=calendar, template=Template(type="bill", args=args)))


def test_equal_calendars_of_two_schedules_are_one():
    calendar = Cron("0 0 * * *", timezone="Asia/Shanghai")
    one = specs.from_text(text_of(calendar, b'{"n":1}'), "a")
    other = specs.from_text(text_of(calendar, b'{"n":2}'), "b")

    assert one.calendar == calendar
    assert one.calendar is other.calendar
    assert one.template.args != other.template.args
    assert one.policy is DEFAULT_POLICY


@pytest.mark.parametrize("timezone", ["UTC", "Europe/Berlin"])
def test_another_zone_is_another_calendar(timezone):
    calendar = Cron("0 0 * * *", timezone=timezone)

    assert specs.from_text(text_of(calendar), "a").calendar == calendar


@pytest.mark.parametrize("gap", ["next_valid", "skip"])
@pytest.mark.parametrize("overlap", ["first", "both"])
def test_so_is_one_that_treats_changes_of_the_clocks_otherwise(gap, overlap):
    calendar = Cron("30 2 * * *", timezone="Europe/Berlin", gap=gap, overlap=overlap)

    assert specs.from_text(text_of(calendar), "a").calendar == calendar


@pytest.mark.parametrize("expression", ["H H * * *", "h 3 * * *", "H(0-29)/10 * * * THU"])
def test_what_is_hashed_depends_on_the_name_of_the_schedule(expression):
    found = {
        name: specs.from_text(text_of(Cron(expression, seed=name)), name).calendar
        for name in ("a", "b")
    }

    assert found == {name: Cron(expression, seed=f"default\x01{name}") for name in ("a", "b")}
    assert found["a"] != found["b"]


def test_a_calendar_that_cannot_be_read_is_told_with_the_name_of_its_schedule():
    broken = text_of(Cron("0 0 * * *")).replace('"timezone":"UTC"', '"timezone":["UTC"]')

    with pytest.raises(InvalidInput, match="nightly"):
        specs.from_text(broken, "nightly")
