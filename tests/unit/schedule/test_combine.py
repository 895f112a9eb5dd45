"""Union and Except."""

from datetime import UTC, date, datetime, timedelta

import pytest

from lamplighter.model.errors import InvalidOption
from lamplighter.model.schedule import Cron, Days, Except, Interval, Once, Union

START = datetime(2026, 12, 24, tzinfo=UTC)
END = START + timedelta(days=3)
EIGHT = Cron("0 8 * * *")
NINE = Cron("0 9 * * *")


def times(calendar) -> list[str]:
    return [at.strftime("%d %H") for at in calendar.between(START, END)]


def test_a_union_fires_once_where_both_do():
    both = Cron("0 8,9 * * *")
    assert times(EIGHT | NINE) == times(both)
    assert times(EIGHT | NINE | both) == times(both)
    assert times(Union(EIGHT)) == times(EIGHT)


def test_a_union_of_unions_is_one_union():
    joined = (EIGHT | NINE) | EIGHT
    assert joined == Union(EIGHT, NINE)


def test_instants_are_taken_out_one_by_one():
    assert times(Cron("0 8,9 * * *") - NINE) == times(EIGHT)
    assert times(EIGHT - Once(datetime(2026, 12, 25, 8, tzinfo=UTC))) == ["24 08", "26 08"]
    late = Once(datetime(2026, 12, 25, 8, 0, 0, 1, tzinfo=UTC))
    assert times(EIGHT - late) == times(EIGHT)


def test_days_are_taken_out_as_a_whole():
    assert times((EIGHT | NINE) - Days([date(2026, 12, 25)])) == [
        "24 08",
        "24 09",
        "26 08",
        "26 09",
    ]


def test_days_are_those_of_their_zone():
    # 25 December in Tokyo ends at 15:00 in UTC.
    base = Cron("0 14,15 * * *")
    tokyo = Days([date(2026, 12, 25)], "Asia/Tokyo")
    assert times(base - tokyo) == ["24 14", "25 15", "26 14", "26 15"]


def test_what_is_taken_out_stays_out_in_both_directions():
    calendar = EIGHT - Days([date(2026, 12, 25), date(2026, 12, 26)])
    assert calendar.next_after(START + timedelta(hours=9)) == START + timedelta(days=3, hours=8)
    before = calendar.previous_before(START + timedelta(days=3, hours=8))
    assert before == START + timedelta(hours=8)


def test_exclusions_are_gathered():
    first, second = Days([date(2026, 12, 25)]), Once(START)
    assert EIGHT - first - second == Except(EIGHT, first, second)


def test_an_exclusion_may_have_exceptions_of_its_own():
    not_the_25th = NINE - Once(datetime(2026, 12, 25, 9, tzinfo=UTC))
    assert times(Cron("0 9 * * *") - not_the_25th) == ["25 09"]


def test_a_search_through_nothing_but_exclusions_is_given_up():
    calendar = Cron("* * * * *") - Interval(60)
    for look in (calendar.next_after, calendar.previous_before):
        with pytest.raises(InvalidOption) as caught:
            look(START)
        assert "1,000" in caught.value.cause
        assert "Days" in caught.value.hint


def test_a_thousand_exclusions_in_a_row_are_passed():
    minutes = [Once(START + timedelta(minutes=n)) for n in range(1, 61)]
    hour = Except(Cron("* * * * *"), *minutes)
    assert hour.next_after(START) == START + timedelta(minutes=61)
    sixteen_hours = Cron("* * * * *") - Cron("* 0-15 * * *")
    assert sixteen_hours.next_after(START - timedelta(minutes=1)) == START + timedelta(hours=16)


@pytest.mark.parametrize(
    "make",
    [
        Union,
        lambda: Union(EIGHT, "9"),
        lambda: Union(EIGHT, Days([])),
        lambda: Except(Days([]), EIGHT),
        lambda: Except("8"),
        lambda: Except(EIGHT, date(2026, 12, 25)),
        lambda: Union(*(Once(START + timedelta(seconds=n)) for n in range(65))),
    ],
)
def test_what_is_no_calendar_is_refused(make):
    with pytest.raises(InvalidOption) as caught:
        make()
    assert caught.value.hint


@pytest.mark.parametrize("other", [5, None, "0 9 * * *"])
def test_operators_leave_foreign_values_alone(other):
    with pytest.raises(TypeError):
        EIGHT | other
    with pytest.raises(TypeError):
        EIGHT - other
