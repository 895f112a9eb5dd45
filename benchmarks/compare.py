"""`python -m benchmarks.compare BEFORE.json AFTER.json`: two runs beside each other."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

NAMES = (
    "submit_bulk.jobs_per_s",
    "submit_bulk.cpu_us",
    "submit_single.jobs_per_s",
    "submit_single.cpu_us",
    "claim.cpu_us",
    "settle.cpu_us",
    "drain.jobs_per_s",
    "drain.cpu_us",
    "isolated.jobs_per_s",
    "isolated.cpu_us",
    "said.jobs_per_s",
    "said.cpu_us",
    "once.jobs_per_s",
    "once.cpu_us",
    "latency.p50_ms",
    "latency.p95_ms",
    "latency.p99_ms",
    "fsync_p99_ms",
    "delayed.first_ms",
    "delayed.p99_ms",
    "burst.first_ms",
    "burst.urgent_p99_ms",
    "pinned.p99_ratio",
    "floor.share",
    "growth.drain_ratio",
    "tenants.drain_ratio",
    "tenants.ratio_to_one",
    "memory.bytes_per_job",
    "slow.share",
    "slow.slowest_ms",
    "idle.core_share",
    "idle.woken_most",
    "leases.core_share",
    "flood.beside.seconds",
    "flood.beside.child_mib",
    "flood.beside.p99_ratio",
    "flood.alone.seconds",
    "flood.alone.slot_mib",
    "flood.alone.p99_ratio",
    "schedules_put.put.cpu_us",
    "schedules_rest.tick_ratio",
    "schedules_rest.idle_ratio",
    "schedules_rest.coordinator_mb",
    "schedules_due.fired_s",
    "schedules_due.critical_p99_ms",
    "schedules_missed.p99_ms",
)


def rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Every number that both runs have."""
    for name in NAMES:
        pair = _look_up(before, name), _look_up(after, name)
        if pair[0] is not None and pair[1] is not None:
            yield name, pair[0], pair[1]


def _look_up(found: Mapping[str, Any], name: str) -> float | None:
    value: object = found
    for part in name.split("."):
        value = cast("Mapping[str, object]", value).get(part) if isinstance(value, dict) else None
    return float(value) if isinstance(value, (int, float)) else None


def main(arguments: list[str]) -> int:
    """Print before, after and their ratio."""
    if len(arguments) != 2:
        print(f"usage: {(__doc__ or '').split('`')[1]}", file=sys.stderr)
        return 2
    before, after = (json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments)
    for key in ("engine", "quick", "cores"):
        if before.get(key) != after.get(key):
            print(f"note: `{key}` differs: {before.get(key)} and {after.get(key)}", file=sys.stderr)
    print(f"{'':26}{'before':>12}{'after':>12}{'ratio':>9}")
    for name, old, new in rows(before, after):
        ratio = f"{new / old:.2f} ×" if old else "–"
        print(f"{name:26}{old:>12,.4g}{new:>12,.4g}{ratio:>9}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
