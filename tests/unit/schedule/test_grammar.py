"""What a cron expression may be, and how a wrong one is refused."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamplighter.model.errors import InvalidOption
from lamplighter.model.schedule import Cron
from lamplighter.model.schedule.expression import MACROS, parse
from lamplighter.model.schedule.fields import draw
from lamplighter.model.schedule.times import bits
from tests.unit.schedule.expressions import texts


def values(text: str, field: int, seed: str = "") -> list[int]:
    return [*bits(parse(text, seed).fields[field].mask)]


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        ("*/15 * * * *", 1, [0, 15, 30, 45]),
        ("5/20 * * * *", 1, [5, 25, 45]),
        ("10-20/5 * * * *", 1, [10, 15, 20]),
        ("1,2,40-42 * * * *", 1, [1, 2, 40, 41, 42]),
        ("*/60 * * * *", 1, [0]),
        ("007 * * * *", 1, [7]),
        ("0 22-23,0-2 * * *", 2, [0, 1, 2, 22, 23]),
        ("0 0 * jan,Mar-MAY *", 4, [1, 3, 4, 5]),
        ("0 0 * * mon-FRI", 5, [1, 2, 3, 4, 5]),
        ("0 0 * * FRI-SUN", 5, [5, 6, 7]),
        ("0 0 * * 5-7", 5, [5, 6, 7]),
        ("0 0 * * SUN-TUE", 5, [0, 1, 2]),
        ("0 0 * * 1/2", 5, [1, 3, 5, 7]),
        ("*/10 0 0 * * *", 0, [0, 10, 20, 30, 40, 50]),
        ("0 0 * * *", 0, [0]),
        ("\t0  0\t* * * ", 1, [0]),
    ],
)
def test_fields_name_values(text, field, expected):
    assert values(text, field) == expected


@pytest.mark.parametrize(("macro", "text"), MACROS.items())
def test_macros_stand_for_their_expressions(macro, text):
    assert parse(macro, "").fields == parse(text, "").fields
    assert parse(macro.upper(), "").fields == parse(text, "").fields


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("empty", "five fields")),
        ("   ", ("empty", "five fields")),
        ("* * * *", ("has 4 fields", "minute hour day-of-month")),
        ("* * * * * * *", ("has 7 fields",)),
        (" ".join(["*"] * 61), ("has 61 fields",)),
        ("60 * * * *", ("`60`", "minute", "field 1 of 5", "character 1", "0 to 59")),
        ("0 24 * * *", ("`24`", "hour", "character 3", "midnight is hour 0")),
        ("0 0 0 * *", ("day-of-month", "1 to 31")),
        ("0 0 32 * *", ("day-of-month", "1 to 31")),
        ("0 0 * 13 *", ("month", "1 to 12 or JAN to DEC")),
        ("0 0 * * 8", ("day-of-week", "0 to 7 or SUN to SAT")),
        ("99999999999999999999 * * * *", ("out of range",)),
        ("*/0 * * * *", ("step `0`", "1 to 60")),
        ("*/90 * * * *", ("step `90`", "60 values", "interval")),
        ("* */25 * * *", ("step `25`",)),
        ("0 0 * * */8", ("step `8`",)),
        ("5-1 * * * *", ("runs backwards", "5-59,0-1")),
        ("0 0 * * SAT-MON", ("runs backwards", "SAT-SUN,MON")),
        ("0 0 * * 7-2", ("runs backwards", "0-2")),
        ("0 0 * NOV-FEB *", ("runs backwards", "NOV-DEC,JAN-FEB")),
        ("? * * * *", ("`?`", "write * for any")),
        ("0 0 ? * 1", ("day-of-month", "character 5", "write * for any")),
        ("1,,2 * * * *", ("comma",)),
        ("1, * * * *", ("comma",)),
        ("٣ * * * *", ("U+0663", "character 1")),
        ("* * * * *\n", ("U+000A",)),
        ("* * * * MONDAY", ("`MONDAY`", "SUN to SAT")),
        ("JAN * * * *", ("`JAN`", "minute")),
        ("*-5 * * * *", ("cannot be understood",)),
        ("1-2-3 * * * *", ("cannot be understood",)),
        ("1/2/3 * * * *", ("cannot be understood",)),
        ("-1 * * * *", ("cannot be understood",)),
        ("1.5 * * * *", ("cannot be understood",)),
        ("*/x * * * *", ("step `X`",)),
        ("L * * * *", ("belong to the day of month",)),
        ("0 0 * * L", ("FRIL",)),
        ("0 0 WL * *", ("LW",)),
        ("0 0 1-5W * *", ("15W",)),
        ("0 0 32W * *", ("1 to 31",)),
        ("0 0 L-31 * *", ("before every month",)),
        ("0 0 * * FRI#6", ("FRI#2",)),
        ("0 0 * * FRI#0", ("1 to 5",)),
        ("0 0 * * #2", ("cannot be understood",)),
        ("H(5) * * * *", ("H(0-30)",)),
        ("H(9-5) * * * *", ("runs backwards",)),
        ("H(0-99) * * * *", ("out of range",)),
        ("@reboot", ("no start of a fleet",)),
        ("@every 5m", ("Interval",)),
        ("@fortnightly", ("@weekly",)),
        ("* * * * * @daily", ("not a cron expression",)),
        ("0 0 31 2 *", ("never fires", "month")),
        ("0 0 30-31 2 *", ("never fires",)),
        ("0 0 31 4,6,9,11 *", ("never fires",)),
        ("0 0 31W 2,4 *", ("never fires",)),
        ("0 0 L-30 2,4 *", ("never fires",)),
        ("1" * 257, ("257 characters", "256")),
    ],
)
def test_what_is_wrong_is_refused_with_its_place_and_a_remedy(text, words):
    with pytest.raises(InvalidOption) as caught:
        Cron(text)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("text", [None, 5, b"* * * * *", ["*"]])
def test_what_is_not_text_is_refused(text):
    with pytest.raises(InvalidOption):
        Cron(text)


@pytest.mark.parametrize("options", [{"gap": "later"}, {"overlap": "second"}, {"gap": None}])
def test_unknown_policies_are_refused(options):
    with pytest.raises(InvalidOption, match=r"gap|overlap"):
        Cron("* * * * *", **options)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_understood_or_refused(text):
    try:
        Cron(text)
    except InvalidOption as error:
        assert error.hint  # noqa: PT017 - it may also be understood


@settings(deadline=None)
@given(st.lists(st.text("0123456789*,-/#LWH()?@JANMOFRISU ", max_size=9), min_size=5, max_size=6))
def test_anything_that_looks_like_fields_is_understood_or_refused(parts):
    try:
        Cron(" ".join(parts))
    except InvalidOption as error:
        assert error.hint  # noqa: PT017 - it may also be understood


@settings(deadline=None)
@given(texts)
def test_what_the_grammar_allows_is_understood(text):
    try:
        Cron(text)
    except InvalidOption as error:
        assert "never fires" in error.cause  # noqa: PT017 - it may also be understood


# ── H ────────────────────────────────────────────────────────────────────────────────────────


@settings(deadline=None)
@given(st.text(), st.integers(0, 5))
def test_a_hash_stays_within_its_range(seed, field):
    text = " ".join("H" if place == field else "*" for place in range(6))
    (value,) = values(text, field, seed)
    low, high = [(0, 59), (0, 59), (0, 23), (1, 28), (1, 12), (0, 6)][field]
    assert low <= value <= high


@settings(deadline=None)
@given(st.text(), st.integers(1, 60))
def test_a_hash_with_a_step_keeps_the_step(seed, step):
    found = values(f"H/{step} * * * *", 1, seed)
    assert found == [*range(found[0], 60, step)]
    assert found[0] < step


@settings(deadline=None)
@given(st.text())
def test_a_hash_in_a_range_stays_in_it(seed):
    (value,) = values("H(10-20) * * * *", 1, seed)
    assert 10 <= value <= 20
    assert set(values("H(10-20)/5 * * * *", 1, seed)) <= {*range(10, 21)}
    assert len(values("H(10-12)/30 * * * *", 1, seed)) == 1


def test_a_seed_means_the_same_for_ever():
    # Written down, since stored schedules depend on them.
    assert draw("", 1) % 60 == 49
    assert draw("nightly-report", 2) == 0xBA8B_5728_36B9_DC79
    assert Cron("H H * * *", seed="a") == Cron("H H * * *", seed="a")


def test_seeds_spread_over_the_hour():
    minutes = {values("H * * * *", 1, f"schedule-{n}")[0] for n in range(1000)}
    assert len(minutes) == 60


def test_a_schedule_keeps_its_minute_when_seconds_are_added():
    assert values("H * * * *", 1, "a") == values("0 H * * * *", 1, "a")


def test_a_seed_that_decides_nothing_is_dropped():
    assert Cron("0 0 * * *", seed="a") == Cron("0 0 * * *", seed="b")
    assert Cron("H 0 * * *", seed="a") != Cron("H 0 * * *", seed="b")


def test_the_guide_shows_every_macro():
    page = (Path(__file__).parents[3] / "docs" / "guides" / "time.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(@\w+)`", page)) >= set(MACROS)
