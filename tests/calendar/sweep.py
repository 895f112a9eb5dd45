"""Every setting of clocks since 2010, and hundreds of expressions, held against the oracle."""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from random import Random

from tests.calendar import expressions, zones
from tests.calendar.comparison import POLICIES, Case, Difference, compare
from tests.calendar.oracle import MINUTE, SECOND, Change, Plan, Window, fires_by_date, read
from tests.calendar.subject import resolved

REACH = timedelta(hours=36)
REACH_BY_SECONDS = timedelta(hours=2)
EACH_SIZE = 8
"""Of clocks set by an unusual amount (half an hour, two, three, a day), so many are taken."""
LEAP_DAY_LEFT_OUT = datetime(2100, 2, 28, 12, tzinfo=UTC)
FAR_YEARS = (2038, 2040, 2099, 2100, 2101, 2400, 9999)

PARTS = {
    "tables": "every change of each table since 2010, with expressions aimed at it",
    "expressions": "every drawn expression around a choice of those changes",
    "dates": "every drawn expression in UTC over the years around 2100",
    "other years": "changes before 2010, and by rule long after 2037",
    "odd changes": "offsets with seconds and jumps of hours and days, second by second",
}


@dataclass(frozen=True, slots=True)
class Task:
    """A piece of work for one process: a place in time and what is asked there."""

    part: str
    seed: int
    zone: str
    number: int
    """Where it stands in its part; the policies take turns by it."""
    change: Change | None = None


@dataclass(slots=True)
class Result:
    """What came of some tasks."""

    cases: int = 0
    instants: int = 0
    changes: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])

    def add(self, other: Result) -> None:
        """Count another's findings in."""
        self.cases += other.cases
        self.instants += other.instants
        self.changes += other.changes
        self.differences += other.differences


def tasks(seed: int, part: str, *, count: int | None = None) -> list[Task]:
    """All work of a part in order, or a seeded choice of it."""
    random = Random(f"{part} {seed}")
    if part == "dates":
        every = [Task(part, seed, "UTC", number) for number in range(len(expressions.drawn(seed)))]
    else:
        places = {
            "tables": _recent,
            "expressions": _chosen,
            "other years": _other_years,
            "odd changes": _odd,
        }[part](random)
        every = [
            Task(part, seed, zone, number, change) for number, (zone, change) in enumerate(places)
        ]
    return every if count is None or count >= len(every) else random.sample(every, count)


def _recent(_: Random) -> list[tuple[str, Change]]:
    return [(name, change) for name in zones.representatives() for change in zones.changes(name)]


def _chosen(random: Random, count: int = 220) -> list[tuple[str, Change]]:
    """Some of each size, as many gaps as overlaps come."""
    every = _recent(random)
    random.shuffle(every)
    by_size: dict[timedelta, list[tuple[str, Change]]] = {}
    for place in every:
        by_size.setdefault(place[1].size, []).append(place)
    chosen = [place for group in by_size.values() for place in group[:EACH_SIZE]]
    others = [place for group in by_size.values() for place in group[EACH_SIZE:]]
    return chosen + random.sample(others, count - len(chosen))


def _other_years(random: Random) -> list[tuple[str, Change]]:
    old = [
        place
        for place in _listed()
        if place[1].instant < zones.SINCE
        and not place[1].instant.second
        and not _has_seconds(place[1])
    ]
    still = [name for name in zones.representatives() if zones.changes_in(name, 2037)]
    years = [*FAR_YEARS, *(random.randint(2041, 9998) for _ in range(3))]
    far = [
        (name, change)
        for name in still
        for year in random.sample(years, 4)
        for change in zones.changes_in(name, year)
    ]
    return random.sample(old, min(300, len(old))) + far


def _odd(random: Random) -> list[tuple[str, Change]]:
    large = [place for place in _listed() if abs(place[1].size) > timedelta(hours=3)]
    uneven = [place for place in _listed() if _has_seconds(place[1]) and place not in large]
    return large + random.sample(uneven, min(60, len(uneven)))


@functools.cache
def _listed() -> list[tuple[str, Change]]:
    """Every change that a file lists, once."""
    found: dict[Change, str] = {}
    for name in zones.names():
        for change in zones.listed(name):
            found.setdefault(change, name)
    return [(name, change) for change, name in found.items()]


def _has_seconds(change: Change) -> bool:
    return bool(change.before % MINUTE or change.after % MINUTE)


def run(
    work: Sequence[Task], jobs: int, progress: Callable[[int, int], None] = lambda done, all_: None
) -> Result:
    """Do all tasks, in this process or in several; the order of the findings is the same."""
    total = Result()
    if jobs == 1:
        for done, one in enumerate(map(do, work), 1):
            total.add(one)
            progress(done, len(work))
        return total
    with multiprocessing.Pool(jobs) as pool:
        for done, one in enumerate(pool.imap(do, work, chunksize=4), 1):
            total.add(one)
            progress(done, len(work))
    return total


def do(task: Task) -> Result:
    """Do one task."""
    result = Result(changes=task.change is not None)
    if task.change is None:
        _over_years(task, result)
        return result
    by_seconds = task.part == "odd changes"
    if task.part == "expressions":
        asked = expressions.drawn(task.seed)
    else:
        asked = (*expressions.around(task.change), *expressions.CHOSEN)
    if by_seconds:
        drawn = [one for one in expressions.drawn(task.seed) if len(one.split()) == 6]
        asked = (*asked, *Random(str(task)).sample(drawn, 4))
    plain = [
        one for one in asked if not by_seconds and plan(one, _hash_seed(task)).on_whole_minutes
    ]
    seconds = [one for one in asked if one not in plain]
    _around(task, task.change, MINUTE, plain, result)
    _around(task, task.change, SECOND, seconds, result)
    return result


def _hash_seed(task: Task) -> str:
    return f"job {task.seed}"


@functools.lru_cache(maxsize=2000)
def plan(expression: str, hash_seed: str) -> Plan:
    """Read an expression. What its hashes come to is the calendar's affair, so that is asked."""
    hashed = expressions.hashed(expression)
    return read(resolved(expression, hash_seed) if hashed else expression)


def _around(
    task: Task, change: Change, step: timedelta, asked: Sequence[str], result: Result
) -> None:
    """Ask each expression about the time around one setting of the clocks."""
    if not asked:
        return
    reach = REACH if step == MINUTE else REACH_BY_SECONDS
    # Not all questions begin on a whole minute.
    odd = timedelta(microseconds=Random(str(task)).choice([0, 1, 59_999_999, 31_500_000]))
    after, until = change.instant - reach - odd, change.instant + reach
    window = _window(task.zone, after, until, step, change.size)
    if change not in window.changes:
        raise AssertionError(f"the walk does not find {change} in {task.zone}")
    for place, expression in enumerate(asked):
        gap, overlap = POLICIES[(task.seed + task.number + place) % len(POLICIES)]
        case = Case(
            expression=expression,
            zone=task.zone,
            gap=gap,
            overlap=overlap,
            after=after,
            until=until,
            by_seconds=step == SECOND,
            seed=_hash_seed(task) if expressions.hashed(expression) else "",
        )
        fires = window.fires(plan(expression, _hash_seed(task)), gap, overlap)
        _ask(case, fires, [change.instant], result)


def _window(
    zone: str, after: datetime, until: datetime, step: timedelta, size: timedelta
) -> Window:
    least = timedelta(hours=26 if step == MINUTE else 4)
    margin = max(least, abs(size) + timedelta(hours=1))
    return Window(zones.zone(zone), after, until, step=step, margin=margin)


def _over_years(task: Task, result: Result) -> None:
    """Ask one expression in UTC about the years around 2100, which has no leap day."""
    expression = expressions.drawn(task.seed)[task.number]
    wanted = plan(expression, _hash_seed(task))
    often = len(wanted.hours) * len(wanted.minutes) * len(wanted.seconds) > 6
    first, last = (
        (date(2100, 2, 20), date(2100, 3, 10)) if often else (date(2095, 12, 1), date(2105, 1, 31))
    )
    gap, overlap = POLICIES[(task.seed + task.number) % len(POLICIES)]
    case = Case(
        expression=expression,
        zone="UTC",
        gap=gap,
        overlap=overlap,
        after=datetime(first.year, first.month, first.day, tzinfo=UTC) - SECOND,
        until=datetime(last.year, last.month, last.day, 23, 59, 59, tzinfo=UTC),
        seed=_hash_seed(task) if expressions.hashed(expression) else "",
    )
    _ask(case, fires_by_date(wanted, first, last), [LEAP_DAY_LEFT_OUT], result)


def _ask(
    case: Case, expected: Sequence[datetime], moments: Sequence[datetime], result: Result
) -> None:
    result.cases += 1
    result.instants += len(expected)
    result.differences += compare(case, expected, moments)


def again(case: Case) -> list[Difference]:
    """Ask a single case once more."""
    step = SECOND if case.by_seconds else MINUTE
    window = _window(case.zone, case.after, case.until, step, timedelta(hours=26))
    expected = window.fires(plan(case.expression, case.seed), case.gap, case.overlap)
    return compare(
        case, expected, [one.instant for one in window.changes if one.instant > case.after]
    )
