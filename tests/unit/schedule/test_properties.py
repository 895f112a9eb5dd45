"""What holds for every calendar: it moves on, it comes back, it is cheap, and it ends."""

import json
import sys
import tracemalloc
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import islice, pairwise
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamplighter.model.errors import InvalidOption
from lamplighter.model.schedule import (
    Cron,
    Days,
    Except,
    Interval,
    Once,
    RRule,
    Union,
    decode,
    encode,
)
from lamplighter.model.schedule.expression import parse
from tests.unit.schedule.expressions import ZONES, ages, crons, instants, naive, recent, zones

ENDS = (
    datetime.min.replace(tzinfo=UTC),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=-14))),
    datetime.max.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=timezone(timedelta(hours=14))),
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
)

intervals = st.builds(
    Interval, st.integers(1, 10**9), anchor=ages.map(lambda t: t.replace(microsecond=0))
)
instances = st.builds(Once, instants)
rrules = st.builds(
    RRule,
    st.sampled_from(
        (
            "FREQ=DAILY",
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR",
            "FREQ=MONTHLY;BYDAY=-1FR",
            "FREQ=MONTHLY;BYMONTHDAY=31",
            "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
            "FREQ=HOURLY;INTERVAL=5",
            "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            "FREQ=DAILY;COUNT=20",
            "FREQ=WEEKLY;UNTIL=20300101T000000Z",
        )
    ),
    start=naive(1950, 2050).map(lambda t: t.replace(tzinfo=UTC)),
    timezone=zones,
    gap=st.sampled_from(("next_valid", "skip")),
    overlap=st.sampled_from(("first", "both")),
)
days = st.builds(Days, st.lists(st.dates(), max_size=5), zones)
simple = st.one_of(crons(), intervals, instances, rrules)
calendars = st.one_of(
    simple,
    st.builds(Union, simple, simple),
    st.builds(Except, simple, days),
    st.builds(Except, simple, instances, days),
)


@settings(deadline=None)
@given(calendars, instants)
def test_the_next_instant_is_later_and_its_previous_one_is_not_later_than_the_start(calendar, t):
    found = calendar.next_after(t)
    if found is None:
        return
    assert found > t
    assert found.tzinfo is UTC
    assert calendar.fires_at(found)
    before = calendar.previous_before(found)
    assert before is None or before <= t
    assert calendar.next_after(found - timedelta(microseconds=1)) == found


@settings(deadline=None)
@given(calendars, instants)
def test_the_previous_instant_is_earlier_and_its_next_one_is_not_earlier(calendar, t):
    found = calendar.previous_before(t)
    if found is None:
        return
    assert found < t
    assert calendar.fires_at(found)
    after = calendar.next_after(found)
    assert after is None or after >= t


@settings(deadline=None)
@given(calendars, instants)
def test_looking_back_is_looking_ahead_the_other_way_round(calendar, t):
    ahead = [t]
    while len(ahead) < 12:
        found = calendar.next_after(ahead[-1])
        if found is None:
            break
        assert found > ahead[-1]
        ahead.append(found)
    back = [ahead[-1]] if calendar.fires_at(ahead[-1]) else []
    while back and len(back) < len(ahead) - 1:
        back.append(calendar.previous_before(back[-1]))
    if len(ahead) > 1:
        assert back[::-1] == ahead[1:]
        assert [*islice(calendar.between(t, ahead[-1]), 12)] == ahead[1:]


@settings(deadline=None)
@given(st.one_of(crons(), intervals, rrules), instants)
def test_instants_are_whole_seconds(calendar, t):
    found = calendar.next_after(t)
    assert found is None or found.microsecond == 0


@settings(deadline=None)
@given(calendars, st.sampled_from(ENDS))
def test_the_ends_of_time_are_no_accident(calendar, t):
    for found in (calendar.next_after(t), calendar.previous_before(t)):
        assert found is None or 1 <= found.year <= 9999


@settings(deadline=None)
@given(calendars)
def test_what_is_encoded_is_decoded(calendar):
    document = json.loads(json.dumps(encode(calendar)))
    seeds = {part.seed for part in _crons(calendar) if part.parsed.hashed}
    if len(seeds) < 2:
        again = decode(document, seed=next(iter(seeds), ""))
        assert again == calendar
        assert hash(again) == hash(calendar)
        assert again.describe() == calendar.describe()


def _crons(calendar):
    match calendar:
        case Cron():
            return [calendar]
        case Union(parts):
            return [one for part in parts for one in _crons(part)]
        case Except(base, excluded):
            return [one for part in (base, *excluded) for one in _crons(part)]
        case _:
            return []


@settings(deadline=None)
@given(calendars)
def test_every_calendar_can_be_told_in_words(calendar):
    text = calendar.describe()
    assert text[0].isupper()
    assert text.endswith(".")
    assert "  " not in text


@settings(deadline=None)
@given(recent)
def test_an_interval_keeps_its_distance(t):
    every = timedelta(minutes=7)
    found = [*islice(Interval(every).between(t, t + timedelta(hours=1)), 8)]
    assert all(b - a == every for a, b in pairwise(found))


# ── cost ─────────────────────────────────────────────────────────────────────────────────────

DEAR = (
    "0 0 29 2 */7",
    "* * * 2 MON#5",
    "* * * * * *",
    "59 59 23 31 12 *",
    "0 0 1 1 *",
    "*/30 2 * 3 SUNL",
    "30 2 * 3 SUNL",
    "* 0-59 2 * 3 SUNL",
    "0 0 31W 1,3,5 *",
    ",".join(["H/7"] * 30) + " * * * *",
    ",".join(["15W"] * 50) + " 0 0 15W,L,LW,L-3,1,2,3 * FRIL,MON#1"[4:],
)
YEARS = (1, 2, 1600, 1883, 1970, 2026, 2037, 2400, 5000, 9998, 9999)


def cpu(work) -> float:
    """Milliseconds of CPU, the best of three, since others may disturb a single one.

    Without what follows each line to count it, which would be most of the time.
    """
    times, follower = [], sys.gettrace()
    sys.settrace(None)
    try:
        for _ in range(3):
            started = process_time()
            work()
            times.append(1000 * (process_time() - started))
    finally:
        sys.settrace(follower)
    return min(times)


@pytest.mark.parametrize("name", ZONES)
@pytest.mark.parametrize("text", DEAR[:9])
def test_every_call_is_cheap(text, name):
    for gap in ("next_valid", "skip"):
        calendar = Cron(text, timezone=name, gap=gap)
        for year in YEARS:
            t = datetime(year, 6, 1, tzinfo=UTC)
            assert cpu(lambda t=t: calendar.next_after(t)) <= 5  # noqa: B023
            assert cpu(lambda t=t: calendar.previous_before(t)) <= 5  # noqa: B023


@settings(max_examples=50, deadline=None)
@given(crons(), instants)
def test_no_expression_is_dear(calendar, t):
    assert cpu(lambda: calendar.next_after(t)) <= 5
    assert cpu(lambda: calendar.previous_before(t)) <= 5


@pytest.mark.parametrize(
    "text", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31W 2,4,6 *", "0 0 L-30 2 *"]
)
def test_impossible_dates_are_refused_at_once(text):
    def refuse():
        with pytest.raises(InvalidOption, match="never fires"):
            parse.__wrapped__(text, "")

    assert cpu(refuse) <= 5


@pytest.mark.parametrize("text", DEAR[:9])
def test_a_year_of_missed_minutes_is_one_step(text):
    calendar = Cron("* * * * *", timezone="Europe/Berlin")
    t = datetime(2026, 6, 1, 12, 0, 30, tzinfo=UTC)
    assert calendar.previous_before(t) == t.replace(second=0)
    assert cpu(lambda: calendar.previous_before(t)) <= 1


@pytest.mark.parametrize("text", DEAR[:10])
def test_memory_stays_small(text):
    Cron("0 0 * * *", timezone="Europe/Berlin")
    tracemalloc.start()
    try:
        calendar = Cron(text, timezone="America/New_York", gap="skip")
        for year in YEARS:
            t = datetime(year, 6, 1, tzinfo=UTC)
            calendar.next_after(t)
            calendar.previous_before(t)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=YEARLY;BYMONTH=4;BYMONTHDAY=31",
        "FREQ=YEARLY;INTERVAL=4;BYYEARDAY=366",
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=SECONDLY;INTERVAL=60;BYSECOND=5",
        "FREQ=MINUTELY;INTERVAL=60;BYMINUTE=5",
        "FREQ=HOURLY;INTERVAL=24;BYHOUR=5",
        "FREQ=DAILY;INTERVAL=7;BYDAY=SU",
        "FREQ=MONTHLY;BYMONTHDAY=1;BYSETPOS=2",
        "FREQ=MONTHLY;INTERVAL=12;BYMONTH=5",
        "FREQ=DAILY;INTERVAL=1000;BYMONTH=2;BYMONTHDAY=30",
    ],
)
def test_impossible_rules_are_refused_in_bounded_time(text):
    # 2027 has no leap day within its four-year rhythm; the start is a Friday at 00:00:00.
    start = datetime(2027, 1, 1, tzinfo=UTC)

    def refuse():
        with pytest.raises(InvalidOption):
            RRule(text, start=start)

    assert cpu(refuse) <= 200


def test_a_rule_from_long_ago_is_as_quick_as_a_new_one():
    rule = RRule("FREQ=SECONDLY;INTERVAL=7", start=datetime(1900, 1, 1, tzinfo=UTC))
    t = datetime(2026, 6, 1, tzinfo=UTC)
    assert cpu(lambda: rule.next_after(t)) <= 5
    assert cpu(lambda: rule.previous_before(t)) <= 5


def test_days_between_are_jumped_over():
    start = date(2026, 1, 1)
    days = Days([start + timedelta(days=n) for n in range(5000)])
    calendar = Except(Cron("* * * * * *"), days)
    t = datetime(2026, 1, 1, tzinfo=UTC)
    assert calendar.next_after(t) == t + timedelta(days=5000)
    assert calendar.previous_before(t + timedelta(days=4999)) == t - timedelta(seconds=1)
    assert cpu(lambda: calendar.next_after(t)) <= 5
