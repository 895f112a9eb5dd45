"""The figures as a table, and as a section of docs/benchmarks.md between two marks."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.figures import Cost, percentile
from benchmarks.pairs import Pair, median_ratio
from benchmarks.peers.facts import PROMISES, Facts

BEGIN = "<!-- peers: begin; written by `make bench-peers WRITE=1` -->"
END = "<!-- peers: end -->"
PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "benchmarks.md"


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured of one queue, round by round."""

    facts: Facts
    bulk: list[Cost] = field(default_factory=list[Cost])
    single: list[Cost] = field(default_factory=list[Cost])
    drains: list[Cost] = field(default_factory=list[Cost])
    latency: list[float] = field(default_factory=list[float])


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: ours first, then the peers; and the pairs of ours with one of them."""

    found: Sequence[Found]
    pairs: Sequence[Pair]
    pair_with: str
    server: str
    others: float | None = None


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
    """Say where the CPU of draining went."""
    lines: list[str] = []
    for one in found:
        parts = {role: median(cost.split()[role] for cost in one.drains) for role in _roles(one)}
        told = ", ".join(f"{role} {us:.4g} µs" for role, us in parts.items())
        lines.append(f"drain, {one.facts.name}: {told}")
    return "\n".join(lines)


def verdict(run: Run) -> str:
    """Say what the pairs come to."""
    ratios = [pair.ratio for pair in run.pairs]
    middle = median_ratio(run.pairs)
    return (
        f"CPU per job of draining, ours to {run.pair_with}, median of {len(ratios)} alternating "
        f"pairs: {middle:.3f} × (from {min(ratios):.3f} to {max(ratios):.3f}), "
        f"{'ok' if middle < 1 else 'MISSED'}: less than 1"
    )


def section(run: Run) -> str:
    """Write what belongs between the marks."""
    measured = rows(run.found)
    facts = [one.facts for one in run.found]
    busy = "" if run.others is None else f" Other programs used {run.others:.0%} of the machine."
    promised = [["", *(one.name for one in facts)]]
    promised += [[what, *(one.promises[what] for one in facts)] for what in PROMISES]
    where = f"{time.strftime('%Y-%m-%d')}, {machine()}, Python {platform.python_version()}"
    jobs = " · ".join(f"{one.facts.name} {one.drains[0].jobs:,}" for one in run.found)
    pairs = ", ".join(f"{pair.here:.1f} / {pair.base:.1f}" for pair in run.pairs)
    return "\n".join(
        [
            BEGIN,
            "",
            f"{where}, {run.server}.{busy}",
            "",
            *_markdown(measured),
            "",
            f"Jobs of one drain: {jobs}. {verdict(run)}.",
            f"The pairs, ours / {run.pair_with}, in CPU µs per job: {pairs}.",
            "",
            "Settings:",
            "",
            *(f"- {one.title}: {one.settings}." for one in facts),
            "",
            "What is promised in return, as read from each one's documentation and source:",
            "",
            *_markdown(promised),
            "",
            END,
        ]
    )


def write(text: str, page: Path = PAGE) -> None:
    """Put the section in the place of the old one."""
    old = page.read_text(encoding="utf-8")
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for the peers: add the lines {BEGIN} and {END}")
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


def _roles(one: Found) -> list[str]:
    return list(one.drains[0].cpu_ns) if one.drains else []
