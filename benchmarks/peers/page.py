"""The figures as a table, and as sections of docs/benchmarks.md between marks."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import Cost, percentile
from benchmarks.pairs import Pair, median_ratio
from benchmarks.peers.facts import PROMISES, Facts

BEGIN = "<!-- peers on {}: begin; written by `make bench-peers WRITE=1` -->"
END = "<!-- peers on {}: end -->"
PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "benchmarks.md"

BEST_ON_REDIS = 2.5
"""How many times cheaper a job of ours on Redis must be than one of the best peer there."""
BEST_ANYWHERE = 1.5
"""And than one of the best peer on any store."""


@dataclass(slots=True)
class Found:
    """What was measured of one queue, round by round."""

    facts: Facts
    bulk: list[Cost] = field(default_factory=list[Cost])
    single: list[Cost] = field(default_factory=list[Cost])
    drains: list[Cost] = field(default_factory=list[Cost])
    latency: list[float] = field(default_factory=list[float])
    due: dict[str, Any] = field(default_factory=dict[str, Any])
    memory: float | None = None
    failures: list[str] = field(default_factory=list[str])
    """What could not be measured, and why."""

    @property
    def cpu_us(self) -> float | None:
        """CPU of draining a job; None: not measured."""
        return median(cost.cpu_us() for cost in self.drains) if self.drains else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run on one store: ours first, then the peers; and the pairs of ours with one of them."""

    store: str
    found: Sequence[Found]
    pairs: Sequence[Pair]
    pair_with: str
    server: str
    others: float | None = None
    absent: Sequence[str] = ()
    """Who is not there, and why."""


@dataclass(frozen=True, slots=True)
class Must:
    """Something that has to be so."""

    told: str
    kept: bool

    def __str__(self) -> str:
        return f"{self.told}: {'ok' if self.kept else 'MISSED'}"


def rows(found: Sequence[Found]) -> list[list[str]]:
    """Give the table: a line per measurement, a column per queue."""
    made = [["", *(one.facts.title for one in found)]]
    for title, costs in (
        ("submit by 1,000", [one.bulk for one in found]),
        ("submit one by one", [one.single for one in found]),
        ("drain, 2 processes", [one.drains for one in found]),
    ):
        made.append([f"{title}, jobs/s", *(_speed(of) for of in costs)])
        made.append([f"{title}, CPU µs per job", *(_cpu(of) for of in costs)])
    for percent in (50, 95, 99):
        cells = [_ms(one.latency, percent) for one in found]
        made.append([f"submit to start, idle, p{percent}, ms", *cells])
    made.append(["bytes per waiting job", *(_bytes(one.memory) for one in found)])
    for title, name, form in (
        ("jobs due at one instant", "jobs", ",.0f"),
        ("  early", "early", ",.0f"),
        ("  first late by, ms", "first_ms", ",.0f"),
        ("  p50 late by, ms", "p50_ms", ",.0f"),
        ("  last late by, ms", "last_ms", ",.0f"),
    ):
        made.append([title, *(f"{one.due[name]:{form}}" if one.due else "–" for one in found)])
    return made


def table(made: Sequence[Sequence[str]]) -> str:
    """Lay the rows out for a terminal."""
    widths = [max(len(row[column]) for row in made) for column in range(len(made[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in made
    )


def split(found: Sequence[Found]) -> str:
    """Say where the CPU of draining went, and what could not be measured."""
    lines: list[str] = []
    for one in found:
        parts = {role: median(cost.split()[role] for cost in one.drains) for role in _roles(one)}
        told = ", ".join(f"{role} {us:.4g} µs" for role, us in parts.items())
        lines.append(f"drain, {one.facts.name}: {told or 'not measured'}")
        lines += [f"{one.facts.name}, {failure}" for failure in one.failures]
    return "\n".join(lines)


def musts(runs: Sequence[Run]) -> list[Must]:
    """Say what has to be so, as far as it was measured."""
    made = [_paired(run) for run in runs if run.pairs]
    on_redis = [run for run in runs if run.store == "redis"]
    if not on_redis or on_redis[0].found[0].cpu_us is None:
        return made
    ours = on_redis[0].found[0].cpu_us
    everybody = [(run.store, one) for run in runs for one in run.found[1:]]
    for least, what, peers in (
        (BEST_ON_REDIS, "on Redis", [one for store, one in everybody if store == "redis"]),
        (BEST_ANYWHERE, "on any store", [one for _, one in everybody]),
    ):
        if best := _best(peers):
            made.append(_cheaper(ours, best, what, least))
    return made


def section(run: Run, told: Sequence[Must]) -> str:
    """Write what belongs between the marks of a store; ``told`` is what has to be so there."""
    facts = [one.facts for one in run.found]
    busy = "" if run.others is None else f" Other programs used {run.others:.0%} of the machine."
    promised = [["", *(one.name for one in facts)]]
    promised += [[what, *(one.promises[what] for one in facts)] for what in PROMISES]
    where = f"{time.strftime('%Y-%m-%d')}, {machine()}, Python {platform.python_version()}"
    drained = [one for one in run.found if one.drains]
    jobs = " · ".join(
        f"{one.facts.name} {one.drains[0].jobs:,} ({len(one.drains)} times)" for one in drained
    )
    missing = [f"{one.facts.name}, {failure}" for one in run.found for failure in one.failures]
    return "\n".join(
        [
            BEGIN.format(run.store),
            "",
            f"{where}, {run.server}.{busy}",
            "",
            *_markdown(_turned(rows(run.found))),
            "",
            f"Jobs of one drain: {jobs}.",
            *_pairs(run),
            *(f"- {must}" for must in told),
            *(f"- {line}" for line in (*run.absent, *missing)),
            "",
            "Settings:",
            "",
            *(f"- {one.title}: {one.settings}." for one in facts),
            "",
            "What is promised in return, as read from each one's documentation and source:",
            "",
            *_markdown(_turned(promised)),
            "",
            END.format(run.store),
        ]
    )


def write(text: str, store: str, page: Path = PAGE) -> None:
    """Put the section of a store in the place of the old one."""
    old, marks = page.read_text(encoding="utf-8"), (BEGIN.format(store), END.format(store))
    before, begin, rest = old.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"{page} has no place for the peers: add the lines {' and '.join(marks)}")
    page.write_text(before + text + after, encoding="utf-8")


def machine() -> str:
    """Say what this machine is."""
    model = platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{os.cpu_count()} cores ({model})"


def _paired(run: Run) -> Must:
    ratios, middle = [pair.ratio for pair in run.pairs], median_ratio(run.pairs)
    return Must(
        f"CPU per job of draining, ours to {run.pair_with}, median of {len(ratios)} alternating "
        f"pairs: {middle:.3f} × (from {min(ratios):.3f} to {max(ratios):.3f}), less than 1",
        middle < 1,
    )


def _cheaper(ours: float, best: Found, what: str, least: float) -> Must:
    theirs = best.cpu_us or 0.0
    return Must(
        f"CPU per job of draining, {best.facts.name}, the best peer {what}, to ours on Redis: "
        f"{theirs:.1f} / {ours:.1f} µs = {theirs / ours:.2f} ×, at least {least:g}",
        theirs / ours >= least,
    )


def _best(peers: Sequence[Found]) -> Found | None:
    measured = [one for one in peers if one.cpu_us is not None]
    return min(measured, key=lambda one: one.cpu_us or 0.0, default=None)


def _pairs(run: Run) -> list[str]:
    if not run.pairs:
        return [""]
    told = ", ".join(f"{pair.here:.1f} / {pair.base:.1f}" for pair in run.pairs)
    return [f"The pairs, ours / {run.pair_with}, in CPU µs per job: {told}.", ""]


def _turned(made: Sequence[Sequence[str]]) -> list[list[str]]:
    """Give a line per queue: on a page there is more room below than beside."""
    return [[cell.strip() for cell in column] for column in zip(*made, strict=True)]


def _markdown(made: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(row) + " |" for row in made]
    lines.insert(1, "|" + "---|" * len(made[0]))
    return lines


def _speed(costs: Sequence[Cost]) -> str:
    return f"{median(cost.jobs_per_s for cost in costs):,.0f}" if costs else "–"


def _cpu(costs: Sequence[Cost]) -> str:
    if not costs:
        return "–"
    each = [cost.cpu_us() for cost in costs]
    if len(each) == 1:
        return f"{each[0]:.1f}"
    return f"{median(each):.1f} ({min(each):.1f}–{max(each):.1f})"


def _ms(samples: Sequence[float], percent: float) -> str:
    return f"{percentile(samples, percent):.2f}" if samples else "–"


def _bytes(found: float | None) -> str:
    return "–" if found is None else f"{found:,.0f}"


def _roles(one: Found) -> list[str]:
    return list(one.drains[0].cpu_ns) if one.drains else []
