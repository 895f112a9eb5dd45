"""Expressions to ask about: some chosen for what clocks do, many drawn by a seed."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from random import Random

from tests.calendar.oracle import DAY, MACROS, MONTHS, WEEKDAYS, Change, Plan, read

# Hours at which clocks are set somewhere: midnight, the small hours, and what is near them.
CHOSEN = (
    "0 0 * * *",
    "30 1 * * *",
    "30 2 * * *",
    "0,15,45 0-3 * * *",
    "59 23 * * *",
    "0 12 * * *",
    "*/30 * * * *",
    "*/20 0-4 * * *",
    "15 * * * *",
    "0 */2 * * *",
    "7-59/13 0,1,2,3,23 * * *",
    "0 3 * * SUN",
    "30 0 L,1 * *",
    "45 1-2 13 * 5",
)


def around(change: Change) -> list[str]:
    """Expressions aimed at one setting of the clocks: into its gap or overlap, and at its edges."""
    old = (change.instant + change.before).replace(tzinfo=None)
    new = (change.instant + change.after).replace(tzinfo=None)
    first, end = min(old, new), max(old, new)
    middle = first + (end - first) // 2
    last = end - timedelta(minutes=1)
    return [
        f"{first.minute} {first.hour} * * *",
        f"{middle.minute} {middle.hour} {middle.day} {middle.month} *",
        f"{last.minute} {last.hour} * * {WEEKDAYS[(last.weekday() + 1) % 7]}",
        f"{end.minute},{last.minute},{middle.minute} {_hours(middle, last, end)} * * *",
    ]


def _hours(*walls: datetime) -> str:
    return ",".join(str(hour) for hour in sorted({wall.hour for wall in walls}))


@functools.cache
def drawn(seed: int, count: int = 240) -> tuple[str, ...]:
    """Draw that many different expressions; every kind has its share, and each fires some day."""
    random = Random(f"expressions {seed}")
    found: dict[str, None] = dict.fromkeys(MACROS)
    while len(found) < count:
        kind = KINDS[len(found) % len(KINDS)]
        expression = kind(random)
        if expression not in found and (hashed(expression) or _can_fire(read(expression))):
            found[expression] = None
    return tuple(found)


def hashed(expression: str) -> bool:
    """Say whether an expression leaves something to the seed of its schedule."""
    return re.search(r"\bH\b", expression) is not None


def _can_fire(plan: Plan) -> bool:
    """Look at 28 years: they hold a year of each length with each first weekday."""
    day = date(2000, 1, 1)
    while day < date(2028, 1, 1):
        if plan.names_date(day):
            return True
        day += DAY
    return False


def _fixed(random: Random) -> str:
    return f"{_minute(random)} {_hour(random)} * * *"


def _fixed_by_weekday(random: Random) -> str:
    return f"{_minute(random)} {_hour(random)} * {_month(random)} {_weekday(random)}"


def _fixed_by_day(random: Random) -> str:
    return f"{_minute(random)} {_hour(random)} {_day(random)} {_month(random)} *"


def _fixed_by_either(random: Random) -> str:
    return f"{_minute(random)} {_hour(random)} {_day(random)} * {_weekday(random)}"


def _fixed_by_both(random: Random) -> str:
    day, weekday = random.choice(
        [
            (f"*/{random.randint(1, 9)}", _weekday(random)),
            (_day(random), f"*/{random.randint(1, 4)}"),
            (f"*/{random.randint(1, 9)}", f"*/{random.randint(1, 4)}"),
        ]
    )
    return f"{_minute(random)} {_hour(random)} {day} * {weekday}"


def _free(random: Random) -> str:
    times = random.choice(
        [
            f"*/{random.randint(2, 59)} *",
            f"*/{random.randint(2, 45)} {_hour(random)}",
            f"{_minute(random)} *",
            f"{_minute(random)} */{random.randint(2, 23)}",
            f"* {random.randint(0, 4)}",
            f"*,{random.randint(0, 59)} {random.randint(0, 3)}-{random.randint(3, 5)}",
            f"*/15,{random.randint(0, 59)} 0-5",
            f"{_minute(random)} */5,{random.randint(0, 4)}",
        ]
    )
    day = random.choice(["*", "*", _day(random)])
    weekday = random.choice(["*", "*", _weekday(random)])
    return f"{times} {day} * {weekday}"


def _with_seconds(random: Random) -> str:
    second = random.choice(
        ["*/10", "*/7", "0", "30", "5-50/15", "59", "0,59", "10/20", str(random.randint(0, 59))]
    )
    kind = random.choice([_fixed, _fixed, _fixed_by_weekday, _fixed_by_day, _free])
    return f"{second} {kind(random)}"


def _with_hashes(random: Random) -> str:
    low, high = random.randint(0, 2), random.randint(3, 5)
    minute = random.choice(
        ["H", "H", "H(0-29)", "H/15", "H/25", "H(5-55)/10", f"0,H({low}0-{high}9)"]
    )
    hour = random.choice([f"H({low}-{high})", "H(0-3)", f"{high}", "H/5", "H/2", "*", "*/3"])
    day, weekday = random.choice(
        [
            ("*", "*"),
            ("*", "H"),
            ("H", "*"),
            ("H/3", "*"),
            ("*", "H/2"),
            ("H(1-9),L", "0"),
            ("*/2", "H"),
        ]
    )
    month = random.choice(["*", "*", "*", "H/2", "H(3-4)"])
    second = random.choice(["", "", "", "H "])
    return f"{second}{minute} {hour} {day} {month} {weekday}"


KINDS: tuple[Callable[[Random], str], ...] = (
    _fixed,
    _fixed_by_weekday,
    _fixed_by_day,
    _fixed_by_either,
    _fixed_by_both,
    _free,
    _fixed,
    _free,
    _with_seconds,
    _with_hashes,
)


def _minute(random: Random) -> str:
    return _several(random, 0, 59, [0, 1, 15, 30, 45, 59])


def _hour(random: Random) -> str:
    return _several(random, 0, 23, [0, 1, 2, 3, 23])


def _several(random: Random, low: int, high: int, favoured: list[int]) -> str:
    """Write a value, a list, a range or steps; never with a star in front."""

    def one() -> int:
        return random.choice(favoured) if random.random() < 0.7 else random.randint(low, high)

    start, end = sorted((one(), one()))
    step = random.randint(1, max(1, (high - low) // 3))
    return random.choice(
        [
            f"{start}",
            f"{start}",
            f"{start},{one()}",
            f"{one()},{one()},{one()}",
            f"{start}-{end}",
            f"{start}-{end}/{min(step, max(1, end - start))}",
            f"{start}/{step}",
            f"{start}-{end},{one()}",
        ]
    )


def _day(random: Random) -> str:
    items = [
        lambda: str(random.randint(1, 31)),
        lambda: f"{random.randint(1, 15)}-{random.randint(16, 31)}",
        lambda: f"{random.randint(1, 5)}-{random.randint(25, 31)}/{random.randint(2, 9)}",
        lambda: f"{random.randint(1, 28)}/{random.randint(2, 10)}",
        lambda: "L",
        lambda: f"L-{random.randint(1, 30)}",
        lambda: "LW",
        lambda: f"{random.randint(1, 31)}W",
    ]
    return ",".join(random.choice(items)() for _ in range(random.choice([1, 1, 2, 3])))


def _month(random: Random) -> str:
    return random.choice(
        ["*", "*", "*", "*/2", "3-4,9-11", "MAR-MAY,Sep-nov", "mar,OCT", "1/3", MONTHS[3], "1-12/2"]
    )


def _weekday(random: Random) -> str:
    items = [
        lambda: random.choice([*WEEKDAYS, "sun", "Fri", "0", "7", "1", "5", "6"]),
        lambda: random.choice(
            ["FRI-SUN", "5-7", "MON-FRI", "sat-sun", "0-3", "1-5/2", "4-7", "0-7/3", "1/2", "5/2"]
        ),
        lambda: f"{random.randint(0, 7)}#{random.randint(1, 5)}",
        lambda: f"{random.choice(WEEKDAYS)}#{random.randint(1, 4)}",
        lambda: f"{random.randint(0, 7)}L",
        lambda: f"{random.choice(WEEKDAYS)}L",
        lambda: random.choice(["SUN", "0", "7", "SUN#2", "SUNL", "7L", "0#1", "FRIL"]),
    ]
    return ",".join(random.choice(items)() for _ in range(random.choice([1, 1, 1, 2, 3])))
