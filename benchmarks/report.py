"""The numbers as a file and as a table, beside what they should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

Result = Mapping[str, Any]

BUSY = 0.1
"""Above this share of all cores other programs are worth a remark."""

FLOOD_MIB = 64
"""Megabytes of memory that a handler may cost its process by printing without end."""
FLOOD_RATIO = 5
"""How much later other jobs may start while a handler prints in a process of its own."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table. Without a budget there is nothing to pass."""

    what: str
    found: str
    value: float | None = None
    budget: float | None = None
    unit: str = ""
    aim: float | None = None

    @property
    def mark(self) -> str:
        if self.budget is None or self.value is None:
            return ""
        return "ok" if self.value <= self.budget else "MISSED"

    @property
    def wanted(self) -> str:
        if self.budget is None:
            return ""
        aim = "" if self.aim is None else f" (aim {self.aim:g})"
        return f"≤ {self.budget:.4g}{self.unit}{aim}"


def document(
    engine: str, *, quick: bool, results: Result, cores: int, others: float | None = None
) -> dict[str, Any]:
    """Everything that was measured, under the names that other tools read."""
    found: dict[str, Any] = {"engine": engine, "quick": quick, "cores": cores, **results}
    if others is not None:
        found["others_cpu_share"] = round(others, 3)
    if "latency" in results:
        found["fsync_p99_ms"] = results["latency"]["fsync_p99_ms"]
    return found


@dataclass(frozen=True, slots=True)
class Budgets:
    """What an engine may cost: microseconds of CPU per job, and how a drain may grow."""

    bulk: float
    drain: float
    drain_aim: float
    many_to_one: float
    """Drain with very many tenants, against one."""
    isolated: float | None = None
    latency_ms: tuple[float, float] | None = None
    """Median and 99th percentile of an idle worker's latency; None: as the disk has it."""
    latency_runs: int = 1
    """How often that is measured; the best run counts."""
    first_ms: float | None = None
    """How late the first of very many jobs may start that fall due at one instant."""
    memory: float | None = None
    """Bytes of a waiting job."""


BUDGETS = {
    "sqlite": Budgets(bulk=40, drain=200, drain_aim=150, many_to_one=1.5, isolated=400),
    "postgres": Budgets(bulk=50, drain=150, drain_aim=120, many_to_one=2),
    "redis": Budgets(
        bulk=30,
        drain=90,
        drain_aim=60,
        many_to_one=1.5,
        latency_ms=(1.5, 3.0),
        latency_runs=3,
        first_ms=50,
        memory=600,
    ),
}


def lines(found: Result) -> list[Line]:
    """One line per promise, in the order of measuring."""
    made: list[Line] = []
    budgets = BUDGETS[found["engine"]]
    for part, title, budget, aim in (
        ("submit_bulk", "submit, batches of 1,000", budgets.bulk, None),
        ("submit_single", "submit, one by one", None, None),
        ("claim", "claim, 100 at a time, no worker", None, None),
        ("settle", "settle, 100 at a time, no worker", None, None),
        ("drain", "drain, 2 children", budgets.drain, budgets.drain_aim),
        ("isolated", "drain, jobs in processes of their own", budgets.isolated, None),
        ("said", "drain, jobs that log and report progress", None, None),
        ("once", "drain, jobs that may start only once", None, None),
    ):
        if part in found:
            made += _cost(title, found[part], budget, aim)
    for part, make in (
        ("latency", _latency),
        ("delayed", _delayed),
        ("growth", _growth),
        ("tenants", _tenants),
        ("memory", _memory),
        ("flood", _flood),
    ):
        if part in found:
            made += make(found)
    return made


def table(made: list[Line]) -> str:
    """Lay the lines out in columns."""
    rows = [(line.what, line.found, line.wanted, line.mark) for line in made]
    rows.insert(0, ("measured", "found", "budget", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    rows.insert(1, ("─" * widths[0], "─" * widths[1], "─" * widths[2], "─" * widths[3]))
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column == 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def remark(found: Result) -> str:
    """Say whether the machine had other things to do."""
    others = found.get("others_cpu_share", 0.0)
    if others < BUSY:
        return ""
    return (
        f"note: other programs used {others:.0%} of this machine's CPU meanwhile; "
        "latencies and jobs/s suffer most"
    )


_COSTS = (
    "submit_bulk",
    "submit_single",
    "claim",
    "settle",
    "drain",
    "isolated",
    "said",
    "once",
)


def profile(found: Result) -> str:
    """Where the CPU of a job goes, process by process."""
    shown: list[str] = []
    for part in _COSTS:
        if part in found:
            roles = cast("Mapping[str, float]", found[part]["cpu_us_by_role"])
            shown.append(f"{part}: " + ", ".join(f"{k} {v:.4g} µs" for k, v in roles.items()))
            loops = found[part].get("cpu_us_children_loops")
            if loops is not None:
                rest = roles["children"] - loops
                shown.append(f"  of the children: event loop {loops:.4g} µs, threads {rest:.4g} µs")
    return "\n".join(shown)


def _cost(title: str, part: Result, budget: float | None, aim: float | None) -> list[Line]:
    cpu = part["cpu_us"]
    return [
        Line(title, f"{part['jobs_per_s']:,.0f} jobs/s"),
        Line("  CPU per job, all processes", f"{cpu:.4g} µs", cpu, budget, " µs", aim),
    ]


def latency_budget_ms(fsync_p99_ms: float) -> float:
    """What the 99th percentile of an idle worker's latency may be on this disk."""
    return 5.0 + 2 * fsync_p99_ms


def _latency(found: Result) -> list[Line]:
    part, sync = found["latency"], found["latency"]["fsync_p99_ms"]
    p50, p99 = BUDGETS[found["engine"]].latency_ms or (None, latency_budget_ms(sync))
    return [
        Line("latency, idle worker, p50", f"{part['p50_ms']:.3g} ms", part["p50_ms"], p50, " ms"),
        Line("  p95", f"{part['p95_ms']:.3g} ms"),
        Line("  p99", f"{part['p99_ms']:.3g} ms", part["p99_ms"], p99, " ms"),
        Line("  fdatasync of this disk, p99", f"{sync:.3g} ms"),
    ]


def _delayed(found: Result) -> list[Line]:
    part, budget = found["delayed"], BUDGETS[found["engine"]].first_ms
    first = part["first_ms"]
    return [
        Line(f"{part['jobs']:,} jobs due at once, early", f"{part['early']}", part["early"], 0),
        Line("  first late by", f"{first:.4g} ms", first, budget, " ms"),
        Line("  p99 late by", f"{part['p99_ms']:,.0f} ms"),
    ]


def _growth(found: Result) -> list[Line]:
    part = found["growth"]
    small, large = part["sizes"]
    title = f"drain with {large:,} waiting / {small:,}{_short(found)}"
    return [Line(title, f"{part['drain_ratio']:.3g} ×", part["drain_ratio"], 1.5)]


def _tenants(found: Result) -> list[Line]:
    part = found["tenants"]
    one, some, many = part["tenants"]
    title = f"drain with {many:,} tenants / {{:,}}{_short(found)}"
    return [
        Line(title.format(some), f"{part['drain_ratio']:.3g} ×", part["drain_ratio"], 1.3),
        Line(
            title.format(one),
            f"{part['ratio_to_one']:.3g} ×",
            part["ratio_to_one"],
            BUDGETS[found["engine"]].many_to_one,
        ),
    ]


def _memory(found: Result) -> list[Line]:
    used, budget = found["memory"]["bytes_per_job"], BUDGETS[found["engine"]].memory
    return [Line("a waiting job takes", f"{used:,.0f} bytes", used, budget, " bytes")]


def _flood(found: Result) -> list[Line]:
    part = found["flood"]
    beside, alone = part["beside"], part["alone"]
    title = f"{part['mib']:,} MiB printed in {{}}"
    child, slot = beside["child_mib"], alone["slot_mib"]
    return [
        Line(title.format("a thread"), f"{beside['seconds']:.3g} s"),
        Line("  memory of the child grew by", f"{child:.3g} MiB", child, FLOOD_MIB, " MiB"),
        Line("  p99 latency of others / before", f"{beside['p99_ratio']:.3g} ×"),
        Line(title.format("a process of its own"), f"{alone['seconds']:.3g} s"),
        Line("  memory of that process grew by", f"{slot:.3g} MiB", slot, FLOOD_MIB, " MiB"),
        Line(
            "  memory of the child grew by",
            f"{alone['child_mib']:.3g} MiB",
            alone["child_mib"],
            FLOOD_MIB,
            " MiB",
        ),
        Line(
            "  p99 latency of others / before",
            f"{alone['p99_ratio']:.3g} ×",
            alone["p99_ratio"],
            FLOOD_RATIO,
        ),
        Line("  kept of each log", f"{max(beside['log_kib'], alone['log_kib']):.4g} KiB"),
    ]


def _short(found: Result) -> str:
    return " (quick)" if found["quick"] else ""
