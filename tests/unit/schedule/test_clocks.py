"""What happens when the clocks change: gaps, overlaps, and zones with habits of their own."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamplighter.model.schedule import EPOCH, Cron, zone
from lamplighter.model.schedule.instants import micros
from lamplighter.model.schedule.zones import timeline
from tests.unit.schedule.expressions import ZONES, texts


def runs(text: str, name: str, start: str, end: str, **policy) -> list[str]:
    """Local times from one local date to another, `MM-DD HH:MM` with the offset."""
    place = zone(name)
    a = datetime.fromisoformat(start).replace(tzinfo=place) - timedelta(seconds=1)
    b = datetime.fromisoformat(end).replace(tzinfo=place)
    found = Cron(text, timezone=name, **policy).between(a.astimezone(UTC), b.astimezone(UTC))
    return [at.astimezone(place).strftime("%m-%d %H:%M%z") for at in found]


NEW_YORK = "America/New_York"
BERLIN = "Europe/Berlin"
LORD_HOWE = "Australia/Lord_Howe"
CAIRO = "Africa/Cairo"
APIA = "Pacific/Apia"
SANTIAGO = "America/Santiago"
TROLL = "Antarctica/Troll"
CASABLANCA = "Africa/Casablanca"
ST_JOHNS = "America/St_Johns"


@pytest.mark.parametrize(
    ("text", "name", "span", "policy", "expected"),
    [
        # New York skips 02:00–03:00 on 8 March 2026 …
        ("30 2 * * *", NEW_YORK, ("2026-03-08", "2026-03-09"), {}, ["03-08 03:00-0400"]),
        ("30 2 * * *", NEW_YORK, ("2026-03-08", "2026-03-09"), {"gap": "skip"}, []),
        ("15,45 2 * * *", NEW_YORK, ("2026-03-08", "2026-03-09"), {}, ["03-08 03:00-0400"]),
        (
            "0,30 2,3 * * *",
            NEW_YORK,
            ("2026-03-08", "2026-03-09"),
            {},
            ["03-08 03:00-0400", "03-08 03:30-0400"],
        ),
        (
            "0 1-3 * * *",
            NEW_YORK,
            ("2026-03-08", "2026-03-09"),
            {},
            ["03-08 01:00-0500", "03-08 03:00-0400"],
        ),
        (
            "30 */2 8 * *",
            NEW_YORK,
            ("2026-03-08 01:00", "2026-03-08 05:00"),
            {},
            ["03-08 04:30-0400"],
        ),
        (
            "*/30 * * * *",
            NEW_YORK,
            ("2026-03-08 01:30", "2026-03-08 03:30"),
            {},
            ["03-08 01:30-0500", "03-08 03:00-0400", "03-08 03:30-0400"],
        ),
        # … and shows 01:00–02:00 twice on 1 November.
        ("30 1 * * *", NEW_YORK, ("2026-11-01", "2026-11-02"), {}, ["11-01 01:30-0400"]),
        (
            "30 1 * * *",
            NEW_YORK,
            ("2026-11-01", "2026-11-02"),
            {"overlap": "both"},
            ["11-01 01:30-0400", "11-01 01:30-0500"],
        ),
        (
            "0,30 1 * * *",
            NEW_YORK,
            ("2026-11-01", "2026-11-02"),
            {"overlap": "both"},
            ["11-01 01:00-0400", "11-01 01:30-0400", "11-01 01:00-0500", "11-01 01:30-0500"],
        ),
        (
            "0 * * * *",
            NEW_YORK,
            ("2026-11-01 00:00", "2026-11-01 02:00"),
            {},
            ["11-01 00:00-0400", "11-01 01:00-0400", "11-01 01:00-0500", "11-01 02:00-0500"],
        ),
        (
            "*/30 1 * * *",
            NEW_YORK,
            ("2026-11-01", "2026-11-02"),
            {},
            ["11-01 01:00-0400", "11-01 01:30-0400", "11-01 01:00-0500", "11-01 01:30-0500"],
        ),
        ("H(5-5) 1 * * *", NEW_YORK, ("2026-11-01", "2026-11-02"), {}, ["11-01 01:05-0400"]),
        # Berlin.
        ("30 2 * * *", BERLIN, ("2026-03-29", "2026-03-30"), {}, ["03-29 03:00+0200"]),
        ("30 2 * * *", BERLIN, ("2026-10-25", "2026-10-26"), {}, ["10-25 02:30+0200"]),
        (
            "30 2 * * *",
            BERLIN,
            ("2026-10-25", "2026-10-26"),
            {"overlap": "both"},
            ["10-25 02:30+0200", "10-25 02:30+0100"],
        ),
        ("59 59 2 * * *", BERLIN, ("2026-03-29", "2026-03-30"), {}, ["03-29 03:00+0200"]),
        (
            "0 3 * * *",
            BERLIN,
            ("2026-10-25", "2026-10-26"),
            {"overlap": "both"},
            ["10-25 03:00+0100"],
        ),
        # Lord Howe moves by half an hour.
        ("15 2 * * *", LORD_HOWE, ("2026-10-04", "2026-10-05"), {}, ["10-04 02:30+1100"]),
        ("45 2 * * *", LORD_HOWE, ("2026-10-04", "2026-10-05"), {}, ["10-04 02:45+1100"]),
        ("45 1 * * *", LORD_HOWE, ("2026-04-05", "2026-04-06"), {}, ["04-05 01:45+1100"]),
        (
            "15 1 * * *",
            LORD_HOWE,
            ("2026-04-05", "2026-04-06"),
            {"overlap": "both"},
            ["04-05 01:15+1100"],
        ),
        (
            "*/15 * * * *",
            LORD_HOWE,
            ("2026-04-05 01:30", "2026-04-05 02:00"),
            {},
            [
                "04-05 01:30+1100",
                "04-05 01:45+1100",
                "04-05 01:30+1030",
                "04-05 01:45+1030",
                "04-05 02:00+1030",
            ],
        ),
        # Cairo skips the first hour of a day, and shows the last one twice.
        (
            "0 0 * * *",
            CAIRO,
            ("2026-04-23", "2026-04-25"),
            {},
            ["04-23 00:00+0200", "04-24 01:00+0300", "04-25 00:00+0300"],
        ),
        (
            "0 0 * * *",
            CAIRO,
            ("2026-04-23", "2026-04-25"),
            {"gap": "skip"},
            ["04-23 00:00+0200", "04-25 00:00+0300"],
        ),
        (
            "30 23 * * *",
            CAIRO,
            ("2026-10-29", "2026-10-30"),
            {"overlap": "both"},
            ["10-29 23:30+0300", "10-29 23:30+0200"],
        ),
        # Apia left out 30 December 2011.
        (
            "0 12 * * *",
            APIA,
            ("2011-12-29", "2012-01-01"),
            {},
            ["12-29 12:00-1000", "12-31 00:00+1400", "12-31 12:00+1400"],
        ),
        (
            "0 12 * * *",
            APIA,
            ("2011-12-29", "2012-01-01"),
            {"gap": "skip"},
            ["12-29 12:00-1000", "12-31 12:00+1400"],
        ),
        (
            "0 0 * * *",
            APIA,
            ("2011-12-29", "2012-01-01"),
            {},
            ["12-29 00:00-1000", "12-31 00:00+1400", "01-01 00:00+1400"],
        ),
        (
            "0 */6 * * *",
            APIA,
            ("2011-12-29 18:00", "2011-12-31 06:00"),
            {},
            ["12-29 18:00-1000", "12-31 00:00+1400", "12-31 06:00+1400"],
        ),
        # Santiago changes at midnight too.
        (
            "0 0 * * *",
            SANTIAGO,
            ("2026-09-05", "2026-09-07"),
            {},
            ["09-05 00:00-0400", "09-06 01:00-0300", "09-07 00:00-0300"],
        ),
        (
            "30 23 * * *",
            SANTIAGO,
            ("2026-04-04", "2026-04-05"),
            {"overlap": "both"},
            ["04-04 23:30-0300", "04-04 23:30-0400"],
        ),
        # Troll moves by two hours.
        ("30 1,2 * * *", TROLL, ("2026-03-29", "2026-03-30"), {}, ["03-29 03:00+0200"]),
        (
            "30 1,2 * * *",
            TROLL,
            ("2026-10-25", "2026-10-26"),
            {"overlap": "both"},
            ["10-25 01:30+0200", "10-25 02:30+0200", "10-25 01:30+0000", "10-25 02:30+0000"],
        ),
        # Casablanca goes back for Ramadan.
        (
            "30 2 * * *",
            CASABLANCA,
            ("2026-02-15", "2026-02-16"),
            {"overlap": "both"},
            ["02-15 02:30+0100", "02-15 02:30+0000"],
        ),
        ("30 2 * * *", CASABLANCA, ("2026-03-22", "2026-03-23"), {}, ["03-22 03:00+0100"]),
        # St. John's went back from 00:01 to 23:01 of the day before.
        (
            "0 0 * * *",
            ST_JOHNS,
            ("2010-11-06", "2010-11-08"),
            {"overlap": "both"},
            ["11-06 00:00-0230", "11-07 00:00-0230", "11-07 00:00-0330", "11-08 00:00-0330"],
        ),
        (
            "0 0 * * *",
            ST_JOHNS,
            ("2010-11-06", "2010-11-08"),
            {},
            ["11-06 00:00-0230", "11-07 00:00-0230", "11-08 00:00-0330"],
        ),
        (
            "0 0 * * *",
            ST_JOHNS,
            ("2010-03-14", "2010-03-15"),
            {},
            ["03-14 00:00-0330", "03-15 00:00-0230"],
        ),
        # Far ahead the rule of today goes on.
        ("30 2 * * *", BERLIN, ("9998-03-29", "9998-03-30"), {}, ["03-29 03:00+0200"]),
    ],
)
def test_the_contract_in_rows(text, name, span, policy, expected):
    assert runs(text, name, *span, **policy) == expected


def test_offsets_with_seconds_are_exact():
    # Amsterdam was 19 minutes and 32 seconds ahead until 1937.
    calendar = Cron("0 12 * * *", timezone="Europe/Amsterdam")
    found = calendar.next_after(datetime(1930, 1, 1, tzinfo=UTC))
    assert found.astimezone(zone("Europe/Amsterdam")).strftime("%H:%M:%S") == "12:00:00"


def test_the_first_instant_of_1970_is_an_instant_like_others():
    # A zero that is taken for nothing would lose it.
    calendar = Cron("0 0 * * *")
    start = datetime(1970, 1, 1, tzinfo=UTC)
    assert calendar.next_after(start - timedelta(seconds=1)) == start
    assert calendar.previous_before(start + timedelta(seconds=1)) == start


# ── every instant against zoneinfo ───────────────────────────────────────────────────────────


def by_zoneinfo(calendar: Cron, first: datetime, last: datetime) -> list[datetime]:
    """Map each wall time between two naive minutes as the contract says, by `fold` alone."""
    place, found = zone(calendar.timezone), set()
    pattern = calendar.parsed
    at = pattern.next_wall(seconds(first))
    while at is not None and at <= seconds(last):
        wall = (EPOCH + timedelta(seconds=at)).replace(tzinfo=None)
        found |= _instants(calendar, wall, place)
        at = pattern.next_wall(at + 1)
    return sorted(found)


def seconds(wall: datetime) -> int:
    return micros(wall.replace(tzinfo=UTC)) // 1_000_000


def _instants(calendar: Cron, wall: datetime, place) -> set[datetime]:
    skip = calendar.free_running or calendar.gap == "skip"
    both = calendar.free_running or calendar.overlap == "both"
    early, late = (wall.replace(tzinfo=place, fold=fold) for fold in (0, 1))
    if early.utcoffset() == late.utcoffset():
        return {early.astimezone(UTC)}
    if early.utcoffset() > late.utcoffset():
        return {early.astimezone(UTC), late.astimezone(UTC)} if both else {early.astimezone(UTC)}
    if skip:
        return set()
    low, high = late.astimezone(UTC), early.astimezone(UTC)
    before = low.astimezone(place).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // 2
        if middle.astimezone(place).utcoffset() == before:
            low = middle
        else:
            high = middle
    return {high.replace(microsecond=0)}


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_two_days_around_any_change_are_those_of_zoneinfo(data):
    name = data.draw(st.sampled_from(ZONES))
    text = data.draw(texts.filter(lambda text: len(text.split()) == 5))
    try:
        calendar = Cron(
            text,
            timezone=name,
            gap=data.draw(st.sampled_from(("next_valid", "skip"))),
            overlap=data.draw(st.sampled_from(("first", "both"))),
        )
    except ValueError:
        return
    changes = [at for at in timeline(name).times if -(2**31) < at < 2**32] or [0]
    at = datetime.fromtimestamp(data.draw(st.sampled_from(changes)), UTC)
    middle = at.astimezone(zone(name)).replace(tzinfo=None, second=0)
    expected = by_zoneinfo(calendar, middle - timedelta(days=2.1), middle + timedelta(days=2.1))
    a, b = at - timedelta(days=1), at + timedelta(days=1)

    assert [*calendar.between(a, b)] == [t for t in expected if a < t <= b]
