"""The arithmetic: from samples to the numbers that are reported."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field


def percentile(samples: Sequence[float], percent: float) -> float:
    """Smallest sample that at least ``percent`` of all samples do not exceed (nearest rank)."""
    if not samples:
        raise ValueError("a percentile needs at least one sample")
    ordered = sorted(samples)
    rank = math.ceil(percent / 100 * len(ordered))
    return ordered[max(rank, 1) - 1]


def paired_ratio(large: Sequence[float], small: Sequence[float]) -> float:
    """Median of the ratios of measurements taken next to each other.

    The machine's speed drifts; two neighbours saw nearly the same machine.
    """
    pairs = zip(large, small, strict=True)
    return statistics.median(one / other for one, other in pairs)


@dataclass(frozen=True, slots=True)
class Cost:
    """One measured phase: how many jobs, how long, and the CPU of every process by its role."""

    jobs: int
    seconds: float
    cpu_ns: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def jobs_per_s(self) -> float:
        return self.jobs / self.seconds

    def cpu_us(self, *, without: str | None = None) -> float:
        """CPU microseconds per job, of all roles but one."""
        spent = sum(ns for role, ns in self.cpu_ns.items() if role != without)
        return spent / 1000 / self.jobs

    def split(self) -> dict[str, float]:
        """CPU microseconds per job, role by role."""
        return {role: ns / 1000 / self.jobs for role, ns in self.cpu_ns.items()}


def typical(costs: Sequence[Cost]) -> dict[str, object]:
    """Medians over repeated phases, as they stand in the JSON file."""
    roles = costs[0].cpu_ns
    return {
        "jobs_per_s": rounded(statistics.median(cost.jobs_per_s for cost in costs)),
        "cpu_us": rounded(statistics.median(cost.cpu_us() for cost in costs)),
        "cpu_us_by_role": {
            role: rounded(statistics.median(cost.split()[role] for cost in costs)) for role in roles
        },
        "jobs": sum(cost.jobs for cost in costs),
        "rounds": len(costs),
        "cpu_us_rounds": [rounded(cost.cpu_us()) for cost in costs],
    }


def rounded(value: float) -> float:
    """Four significant digits: more would only pretend."""
    return float(f"{value:.4g}")
