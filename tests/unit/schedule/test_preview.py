"""Previews, words, and calendars as data."""

from datetime import UTC, date, datetime, timedelta

import pytest

from lamplighter.model.errors import InvalidOption
from lamplighter.model.schedule import (
    Cron,
    Days,
    Interval,
    Once,
    RRule,
    decode,
    encode,
    next_touch,
    preview,
)

BERLIN = "Europe/Berlin"
SPRING = datetime(2026, 3, 28, 12, tzinfo=UTC)
AUTUMN = datetime(2026, 10, 24, 12, tzinfo=UTC)


def shown(calendar, after, count):
    return [(run.local.strftime("%d %H:%M"), run.mark) for run in preview(calendar, after, count)]


def test_a_preview_marks_what_the_clocks_did():
    at_half_past_two = Cron("30 2 * * *", timezone=BERLIN)
    assert shown(at_half_past_two, SPRING, 2) == [
        ("29 03:00", "moved out of a gap"),
        ("30 02:30", None),
    ]
    assert shown(at_half_past_two, AUTUMN, 2) == [("25 02:30", "first of two"), ("26 02:30", None)]
    both = Cron("30 2 * * *", timezone=BERLIN, overlap="both")
    assert shown(both, AUTUMN, 2) == [("25 02:30", "first of two"), ("25 02:30", "second of two")]
    hourly = Cron("30 * * * *", timezone=BERLIN)
    assert shown(hourly, AUTUMN.replace(hour=23), 4) == [
        ("25 01:30", None),
        ("25 02:30", "first of two"),
        ("25 02:30", "second of two"),
        ("25 03:30", None),
    ]
    at_three = Cron("0 3 * * *", timezone=BERLIN)
    assert shown(at_three, SPRING, 1) == [("29 03:00", None)]


def test_a_preview_of_a_combination_shows_each_part_in_its_zone():
    calendar = Cron("0 12 * * *", timezone="Asia/Tokyo") | Cron("0 12 * * *", timezone=BERLIN)
    runs = preview(calendar - Days([date(2026, 3, 29)], "Asia/Tokyo"), SPRING, 2)
    assert [str(run.local.tzinfo) for run in runs] == ["Asia/Tokyo", BERLIN]
    assert all(run.local == run.utc for run in runs)


def test_a_preview_ends_with_its_calendar():
    assert preview(Once(SPRING), SPRING, 5) == []
    assert len(preview(Once(AUTUMN), SPRING, 5)) == 1
    for count in (0, -1, 1001, 1.5, True):
        with pytest.raises(InvalidOption):
            preview(Once(AUTUMN), SPRING, count)


@pytest.mark.parametrize(
    ("text", "policy", "after", "effect"),
    [
        ("30 2 * * *", {}, SPRING, "moved"),
        ("30 2 * * *", {"gap": "skip"}, SPRING, "skipped"),
        ("*/30 * * * *", {}, SPRING, "skipped"),
        ("30 2 * * *", {}, AUTUMN, "first only"),
        ("30 2 * * *", {"overlap": "both"}, AUTUMN, "doubled"),
        ("*/30 * * * *", {}, AUTUMN, "doubled"),
    ],
)
def test_the_next_change_that_touches_a_calendar_is_known(text, policy, after, effect):
    touch = next_touch(Cron(text, timezone=BERLIN, **policy), after)
    assert touch.effect == effect
    assert after < touch.at < after + timedelta(days=1)
    assert (touch.low.hour, touch.high.hour) == (2, 3)


def test_a_calendar_that_no_change_touches_has_none():
    assert next_touch(Cron("0 12 * * *", timezone=BERLIN), SPRING) is None
    assert next_touch(Cron("* * * * *"), SPRING) is None
    assert next_touch(Interval(60), SPRING) is None
    touched = next_touch(
        Cron("0 12 * * *", timezone="Pacific/Apia"), datetime(2011, 1, 1, tzinfo=UTC)
    )
    assert touched.wall.isoformat() == "2011-12-30T12:00:00"
    assert touched.low.isoformat() == "2011-12-30T00:00:00"


# ── words ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("30 2 * * *", "At 02:30 every day"),
        ("*/5 * * * *", "Every 5 minutes"),
        ("* * * * *", "Every minute"),
        ("* * * * * *", "Every second"),
        ("*/7 * * * *", "At minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 past every hour"),
        ("0 9-17 * * MON-FRI", "At minute 0 of hours 9 to 17 on Monday to Friday"),
        ("0 */2 * * *", "At minute 0 of every second hour"),
        ("0 8,20 1,15,L * *", "At 08:00 and 20:00 on day 1, 15 and the last day of the month"),
        ("0 0 13 * 5", "At 00:00 on day 13 or on Friday"),
        ("0 0 1-7 * */7", "At 00:00 on day 1 to 7 that is also Sunday"),
        ("0 0 * JAN-JUN *", "At 00:00 every day in January to June"),
        ("0 0 LW,15W * *", "nearest to day 15"),
        ("0 0 * * 0,FRI#2,MONL", "Sunday, the second Friday of the month and the last Monday"),
    ],
)
def test_expressions_are_told_in_plain_words(text, words):
    assert words in Cron(text).describe()


def test_words_say_what_happens_when_the_clocks_change():
    assert Cron("30 2 * * *").describe() == "At 02:30 every day, UTC time."
    assert "when the gap ends" in Cron("30 2 * * *", timezone=BERLIN).describe()
    skip = Cron("30 2 * * *", timezone=BERLIN, gap="skip", overlap="both").describe()
    assert "is left out" in skip
    assert "both times" in skip
    assert "elapsed time" in Cron("* * * * *", timezone=BERLIN).describe()


def test_the_other_calendars_are_told_too():
    assert Interval(5400).describe().startswith("Every 1 hour and 30 minutes, counted")
    assert Interval(3600).describe().startswith("Every hour, counted")
    assert Once(SPRING).describe() == "Once, at 2026-03-28T12:00:00+00:00."
    holidays = Days([date(2026, 12, 25 + n) for n in range(7)])
    assert "and 2 more" in holidays.describe()
    assert "Not at:" in (Cron("0 0 * * *") - holidays).describe()
    assert "(2)" in (Cron("0 0 * * *") | Once(SPRING)).describe()
    rule = RRule("FREQ=WEEKLY;INTERVAL=2", start=SPRING)
    assert rule.describe().startswith("Every 2 weeks by the rule FREQ=WEEKLY;INTERVAL=2 from")


# ── data ─────────────────────────────────────────────────────────────────────────────────────


def test_what_is_stored_is_what_was_written():
    assert encode(Cron("H 2 * * *", timezone=BERLIN, seed="a")) == {
        "kind": "cron",
        "expression": "H 2 * * *",
        "timezone": BERLIN,
        "gap": "next_valid",
        "overlap": "first",
    }


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"kind": "moon"},
        {"kind": "cron"},
        encode(Cron("* * * * *")) | {"timezone": "Mars"},
        encode(Cron("* * * * *")) | {"expression": 5},
        {"kind": "once", "at": "soon"},
        {"kind": "once", "at": None},
        {"kind": "once", "at": "2026-01-01T00:00:00"},
        {"kind": "interval", "every": "x", "anchor": "2026-01-01T00:00:00+00:00"},
        {"kind": "union", "parts": []},
        {"kind": "union", "parts": 5},
        {"kind": "union", "parts": ["x"]},
        {"kind": "days", "dates": ["x"], "timezone": "UTC"},
        {"kind": [], "x": 1},
    ],
)  # fmt: skip
def test_data_that_is_no_calendar_is_refused(document):
    with pytest.raises(InvalidOption) as caught:
        decode(document)
    assert caught.value.hint


def test_data_that_is_too_deep_is_refused():
    document = encode(Once(SPRING))
    for _ in range(500):
        document = {"kind": "union", "parts": [document]}
    with pytest.raises(InvalidOption):
        decode(document)


def test_a_calendar_of_ones_own_cannot_be_stored():
    with pytest.raises(InvalidOption, match="cannot be stored"):
        encode(object())
