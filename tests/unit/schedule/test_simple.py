"""Interval, Once and Days."""

from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise

import pytest

from lamplighter.model.errors import InvalidOption
from lamplighter.model.schedule import EPOCH, Cron, Days, Except, Interval, Once, zone
from tests.unit.schedule.expressions import NAIVE

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_an_interval_counts_from_its_anchor_in_both_directions():
    calendar = Interval(timedelta(hours=7), anchor=NOON)
    assert calendar.next_after(NOON) == NOON + timedelta(hours=7)
    assert calendar.previous_before(NOON) == NOON - timedelta(hours=7)
    assert calendar.next_after(NOON - timedelta(seconds=1)) == NOON
    assert Interval(60).next_after(EPOCH) == EPOCH + timedelta(minutes=1)
    assert Interval(60) == Interval(timedelta(minutes=1))


def test_an_interval_follows_elapsed_time_when_the_clocks_change():
    start = datetime(2026, 3, 29, tzinfo=zone("Europe/Berlin"))
    found = [*islice(Interval(3600).between(start, start.astimezone(UTC) + timedelta(hours=5)), 9)]
    assert [b - a for a, b in pairwise(found)] == [timedelta(hours=1)] * 4


@pytest.mark.parametrize(
    "every",
    [0, -1, 0.5, float("nan"), float("inf"), True, "60", None, timedelta(0), timedelta(-1),
     timedelta(microseconds=1), timedelta(seconds=1, microseconds=1), 10**30],
)  # fmt: skip
def test_an_interval_is_a_number_of_whole_seconds(every):
    with pytest.raises(InvalidOption) as caught:
        Interval(every)
    assert "whole seconds" in caught.value.hint


def test_an_anchor_is_a_whole_second():
    with pytest.raises(InvalidOption, match="between two seconds"):
        Interval(60, anchor=NOON.replace(microsecond=5))
    with pytest.raises(InvalidOption):
        Interval(60, anchor=NAIVE)


def test_a_very_long_interval_fires_at_its_anchor_only():
    calendar = Interval(timedelta.max.days * 86_400, anchor=NOON)
    assert calendar.next_after(datetime.min.replace(tzinfo=UTC)) == NOON
    assert calendar.next_after(NOON) is None
    assert calendar.previous_before(NOON) is None


def test_once_keeps_its_microseconds():
    at = NOON.replace(microsecond=5)
    calendar = Once(at)
    assert calendar.next_after(NOON) == at
    assert calendar.next_after(at) is None
    assert calendar.previous_before(at) is None
    assert calendar.previous_before(at + timedelta(microseconds=1)) == at
    assert Once(at.astimezone(zone("Asia/Tokyo"))) == calendar
    with pytest.raises(InvalidOption):
        Once(NAIVE)
    with pytest.raises(InvalidOption, match="years 1 to 9999"):
        Once(datetime.max.replace(tzinfo=zone("America/New_York")))


def test_days_begin_when_their_clocks_do():
    calendar = Days([date(2026, 4, 24), date(2026, 4, 23)], "Africa/Cairo")
    found = [*calendar.between(datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))]
    local = [at.astimezone(zone("Africa/Cairo")).strftime("%d %H:%M") for at in found]
    assert local == ["23 00:00", "24 01:00"]
    assert Days([date(2011, 12, 30)], "Pacific/Apia").next_after(EPOCH) is None


@pytest.mark.parametrize("dates", ["2026-01-01", date(2026, 1, 1), [NOON], ["2026-01-01"], [None]])
def test_days_are_dates(dates):
    with pytest.raises(InvalidOption, match="date"):
        Days(dates)


def test_a_day_that_the_clocks_enter_twice_is_left_out_twice():
    # St. John's went from 00:01 on the 7th back to 23:01 on the 6th.
    name = "America/St_Johns"
    base = Cron("*/30 * * * * *", timezone=name)
    calendar = Except(base, Days([date(2010, 11, 6)], name))
    start = datetime(2010, 11, 6, 12, tzinfo=zone(name)).astimezone(UTC)
    found = [
        at.astimezone(zone(name)) for at in calendar.between(start, start + timedelta(hours=15))
    ]
    assert [at.strftime("%d %H:%M:%S %z") for at in found[:3]] == [
        "07 00:00:00 -0230",
        "07 00:00:30 -0230",
        "07 00:00:00 -0330",
    ]
    assert all(at.day == 7 for at in found)
    back = []
    t = found[-1]
    while t is not None and t > start:
        back.append(t.astimezone(zone(name)))
        t = calendar.previous_before(t)
    assert back[::-1] == found
