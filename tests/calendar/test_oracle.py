"""The oracle itself, held against rows written by hand from the published rules of the zones."""

from datetime import UTC, date, datetime, timedelta

import pytest

from tests.calendar import expressions, zones
from tests.calendar.oracle import MINUTE, SECOND, Window, fires_by_date, read

FIRST, BOTH = ("next_valid", "first"), ("next_valid", "both")
SKIP, SKIP_BOTH = ("skip", "first"), ("skip", "both")

# Expression, zone, policies, (after, until], and all instants in it; every time in UTC.
ROWS = [
    # New York, 8 March 2026: 02:00-05:00 becomes 03:00-04:00 at 07:00 UTC.
    ("30 2 * * *", "America/New_York", FIRST, "03-07 00:00", "03-10 00:00",
     ["03-07 07:30", "03-08 07:00", "03-09 06:30"]),
    ("30 2 * * *", "America/New_York", SKIP, "03-07 00:00", "03-10 00:00",
     ["03-07 07:30", "03-09 06:30"]),
    ("0,15,45 2-3 * * *", "America/New_York", FIRST, "03-08 00:00", "03-08 12:00",
     ["03-08 07:00", "03-08 07:15", "03-08 07:45"]),
    ("0,15,45 2-3 * * *", "America/New_York", SKIP_BOTH, "03-08 00:00", "03-08 12:00",
     ["03-08 07:00", "03-08 07:15", "03-08 07:45"]),
    ("59 1,2 * * *", "America/New_York", FIRST, "03-08 00:00", "03-08 12:00",
     ["03-08 06:59", "03-08 07:00"]),
    ("*/30 1-3 * * *", "America/New_York", FIRST, "03-08 00:00", "03-08 12:00",
     ["03-08 06:00", "03-08 06:30", "03-08 07:00", "03-08 07:30"]),
    ("*/30 2 * * *", "America/New_York", FIRST, "03-08 00:00", "03-08 12:00", []),
    ("30 * * * *", "America/New_York", FIRST, "03-08 05:00", "03-08 09:00",
     ["03-08 05:30", "03-08 06:30", "03-08 07:30", "03-08 08:30"]),
    ("0 */2 * * *", "America/New_York", FIRST, "03-08 04:00", "03-08 11:00",
     ["03-08 05:00", "03-08 08:00", "03-08 10:00"]),
    # New York, 1 November 2026: 02:00-04:00 becomes 01:00-05:00 at 06:00 UTC.
    ("30 1 * * *", "America/New_York", FIRST, "10-31 00:00", "11-03 00:00",
     ["10-31 05:30", "11-01 05:30", "11-02 06:30"]),
    ("30 1 * * *", "America/New_York", SKIP_BOTH, "10-31 00:00", "11-03 00:00",
     ["10-31 05:30", "11-01 05:30", "11-01 06:30", "11-02 06:30"]),
    ("0 1,2 * * *", "America/New_York", FIRST, "11-01 00:00", "11-01 12:00",
     ["11-01 05:00", "11-01 07:00"]),
    ("0 1,2 * * *", "America/New_York", BOTH, "11-01 00:00", "11-01 12:00",
     ["11-01 05:00", "11-01 06:00", "11-01 07:00"]),
    ("*/30 1 * * *", "America/New_York", FIRST, "11-01 00:00", "11-01 12:00",
     ["11-01 05:00", "11-01 05:30", "11-01 06:00", "11-01 06:30"]),
    # The window begins inside the overlap: the second pass is still the second.
    ("30 1 * * *", "America/New_York", FIRST, "11-01 06:00", "11-02 00:00", []),
    # Berlin, 29 March and 25 October 2026, both at 01:00 UTC.
    ("30 2 * * *", "Europe/Berlin", FIRST, "03-28 00:00", "03-30 12:00",
     ["03-28 01:30", "03-29 01:00", "03-30 00:30"]),
    ("30 2 * * *", "Europe/Berlin", FIRST, "10-24 12:00", "10-26 12:00",
     ["10-25 00:30", "10-26 01:30"]),
    ("30 2 * * *", "Europe/Berlin", BOTH, "10-24 12:00", "10-26 12:00",
     ["10-25 00:30", "10-25 01:30", "10-26 01:30"]),
    ("0 3 * * SUN", "Europe/Berlin", FIRST, "10-24 12:00", "11-01 12:00",
     ["10-25 02:00", "11-01 02:00"]),
    # Lord Howe sets its clocks by half an hour: back at 15:00 UTC on 4 April, forward on 3 October.
    ("45 1 * * *", "Australia/Lord_Howe", FIRST, "04-04 00:00", "04-05 20:00",
     ["04-04 14:45", "04-05 15:15"]),
    ("45 1 * * *", "Australia/Lord_Howe", BOTH, "04-04 00:00", "04-05 12:00",
     ["04-04 14:45", "04-04 15:15"]),
    ("15 2 * * *", "Australia/Lord_Howe", FIRST, "10-03 00:00", "10-04 20:00",
     ["10-03 15:30", "10-04 15:15"]),
    ("15,45 2 * * *", "Australia/Lord_Howe", SKIP, "10-03 00:00", "10-04 00:00", ["10-03 15:45"]),
    # Cairo has no midnight on 24 April 2026: the day begins at 01:00, at 22:00 UTC.
    ("0 0 * * *", "Africa/Cairo", FIRST, "04-22 12:00", "04-25 00:00",
     ["04-22 22:00", "04-23 22:00", "04-24 21:00"]),
    ("0 0 * * FRI", "Africa/Cairo", FIRST, "04-22 12:00", "04-25 00:00", ["04-23 22:00"]),
    ("0 0 24 4 *", "Africa/Cairo", SKIP, "04-22 12:00", "04-25 00:00", []),
    # Apia had no 30 December 2011: after the 29th, at 10:00 UTC on the 30th, came the 31st.
    ("0 12 * * *", "Pacific/Apia", FIRST, "2011-12-29 00:00", "2011-12-31 00:00",
     ["2011-12-29 22:00", "2011-12-30 10:00", "2011-12-30 22:00"]),
    ("0 12 * * *", "Pacific/Apia", SKIP, "2011-12-29 00:00", "2011-12-31 00:00",
     ["2011-12-29 22:00", "2011-12-30 22:00"]),
    ("0 12 30 * *", "Pacific/Apia", FIRST, "2011-12-29 00:00", "2011-12-31 00:00",
     ["2011-12-30 10:00"]),
    ("0 */6 * * *", "Pacific/Apia", FIRST, "2011-12-30 00:00", "2011-12-30 20:00",
     ["2011-12-30 04:00", "2011-12-30 10:00", "2011-12-30 16:00"]),
    # Santiago: 23:00 twice on 4 April 2026, no midnight on 6 September.
    ("30 23 * * *", "America/Santiago", FIRST, "04-04 00:00", "04-05 12:00",
     ["04-04 02:30", "04-05 02:30"]),
    ("30 23 * * *", "America/Santiago", BOTH, "04-04 12:00", "04-05 12:00",
     ["04-05 02:30", "04-05 03:30"]),
    ("0,30 0 * * *", "America/Santiago", FIRST, "09-05 12:00", "09-07 12:00",
     ["09-06 04:00", "09-07 03:00", "09-07 03:30"]),
    # Troll sets its clocks by two hours, on the same days as Berlin.
    ("30 1,2 * * *", "Antarctica/Troll", FIRST, "03-28 12:00", "03-30 00:00",
     ["03-29 01:00", "03-29 23:30"]),
    ("30 1,2 * * *", "Antarctica/Troll", FIRST, "10-24 12:00", "10-25 12:00",
     ["10-24 23:30", "10-25 00:30"]),
    ("30 1,2 * * *", "Antarctica/Troll", BOTH, "10-24 12:00", "10-25 12:00",
     ["10-24 23:30", "10-25 00:30", "10-25 01:30", "10-25 02:30"]),
    ("*/30 1 * * *", "Antarctica/Troll", FIRST, "10-24 12:00", "10-25 12:00",
     ["10-24 23:00", "10-24 23:30", "10-25 01:00", "10-25 01:30"]),
    # Kolkata is half an hour off the full ones, and never sets its clocks.
    ("0 12 * * *", "Asia/Kolkata", BOTH, "01-01 00:00", "01-03 00:00",
     ["01-01 06:30", "01-02 06:30"]),
]  # fmt: skip

# Expression and all dates in the named month of 2026.
DATES = [
    ("0 0 13 * 5", "01", [2, 9, 13, 16, 23, 30]),
    ("0 0 */2 * 1", "01", [5, 19]),
    ("0 0 13 * */5", "02", [13]),
    ("0 0 1-7 * *", "01", [1, 2, 3, 4, 5, 6, 7]),
    ("0 0 10/10 * *", "01", [10, 20, 30]),
    ("0 0 L * *", "02", [28]),
    ("0 0 L-3 * *", "02", [25]),
    ("0 0 L-30 * *", "02", []),
    ("0 0 L-30 * *", "01", [1]),
    ("0 0 LW * *", "05", [29]),
    ("0 0 LW * *", "06", [30]),
    ("0 0 1W * *", "08", [3]),
    ("0 0 15W * *", "08", [14]),
    ("0 0 15W * *", "11", [16]),
    ("0 0 15W * *", "12", [15]),
    ("0 0 31W * *", "05", [29]),
    ("0 0 31W * *", "06", []),
    ("0 0 30W * *", "02", []),
    ("0 0 1,15,L * *", "04", [1, 15, 30]),
    ("0 0 * * FRIL", "08", [28]),
    ("0 0 * * 7L", "08", [30]),
    ("0 0 * * FRI#2", "08", [14]),
    ("0 0 * * 6#5", "08", [29]),
    ("0 0 * * 5#5", "08", []),
    ("0 0 * * 0#1", "11", [1]),
    ("0 0 * * FRI-SUN", "02", [1, 6, 7, 8, 13, 14, 15, 20, 21, 22, 27, 28]),
    ("0 0 * * 5-7", "02", [1, 6, 7, 8, 13, 14, 15, 20, 21, 22, 27, 28]),
    ("0 0 * * 0", "02", [1, 8, 15, 22]),
    ("0 0 * * 7", "02", [1, 8, 15, 22]),
    ("0 0 * * sun,wed#1", "02", [1, 4, 8, 15, 22]),
    ("0 0 29 FEB *", "02", []),
    ("0 0 * mar-MAY 1#1", "04", [6]),
    ("@weekly", "02", [1, 8, 15, 22]),
    ("@monthly", "02", [1]),
    ("@yearly", "02", []),
]


def _utc(text: str) -> datetime:
    year = "" if text.count("-") == 2 else "2026-"
    return datetime.fromisoformat(f"{year}{text}").replace(tzinfo=UTC)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[1]} {row[0]} {row[2]}")
def test_fires_when_the_row_says(row):
    expression, zone, policies, after, until, wanted = row
    window = Window(zones.zone(zone), _utc(after), _utc(until))

    assert window.fires(read(expression), *policies) == [_utc(text) for text in wanted]


@pytest.mark.parametrize(("expression", "month", "wanted"), DATES)
def test_names_the_dates_of_the_row(expression, month, wanted):
    plan = read(expression)
    days = [date(2026, int(month), 1) + timedelta(days=number) for number in range(31)]

    named = [day.day for day in days if day.month == int(month) and plan.names_date(day)]

    assert named == wanted


def test_a_leap_day_is_left_out_in_2100():
    found = fires_by_date(read("0 0 29 2 *"), date(2095, 1, 1), date(2105, 1, 1))

    assert [day.date() for day in found] == [date(2096, 2, 29), date(2104, 2, 29)]


@pytest.mark.parametrize(
    ("expression", "policies", "wanted"),
    [
        ("*/20 30 2 * * *", FIRST, ["07:00:00"]),
        ("*/20 30 2 * * *", SKIP, []),
        ("50 59 1,2 * * *", FIRST, ["06:59:50", "07:00:00"]),
        ("30 0 3 * * *", FIRST, ["07:00:30"]),
        ("30 */30 1-3 * * *", FIRST, ["06:00:30", "06:30:30", "07:00:30", "07:30:30"]),
        ("5-6 59 1 * * *", FIRST, ["06:59:05", "06:59:06"]),
    ],
)
def test_counts_seconds_through_the_gap_of_new_york(expression, policies, wanted):
    after, until = _utc("03-08 05:00"), _utc("03-08 09:00")
    window = Window(
        zones.zone("America/New_York"), after, until, step=SECOND, margin=2 * 60 * MINUTE
    )

    found = [f"{one:%H:%M:%S}" for one in window.fires(read(expression), *policies)]

    assert found == wanted


def test_counts_seconds_where_the_offset_has_some():
    # Monrovia, 7 January 1972: 44 minutes and 30 seconds behind until 00:00, then on time.
    after, until = _utc("1972-01-06 23:00"), _utc("1972-01-07 02:00")
    window = Window(zones.zone("Africa/Monrovia"), after, until, step=SECOND, margin=60 * MINUTE)

    assert [change.instant for change in window.changes] == [_utc("1972-01-07 00:44:30")]
    assert window.fires(read("10 0 7 1 *"), *FIRST) == [_utc("1972-01-07 00:44:30")]
    assert window.fires(read("30 29 0 7 1 *"), *SKIP) == []
    assert window.fires(read("50 23 * * *"), *FIRST) == [_utc("1972-01-07 00:34:30")]


@pytest.mark.parametrize(
    ("expression", "free"),
    [
        ("* * * * *", True),
        ("*/5 3 * * *", True),
        ("5 */3 * * *", True),
        ("30 5 */3 * * *", True),
        ("@hourly", True),
        ("5 3 * * *", False),
        ("0-59 0-23 * * *", False),
        ("1,*/5 3 * * *", False),
        ("* 5 3 * * *", False),
        ("@daily", False),
    ],
)
def test_a_star_in_minute_or_hour_follows_elapsed_time(expression, free):
    assert read(expression).free_running is free


def test_a_walk_by_minutes_refuses_what_it_cannot_see():
    window = Window(zones.zone("Etc/UTC"), _utc("03-08 05:00"), _utc("03-08 05:10"))

    with pytest.raises(ValueError, match="seconds"):
        window.fires(read("30 * * * * *"), *FIRST)
    with pytest.raises(ValueError, match="whole number of minutes"):
        Window(zones.zone("Africa/Monrovia"), _utc("1960-01-01 00:00"), _utc("1960-01-01 00:10"))


def test_the_walk_finds_every_change_that_the_files_list():
    for name in zones.names():
        listed = [one for one in zones.listed(name) if zones.SINCE <= one.instant < zones.UNTIL]
        assert set(listed) <= set(zones.changes(name)), name


def test_every_table_has_one_representative():
    names = zones.representatives()
    tables = {
        (zones.SINCE.astimezone(zones.zone(name)).utcoffset(), zones.changes(name))
        for name in names
    }

    assert len(tables) == len(names) > 100
    assert {"America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Etc/UTC"} <= set(names)
    assert sum(len(zones.changes(name)) for name in names) > 2000


def test_the_same_seed_draws_the_same_expressions_of_every_kind():
    drawn = expressions.drawn(5)

    assert expressions.drawn.__wrapped__(5) == drawn
    assert expressions.drawn(6) != drawn
    assert len(set(drawn)) == len(drawn) >= 200
    for mark in ("L-", "LW", "W ", "#", "L", "/", "-", ",", "SUN", "MAR", "7", "@daily"):
        assert any(mark in expression for expression in drawn), mark
    assert any(len(expression.split()) == 6 for expression in drawn)
