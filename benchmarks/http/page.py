"""The figures as tables, and what has to be so."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.http.load import Load
from benchmarks.peers.page import Must, machine, table

TIMES = 3.0
"""How many times more submissions per second than a peer's, at so many times less CPU for each."""
BATCHED = 30_000
"""Jobs per second in batches."""
HALF_MS = 20.0
"""The 99th percentile at half of the most, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A load that was taken, and what it cost."""

    load: Load
    jobs: int
    cpu_ns: dict[str, int]

    @property
    def per_s(self) -> float:
        return self.jobs / self.load.seconds

    @property
    def cpu_us(self) -> float:
        """CPU per job, of the service and of the store."""
        return sum(self.split().values())

    def split(self) -> dict[str, float]:
        return {role: ns / 1000 / self.jobs for role, ns in self.cpu_ns.items()}

    def __str__(self) -> str:
        parts = ", ".join(f"{role} {us:.1f}" for role, us in self.split().items())
        load = self.load
        return (
            f"{self.per_s:,.0f} jobs/s, {self.cpu_us:.1f} CPU µs per job ({parts}; the load itself "
            f"{load.cpu_s * 1e6 / self.jobs:.1f}), p50 {load.p50_ms:.2f} ms, p99 "
            f"{load.p99_ms:.2f} ms, longest {load.longest_ms:.1f} ms"
        )


@dataclass(slots=True)
class Found:
    """What was measured of one side."""

    name: str
    most: list[Taken] = field(default_factory=list[Taken])
    half: Taken | None = None

    @property
    def per_s(self) -> float:
        return median(each.per_s for each in self.most)

    @property
    def cpu_us(self) -> float:
        return median(each.cpu_us for each in self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: ours first, then the peers."""

    found: Sequence[Found]
    batches: Sequence[Taken]
    server: str
    others: float | None
    connections: int
    processes: int


def musts(run: Run) -> list[Must]:
    """Say what has to be so, as far as it was measured."""
    made: list[Must] = []
    ours, *peers = run.found
    for peer in peers:
        faster, cheaper = ours.per_s / peer.per_s, peer.cpu_us / ours.cpu_us
        made += (
            Must(
                f"submissions per second, ours to {peer.name}: {ours.per_s:,.0f} / "
                f"{peer.per_s:,.0f} = {faster:.2f} ×, at least {TIMES:g}",
                faster >= TIMES,
            ),
            Must(
                f"CPU per submission, {peer.name} to ours: {peer.cpu_us:.0f} / {ours.cpu_us:.0f} "
                f"µs = {cheaper:.2f} ×, at least {TIMES:g}",
                cheaper >= TIMES,
            ),
        )
    if run.batches:
        batched = median(each.per_s for each in run.batches)
        told = f"batches: {batched:,.0f} jobs/s, at least {BATCHED:,}"
        made.append(Must(told, batched >= BATCHED))
    if ours.half is not None:
        late = ours.half.load.p99_ms
        told = f"p99 at half of the most: {late:.2f} ms, at most {HALF_MS:g}"
        made.append(Must(told, late <= HALF_MS))
    return made


def written(run: Run) -> str:
    """Write the run down, in Markdown."""
    busy = "" if run.others is None else f" Other programs used {run.others:.0%} of the machine."
    where = f"{time.strftime('%Y-%m-%d')}, {machine()}, Python {platform.python_version()}"
    head = (
        f"{where}, {run.server}; {run.connections} connections, processes of each service: "
        f"{run.processes}.{busy}"
    )
    rounds = ((each.name, taken) for each in run.found for taken in each.most)
    return "\n".join(
        [
            head,
            "",
            table(_rows(run)),
            "",
            *(f"{name}: {taken}" for name, taken in rounds),
            *(f"batches: {taken}" for taken in run.batches),
            "",
            *(f"- {must}" for must in musts(run)),
        ]
    )


def _rows(run: Run) -> list[list[str]]:
    rows = [["|", "submissions/s |", "CPU µs each |", "p50 / p99 ms |", "at half: p50 / p99 ms |"]]
    rows.append(["|---|", *["---|"] * 4])
    for each in run.found:
        p50, p99 = (
            median(getattr(taken.load, name) for taken in each.most)
            for name in ("p50_ms", "p99_ms")
        )
        half = "–" if each.half is None else _latency(each.half.load)
        rows.append(
            [
                f"| {each.name} |",
                f"{each.per_s:,.0f} |",
                f"{each.cpu_us:.0f} |",
                f"{p50:.2f} / {p99:.2f} |",
                f"{half} |",
            ]
        )
    return rows


def _latency(load: Load) -> str:
    return f"{load.p50_ms:.2f} / {load.p99_ms:.2f}"
