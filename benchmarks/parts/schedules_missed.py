"""How long it takes to resolve what a schedule has missed while nobody was there to fire it.

No store is asked: this is the plan alone, from the text of the schedule to the runs and skips.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.figures import percentile, rounded
from benchmarks.report import Line
from benchmarks.scale import Bench
from lamplighter.coordinator.plan import plan
from lamplighter.model.recurring import Spec, Template
from lamplighter.model.schedule import Cron, tzdata_version
from lamplighter.port import specs
from lamplighter.port.schedules import DueSchedule, Firing, ScheduleRecord

MISSED_MS = 10
"""What a year of missed minutes may take."""

_MINUTE_MS = 60_000
_YEAR_MS = 365 * 24 * 60 * _MINUTE_MS
_NOW_MS = 1_800_000_000_000


async def missed(bench: Bench) -> dict[str, object]:
    """Plan schedules of every minute, each of which was looked at a year ago."""
    text = specs.to_text(
        Spec(
            calendar=Cron("* * * * *", timezone="Europe/Berlin"),
            template=Template(type="count", args=b"{}"),
        )
    )
    found = [_once_ms(f"minutes/{number}", text) for number in range(bench.scale.schedules_missed)]
    return {
        "p50_ms": rounded(percentile(found, 50)),
        "p99_ms": rounded(percentile(found, 99)),
        "schedules": len(found),
    }


def _once_ms(name: str, text: str) -> float:
    """Plan one that nobody has read before; by CPU, as other programs have no part in it."""
    record = ScheduleRecord(
        id=name,
        spec=text,
        tenant="default",
        type="count",
        version=1,
        cursor_ms=_NOW_MS - _YEAR_MS,
        due_ms=_NOW_MS - _YEAR_MS + _MINUTE_MS,
        created_at_ms=_NOW_MS - _YEAR_MS,
        changed_at_ms=_NOW_MS - _YEAR_MS,
    )
    began = time.process_time_ns()
    firing = plan(
        DueSchedule(record=record), specs.from_text(text, name), _NOW_MS, tzdata_version()
    )
    spent = (time.process_time_ns() - began) / 1e6
    check(firing)
    return spent


def check(firing: Firing) -> None:
    """Refuse a plan that leaves anything of the year unresolved."""
    runs = [run.due_ms for run in firing.runs]
    if runs != [_NOW_MS] or len(firing.skips) != 1 or firing.due_ms != _NOW_MS + _MINUTE_MS:
        raise BenchmarkError(f"a year of minutes became {len(runs)} runs, next {firing.due_ms}")


def lines(part: Mapping[str, Any]) -> list[Line]:
    """Give what is shown of it."""
    p99 = part["p99_ms"]
    return [
        Line("a year of missed minutes resolved, p50", f"{part['p50_ms']:.3g} ms"),
        Line("  p99", f"{p99:.3g} ms", p99, MISSED_MS, " ms"),
    ]
