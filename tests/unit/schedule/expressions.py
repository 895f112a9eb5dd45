"""Expressions, zones and instants for the property tests."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from lamplighter.model.errors import InvalidOption
from lamplighter.model.schedule import Cron
from lamplighter.model.schedule.fields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, Field

ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Pacific/Apia",
    "America/Santiago",
    "Antarctica/Troll",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "America/St_Johns",
    "Pacific/Kwajalein",
)

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - what has to be refused

zones = st.sampled_from(ZONES)
ages = st.integers(-62_135_596_800, 253_402_300_799).map(
    lambda s: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=s)
)


def naive(first: int, last: int) -> st.SearchStrategy[datetime]:
    """Times without a zone, from one year to another."""
    return st.datetimes(
        datetime(first, 1, 1),  # noqa: DTZ001 - hypothesis adds zones itself, or none
        datetime(last, 1, 1),  # noqa: DTZ001
    )


recent = naive(1900, 2100).map(lambda t: t.replace(tzinfo=UTC))
instants = st.one_of(recent, ages)


def _values(field: Field) -> st.SearchStrategy[str]:
    value = st.integers(field.low, field.high)
    step = st.integers(1, field.count)
    pair = st.tuples(value, value).map(sorted).map(lambda p: f"{p[0]}-{p[1]}")
    return st.one_of(
        value.map(str),
        pair,
        st.tuples(pair, step).map(lambda p: f"{p[0]}/{p[1]}"),
        st.tuples(value, step).map(lambda p: f"{p[0]}/{p[1]}"),
        st.just("H"),
        step.map(lambda n: f"H/{n}"),
    )


def _field(field: Field, *specials: str) -> st.SearchStrategy[str]:
    item = _values(field)
    if specials:
        item = st.one_of(item, st.sampled_from(specials))
    return st.one_of(
        st.just("*"),
        st.just("*"),
        st.integers(1, field.count).map(lambda n: f"*/{n}"),
        st.lists(item, min_size=1, max_size=3).map(",".join),
    )


DAYS = ("L", "L-3", "L-30", "LW", "1W", "15W", "31W")
WEEKDAYS = ("FRIL", "0L", "7L", "MON#1", "FRI#5", "SUN#2", "MON-FRI", "FRI-SUN")

texts = st.tuples(
    st.one_of(st.just(""), _field(SECOND)),
    _field(MINUTE),
    _field(HOUR),
    _field(DAY, *DAYS),
    _field(MONTH, "JAN", "feb", "MAR-OCT"),
    _field(WEEKDAY, *WEEKDAYS),
).map(lambda parts: " ".join(parts).strip())


@st.composite
def crons(draw: st.DrawFn) -> Cron:
    """Cron calendars that can fire, of all kinds."""
    while True:
        try:
            return Cron(
                draw(texts),
                timezone=draw(zones),
                gap=draw(st.sampled_from(("next_valid", "skip"))),
                overlap=draw(st.sampled_from(("first", "both"))),
                seed=draw(st.sampled_from(("", "nightly", "ü"))),
            )
        except InvalidOption as error:
            assert "never fires" in error.cause  # noqa: PT017 - anything else is a defect
