"""Recurrence rules: the days and times of the RFC, compared with python-dateutil, in any zone."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from dateutil.rrule import rrulestr
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lamplighter.model.errors import InvalidOption
from lamplighter.model.schedule import RRule, zone
from tests.unit.schedule.expressions import NAIVE, naive

START = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
BERLIN = zone("Europe/Berlin")


def some(rule: RRule, count: int) -> list[datetime]:
    first = rule.start - timedelta(seconds=1)
    return [*islice(rule.between(first, datetime(9999, 1, 1, tzinfo=UTC)), count)]


def numbers(low: int, high: int, most: int = 3) -> st.SearchStrategy[str]:
    values = st.integers(low, high).filter(bool) if low < 0 else st.integers(low, high)
    return st.lists(values, min_size=1, max_size=most, unique=True).map(
        lambda found: ",".join(map(str, found))
    )


WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
weekdays = st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=4, unique=True).map(",".join)
counted = st.lists(
    st.tuples(st.sampled_from((1, 2, 3, 4, -1, -2)), st.sampled_from(WEEKDAYS)).map(
        lambda pair: f"{pair[0]}{pair[1]}"
    ),
    min_size=1,
    max_size=2,
    unique=True,
).map(",".join)


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Rules that fire often enough for python-dateutil, which looks for each day one by one."""
    freq = draw(st.sampled_from(("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY")))
    parts = {"FREQ": freq, "INTERVAL": str(draw(st.integers(1, 5)))}
    optional = {"BYMONTH": numbers(1, 12), "BYHOUR": numbers(0, 23), "BYMINUTE": numbers(0, 59)}
    by_day = st.one_of(weekdays, counted) if freq in {"YEARLY", "MONTHLY"} else weekdays
    days = {"BYDAY": by_day, "BYMONTHDAY": numbers(-28, 28, 6)}
    if freq == "YEARLY":
        days |= {"BYYEARDAY": numbers(-365, 365, 6)}
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(days)))
        parts[name] = draw(days[name])
    for name, strategy in optional.items():
        # A minute that a rhythm of minutes never meets would keep dateutil busy to the year 9999.
        if draw(st.booleans()) and not (
            freq in {"HOURLY", "MINUTELY"} and parts["INTERVAL"] != "1"
        ):
            parts[name] = draw(strategy)
    if (
        freq != "WEEKLY"
        and freq not in {"HOURLY", "MINUTELY"}
        and len(parts) > 2
        and draw(st.booleans())
    ):
        parts["BYSETPOS"] = "1,-1"
    if draw(st.booleans()):
        parts["WKST"] = draw(st.sampled_from(WEEKDAYS))
    if draw(st.booleans()):
        parts["COUNT"] = str(draw(st.integers(1, 30)))
    return ";".join(f"{name}={value}" for name, value in parts.items())


@settings(deadline=None)
@given(rules(), naive(1980, 2040))
def test_wall_times_are_those_of_dateutil(text, start):
    start = start.replace(microsecond=0)
    expected = [*islice(rrulestr(text, dtstart=start), 25)]
    assume(expected)
    found = some(RRule(text, start=start.replace(tzinfo=UTC)), 25)
    assert [at.replace(tzinfo=None) for at in found] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FREQ=MONTHLY;BYMONTHDAY=31", ["01-31", "03-31", "05-31"]),
        ("FREQ=MONTHLY;BYDAY=-1FR", ["01-30", "02-27", "03-27"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", ["01-30", "02-27", "03-31"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=MO", ["01-04", "01-13", "01-18"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU", ["01-11", "01-13", "01-25"]),
        ("FREQ=YEARLY;BYDAY=20MO", ["05-18", "05-17", "05-15"]),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", ["05-11", "05-17", "05-15"]),
        ("FREQ=YEARLY;BYWEEKNO=53;BYDAY=FR", ["01-01", "12-31", "01-01"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-1", ["02-28", "02-28", "02-29"]),
        ("FREQ=YEARLY;BYYEARDAY=1,100,-1", ["01-01", "04-10", "12-31"]),
        # Weekdays with and without a number are added, as the RFC has it.
        ("FREQ=MONTHLY;BYDAY=1MO,WE", ["01-05", "01-07", "01-14"]),
        ("RRULE:FREQ=DAILY;COUNT=2", ["01-01", "01-02"]),
        ("freq=daily;until=20260103T093000z", ["01-01", "01-02", "01-03"]),
        ("FREQ=DAILY;UNTIL=20260102T093000", ["01-01", "01-02"]),
    ],
)
def test_rows_of_the_rfc(text, expected):
    assert [at.strftime("%m-%d") for at in some(RRule(text, start=START), 3)] == expected


def test_the_first_days_of_a_year_may_belong_to_week_52():
    rule = RRule("FREQ=YEARLY;BYWEEKNO=52", start=datetime(2022, 1, 1, tzinfo=UTC))
    assert some(rule, 1) == [datetime(2022, 1, 1, tzinfo=UTC)]


# ── the clocks ───────────────────────────────────────────────────────────────────────────────


def local(rule: RRule, start: str, end: str) -> list[str]:
    a, b = (datetime.fromisoformat(text).replace(tzinfo=BERLIN) for text in (start, end))
    found = rule.between(a.astimezone(UTC) - timedelta(seconds=1), b.astimezone(UTC))
    return [at.astimezone(BERLIN).strftime("%d %H:%M%z") for at in found]


def berlin(text: str, **policy) -> RRule:
    start = datetime(2026, 1, 1, 2, 30, tzinfo=BERLIN)
    return RRule(text, start=start, timezone="Europe/Berlin", **policy)


def test_a_daily_rule_keeps_its_wall_time():
    rule = berlin("FREQ=DAILY")
    assert local(rule, "2026-03-28", "2026-03-31") == [
        "28 02:30+0100",
        "29 03:00+0200",
        "30 02:30+0200",
    ]
    assert local(rule, "2026-10-25", "2026-10-26") == ["25 02:30+0200"]


def test_policies_are_those_of_cron():
    assert local(berlin("FREQ=DAILY", gap="skip"), "2026-03-29", "2026-03-30") == []
    both = berlin("FREQ=DAILY", overlap="both")
    assert local(both, "2026-10-25", "2026-10-26") == ["25 02:30+0200", "25 02:30+0100"]


def test_a_rule_of_hours_follows_elapsed_time():
    rule = berlin("FREQ=HOURLY")
    assert local(rule, "2026-03-29 01:00", "2026-03-29 04:00") == ["29 01:30+0100", "29 03:30+0200"]
    assert local(rule, "2026-10-25 02:00", "2026-10-25 03:00") == [
        "25 02:30+0200",
        "25 02:30+0100",
    ]


def test_a_rule_that_falls_into_every_gap_never_comes_again():
    text = "FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU;BYHOUR=2;BYMINUTE=30"
    assert berlin(text, gap="skip").next_after(START) is None
    assert berlin(text).next_after(START) == datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_nothing_happens_before_the_start_or_after_the_end():
    rule = RRule("FREQ=DAILY;UNTIL=20260103T093000Z", start=START)
    assert rule.previous_before(START) is None
    assert rule.next_after(datetime(1, 1, 1, tzinfo=UTC)) == START
    assert rule.previous_before(datetime(9000, 1, 1, tzinfo=UTC)) == START + timedelta(days=2)
    assert rule.next_after(START + timedelta(days=2)) is None


# ── refused ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "characters"),
        ("DAILY", "NAME=VALUE"),
        ("INTERVAL=2", "FREQ="),
        ("FREQ=FORTNIGHTLY", "WEEKLY"),
        ("FREQ=DAILY;FREQ=DAILY", "commas"),
        ("FREQ=DAILY;BYEASTER=1", "NAME=VALUE"),
        ("FREQ=DAILY;INTERVAL=0", "1 to"),
        ("FREQ=DAILY;COUNT=501", "UNTIL="),
        ("FREQ=DAILY;COUNT=0", "1 to 500"),
        ("FREQ=DAILY;COUNT=5;UNTIL=20300101T000000Z", "one of them"),
        ("FREQ=DAILY;UNTIL=20300101", "the time"),
        ("FREQ=DAILY;UNTIL=20301301T000000Z", "UNTIL="),
        ("FREQ=DAILY;BYHOUR=24", "0 to 23"),
        ("FREQ=DAILY;BYMONTHDAY=0", "-31"),
        ("FREQ=DAILY;BYDAY=2MO", "MONTHLY"),
        ("FREQ=MONTHLY;BYDAY=6MO", "5 of each"),
        ("FREQ=MONTHLY;BYDAY=XX", "2TU"),
        ("FREQ=MONTHLY;BYWEEKNO=5", "YEARLY"),
        ("FREQ=HOURLY;BYSETPOS=1", "DAILY"),
        ("FREQ=DAILY;WKST=MON", "MO, TU"),
        ("DTSTART:20260101T000000\nRRULE:FREQ=DAILY", "start="),
        ("FREQ=DAILY;DTSTART=20260101T000000", "start="),
        ("FREQ=DAILY;BYHOUR=٣", "0 to 23"),
        ("FREQ=DAILY;" + "BYHOUR=1" * 200, "1000 characters"),
    ],
)
def test_what_is_wrong_is_refused_with_a_remedy(text, word):
    with pytest.raises(InvalidOption) as caught:
        RRule(text, start=START)
    assert word in caught.value.hint


@settings(deadline=None)
@given(st.text("FREQDAILYBMONTHU=;,-0123456789 ", max_size=40))
def test_any_text_is_understood_or_refused(text):
    for rule in (text, f"FREQ=DAILY;{text}", f"FREQ=MONTHLY;BYDAY={text}"):
        try:
            RRule(rule, start=START)
        except InvalidOption as error:
            assert error.hint  # noqa: PT017 - it may also be understood


@pytest.mark.parametrize("start", [NAIVE, None, "2026-01-01"])
def test_a_start_is_an_instant(start):
    with pytest.raises(InvalidOption):
        RRule("FREQ=DAILY", start=start)
