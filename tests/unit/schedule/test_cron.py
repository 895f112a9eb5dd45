"""Which days a cron expression names, and what a calendar is as a value."""

import copy
import pickle
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from lamplighter.model.errors import InvalidOption
from lamplighter.model.schedule import Cron
from tests.unit.schedule.expressions import NAIVE


def dates(text: str, start: str, count: int) -> list[str]:
    t = datetime.fromisoformat(start).replace(tzinfo=UTC) - timedelta(seconds=1)
    end = datetime(9999, 12, 31, tzinfo=UTC)
    return [at.date().isoformat() for at in islice(Cron(text).between(t, end), count)]


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("0 0 L * *", "2027-01-15", ["2027-01-31", "2027-02-28", "2027-03-31"]),
        ("0 0 L 2 *", "2027-01-15", ["2027-02-28", "2028-02-29", "2029-02-28"]),
        ("0 0 L-3 * *", "2027-01-15", ["2027-01-28", "2027-02-25", "2027-03-28"]),
        ("0 0 L-30 * *", "2027-01-02", ["2027-03-01", "2027-05-01", "2027-07-01"]),
        ("0 0 LW * *", "2027-01-15", ["2027-01-29", "2027-02-26", "2027-03-31"]),
        ("0 0 1,15,L * *", "2027-02-01", ["2027-02-01", "2027-02-15", "2027-02-28"]),
        # 15 May 2027 is a Saturday, 15 August a Sunday.
        ("0 0 15W * *", "2027-05-01", ["2027-05-14", "2027-06-15", "2027-07-15", "2027-08-16"]),
        # 1 May is a Saturday: Monday the 3rd, not April.
        ("0 0 1W 5 *", "2027-01-01", ["2027-05-03"]),
        # 31 October is a Sunday: Friday the 29th, not November.
        ("0 0 31W * *", "2027-10-01", ["2027-10-29", "2027-12-31"]),
        ("0 0 30W 2,4 *", "2027-01-01", ["2027-04-30", "2028-04-28"]),
        ("0 0 * * FRIL", "2027-01-01", ["2027-01-29", "2027-02-26"]),
        ("0 0 * * 7L", "2027-01-01", ["2027-01-31", "2027-02-28"]),
        ("0 0 * * FRI#2", "2027-01-01", ["2027-01-08", "2027-02-12"]),
        ("0 0 * * 1#5", "2027-01-01", ["2027-03-29", "2027-05-31"]),
        ("0 0 * 2 MON#5", "2027-01-01", ["2044-02-29", "2072-02-29", "2112-02-29"]),
        ("0 0 29 2 *", "2096-01-01", ["2096-02-29", "2104-02-29"]),
        ("0 0 29 2 */7", "2097-01-01", ["2128-02-29"]),
        # Either is enough when neither field starts with a star …
        ("0 0 13 * 5", "2027-08-01", ["2027-08-06", "2027-08-13", "2027-08-20"]),
        ("0 0 13 * FRI#1", "2027-08-01", ["2027-08-06", "2027-08-13", "2027-09-03"]),
        ("0 0 H(13-13) * 5", "2027-08-01", ["2027-08-06", "2027-08-13", "2027-08-20"]),
        # … and both are needed when one does.
        ("0 0 */2 * 1", "2027-08-01", ["2027-08-09", "2027-08-23", "2027-09-13"]),
        ("0 0 13 * */5", "2027-08-01", ["2027-08-13", "2028-02-13"]),
        ("0 0 *,1 * 1", "2027-08-01", ["2027-08-02", "2027-08-09"]),
        ("0 0 1,* * 1", "2027-08-01", ["2027-08-01", "2027-08-02", "2027-08-03"]),
        ("0 0 * * 0", "2027-08-02", ["2027-08-08"]),
        ("0 0 * * 7", "2027-08-02", ["2027-08-08"]),
        ("0 0 * * SUN", "2027-08-02", ["2027-08-08"]),
    ],
)
def test_days(text, start, expected):
    assert dates(text, start, len(expected)) == expected


def test_six_fields_begin_with_the_second():
    t = datetime(2026, 1, 1, 11, 59, 59, tzinfo=UTC)
    found = [*islice(Cron("*/20 0 12 * * *").between(t, t + timedelta(days=2)), 4)]
    assert [at.strftime("%d %H:%M:%S") for at in found] == [
        "01 12:00:00",
        "01 12:00:20",
        "01 12:00:40",
        "02 12:00:00",
    ]


def test_an_instant_itself_is_neither_next_nor_previous():
    calendar = Cron("0 * * * *")
    t = datetime(2026, 1, 1, 12, tzinfo=UTC)
    hour, tick = timedelta(hours=1), timedelta(microseconds=1)
    assert calendar.next_after(t) == t + hour
    assert calendar.next_after(t - tick) == t
    assert calendar.previous_before(t) == t - hour
    assert calendar.previous_before(t + tick) == t
    assert [*calendar.between(t, t + hour)] == [t + hour]
    assert [*calendar.between(t + hour, t)] == []


def test_instants_of_any_zone_are_understood_and_answered_in_utc():
    calendar = Cron("0 12 * * *")
    t = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    assert calendar.next_after(t) == datetime(2026, 10, 25, 12, tzinfo=UTC)
    assert calendar.next_after(t).tzinfo is UTC


@pytest.mark.parametrize("t", [NAIVE, "2026-01-01", None, 5])
@pytest.mark.parametrize("method", ["next_after", "previous_before"])
def test_a_naive_time_is_refused(method, t):
    with pytest.raises(InvalidOption) as caught:
        getattr(Cron("* * * * *"), method)(t)
    assert "aware" in caught.value.hint
    with pytest.raises(InvalidOption):
        Cron("* * * * *").between(t, datetime(2026, 1, 1, tzinfo=UTC))


def test_a_calendar_is_a_value():
    one = Cron("0  0 * * *", timezone="Europe/Berlin")
    same = Cron("0 0 * * *", timezone="Europe/Berlin")
    assert one == same
    assert hash(one) == hash(same)
    assert one != Cron("0 0 * * *")
    assert one != Cron("0 0 * * *", timezone="Europe/Berlin", gap="skip")
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one
    assert "clocks" not in repr(one)
    with pytest.raises(AttributeError):
        one.expression = "* * * * *"


def test_years_end_with_9999():
    calendar = Cron("0 0 1 1 *")
    assert calendar.next_after(datetime(9999, 1, 1, tzinfo=UTC)) is None
    assert calendar.previous_before(datetime(1, 1, 1, tzinfo=UTC)) is None
    assert calendar.next_after(datetime(9998, 6, 1, tzinfo=UTC)).year == 9999
    assert calendar.previous_before(datetime(1, 6, 1, tzinfo=UTC)).year == 1


@pytest.mark.parametrize("name", ["Asia/Tokyo", "America/New_York", "Pacific/Kiritimati"])
def test_there_is_no_wall_time_beyond_the_years(name):
    calendar = Cron("* * * * *", timezone=name)
    last = calendar.previous_before(datetime.max.replace(tzinfo=UTC))
    first = calendar.next_after(datetime.min.replace(tzinfo=UTC))
    assert last.astimezone(ZoneInfo(name)).year == 9999
    assert first.astimezone(ZoneInfo(name)).year == 1


def test_a_time_that_every_year_skips_never_comes_again():
    calendar = Cron("30 2 * 3 SUNL", timezone="Europe/Berlin", gap="skip")
    assert calendar.next_after(datetime(2026, 1, 1, tzinfo=UTC)) is None
    assert calendar.previous_before(datetime(9999, 1, 1, tzinfo=UTC)).year == 1980
