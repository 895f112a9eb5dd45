"""What is stored was checked when it was put: to read it searches for nothing."""

import sys
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from lamplighter.model.errors import InvalidInput, InvalidOption, TooCostly
from lamplighter.model.recurring import Spec, Template
from lamplighter.model.schedule import (
    Calendar,
    Days,
    Except,
    RRule,
    Union,
    decode,
    effort,
    encode,
    preview,
)
from lamplighter.model.schedule.rrule import _parse as recurrences
from lamplighter.port import specs

START = datetime(2026, 1, 1, 0, 0, tzinfo=UTC)
LATER = datetime(2031, 6, 1, tzinfo=UTC)
MINUTES = ",".join(map(str, range(43)))
COUNTED = f"FREQ=MINUTELY;INTERVAL=59;BYMINUTE={MINUTES};BYMONTH=2,5,6,7,9,11;COUNT=400"
HARD = [
    COUNTED,
    "FREQ=MINUTELY;INTERVAL=86399;BYMONTHDAY=-7;BYDAY=SA,SU",
    f"FREQ=SECONDLY;INTERVAL=99991;BYMINUTE={MINUTES};BYSECOND=7;BYMONTHDAY=-7",
    f"FREQ=SECONDLY;INTERVAL=43200;BYHOUR=0,1,12,13;BYMINUTE={MINUTES};BYSECOND={MINUTES}",
    "FREQ=YEARLY;INTERVAL=3;BYHOUR=13,17;BYSETPOS=2;COUNT=500",
    "FREQ=YEARLY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    "FREQ=MONTHLY;INTERVAL=5;BYDAY=5MO,5TU,5WE;BYSETPOS=2,-1",
    "FREQ=DAILY;COUNT=500",
]
NEVER = [
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;COUNT=3",
    "FREQ=DAILY;INTERVAL=3;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=HOURLY;INTERVAL=24;BYHOUR=1",
    f"FREQ=SECONDLY;INTERVAL=86400;BYHOUR=1,2;BYMINUTE={MINUTES};BYSECOND={MINUTES}",
]


def stored(calendar: Calendar) -> str:
    return specs.to_text(Spec(calendar=calendar, template=Template(type="work", args=b"{}")))


def read(text: str) -> Calendar:
    """Read it as a process does that has never seen it."""
    recurrences.cache_clear()
    return specs.from_text.__wrapped__(text, "nightly").calendar


class Spent:
    """Stands for the budget of a search, and counts who asks for it."""

    def __init__(self) -> None:
        self.asked = 0

    def get(self) -> None:
        self.asked += 1

    def set(self, _budget: object) -> None:
        self.asked += 1

    def reset(self, _token: object) -> None:
        """Nothing was set."""


def calls(work) -> int:
    """How many functions some work calls: the same number on every machine."""
    count, before = 0, sys.getprofile()

    def note(_frame, event, _arg):
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("rule", HARD)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_to_read_a_stored_rule_spends_nothing(rule, zone, monkeypatch):
    text, spent = stored(RRule(rule, start=START, timezone=zone)), Spent()
    monkeypatch.setattr(effort, "_budget", spent)

    read(text)

    assert spent.asked == 0
    RRule(rule, start=START + timedelta(minutes=1))
    assert spent.asked > 0


@pytest.mark.parametrize("rule", HARD)
def test_to_read_a_stored_rule_costs_what_reading_its_text_does(rule):
    text = stored(RRule(rule, start=START))
    read(text)  # the zone and what else is read once

    assert calls(lambda: read(text)) < 300 + 15 * (rule.count(",") + rule.count(";"))


def test_nor_is_anything_searched_for_in_the_parts_of_a_stored_combination(monkeypatch):
    days = Days([START.date()], "Europe/Berlin")
    rules = [RRule(rule, start=START) for rule in HARD]
    text, spent = stored(Except(Union(*rules), rules[0], days)), Spent()
    monkeypatch.setattr(effort, "_budget", spent)

    read(text)

    assert spent.asked == 0


@pytest.mark.parametrize("rule", HARD)
@pytest.mark.parametrize("first", ["next", "previous", "touching the end", "all"])
def test_a_rule_that_was_read_answers_like_the_one_that_was_stored(rule, first):
    given = RRule(rule, start=START, timezone="Europe/Berlin")
    found = read(stored(given))
    ask = {
        "next": lambda one: one.next_after(LATER),
        "previous": lambda one: one.previous_before(LATER),
        "touching the end": lambda one: one.previous_before(datetime.max.replace(tzinfo=UTC)),
        "all": lambda one: [*islice(one.between(START, LATER), 600)],
    }

    assert found == given
    for question in (ask[first], *ask.values()):
        assert question(found) == question(given)
    assert preview(found, START, 50) == preview(given, START, 50)
    assert found.describe() == given.describe()


def test_what_counts_is_counted_as_far_as_it_is_asked_for():
    counted = read(stored(RRule("FREQ=DAILY;INTERVAL=3;COUNT=500", start=START)))
    near = calls(lambda: counted.next_after(START))
    far = calls(lambda: counted.next_after(LATER))

    assert near < 200
    assert far > 30 * near
    assert calls(lambda: counted.next_after(LATER)) < near


def test_rules_that_were_accepted_one_by_one_are_counted_one_by_one_when_they_are_read():
    rules = [RRule(COUNTED, start=START + timedelta(minutes=n)) for n in range(6)]
    found = read(stored(Union(*rules)))

    assert found.previous_before(LATER) == max(one.previous_before(LATER) for one in rules)


@pytest.mark.parametrize("rule", NEVER)
def test_what_never_fires_is_refused_where_it_comes_from_a_caller(rule):
    plain = encode(RRule("FREQ=DAILY", start=START)) | {"text": rule}

    with pytest.raises(InvalidOption, match="never fires"):
        RRule(rule, start=START)
    with pytest.raises(InvalidOption, match="never fires"):
        decode(plain)


@pytest.mark.parametrize("rule", NEVER)
def test_what_never_fires_and_is_stored_all_the_same_has_no_instants(rule):
    text = stored(RRule("FREQ=DAILY", start=START)).replace("FREQ=DAILY", rule)
    found = read(text)

    assert found.next_after(START) is None
    assert found.previous_before(LATER) is None
    assert preview(found, START, 3) == []


@pytest.mark.parametrize("rule", ["FREQ=SECONDLY;INTERVAL=61;BYMINUTE=7,9,20;BYSECOND=3;COUNT=500"])
def test_what_is_too_costly_to_count_is_refused_where_it_comes_from_a_caller(rule):
    with pytest.raises(TooCostly):
        RRule(rule, start=START)
    with pytest.raises(TooCostly):
        decode(encode(RRule("FREQ=DAILY", start=START)) | {"text": rule})


def test_a_rule_that_cannot_be_understood_is_refused_when_it_is_read_too():
    text = stored(RRule("FREQ=DAILY", start=START)).replace("FREQ=DAILY", "FREQ=OFTEN")

    with pytest.raises(InvalidInput, match="OFTEN"):
        read(text)
