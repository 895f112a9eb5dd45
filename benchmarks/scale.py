"""How much is measured: in full, or quickly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Numbers of jobs, rounds and tenants."""

    quick: bool
    bulk_jobs: int = 50_000
    bulk_rounds: int = 5
    single_jobs: int = 3_000
    port_jobs: int = 20_000
    port_rounds: int = 5
    drain_jobs: int = 30_000
    drain_rounds: int = 5
    isolated_jobs: int = 10_000
    isolated_rounds: int = 5
    said_jobs: int = 20_000
    said_rounds: int = 5
    once_jobs: int = 30_000
    once_rounds: int = 5
    latency_jobs: int = 1_000
    delayed_jobs: int = 100_000
    delayed_ahead: float = 20.0
    burst_jobs: int = 100_000
    burst_ahead: float = 20.0
    pinned_before: float = 30.0
    pinned_seconds: float = 180.0
    floor_seconds: int = 5
    growth_small: int = 1_000
    growth_large: int = 1_000_000
    growth_slice: int = 2_000
    growth_rounds: int = 15
    tenant_jobs: int = 50_000
    tenants: tuple[int, int, int] = (1, 1_000, 50_000)
    tenant_rounds: int = 10
    memory_jobs: int = 100_000
    flood_mib: int = 1_024
    flood_quiet_jobs: int = 500
    slow_jobs: int = 1_000_000
    slow_rounds: int = 600
    idle_workers: int = 2_000
    idle_seconds: float = 20.0
    idle_submits: int = 20
    leases: int = 50_000
    lease_seconds: float = 20.0
    shard_jobs: int = 20_000
    shard_rounds: int = 7
    instrumented_jobs: int = 20_000
    instrumented_pairs: int = 9
    schedules_few: int = 1_000
    schedules_many: int = 1_000_000
    schedules_ticks: int = 60
    schedules_seconds: float = 20.0
    schedules_due: int = 50_000
    schedules_ahead: float = 30.0
    schedules_put: int = 100_000
    schedules_missed: int = 200


FULL = Scale(quick=False)
QUICK = Scale(
    quick=True,
    bulk_jobs=10_000,
    bulk_rounds=3,
    single_jobs=500,
    port_jobs=8_000,
    port_rounds=3,
    drain_jobs=8_000,
    drain_rounds=3,
    isolated_jobs=1_500,
    isolated_rounds=3,
    said_jobs=4_000,
    said_rounds=3,
    once_jobs=8_000,
    once_rounds=3,
    latency_jobs=300,
    delayed_jobs=5_000,
    delayed_ahead=2.0,
    burst_jobs=10_000,
    burst_ahead=5.0,
    pinned_before=5.0,
    pinned_seconds=20.0,
    floor_seconds=2,
    growth_large=100_000,
    growth_rounds=4,
    tenant_jobs=10_000,
    tenants=(1, 1_000, 10_000),
    tenant_rounds=4,
    memory_jobs=20_000,
    flood_mib=64,
    flood_quiet_jobs=60,
    slow_jobs=100_000,
    slow_rounds=50,
    idle_workers=200,
    idle_seconds=5.0,
    idle_submits=5,
    leases=10_000,
    lease_seconds=6.0,
    shard_jobs=5_000,
    shard_rounds=3,
    instrumented_jobs=8_000,
    instrumented_pairs=7,
    schedules_many=50_000,
    schedules_ticks=10,
    schedules_seconds=5.0,
    schedules_due=5_000,
    schedules_ahead=5.0,
    schedules_put=10_000,
    schedules_missed=50,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What every part needs to know."""

    engine: str
    folder: Path
    scale: Scale
