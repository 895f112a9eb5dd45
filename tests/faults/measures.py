"""Times taken from a history."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.faults.history import Write, read_lines


def rescue_times(journal: Path, writes: Iterable[Write]) -> list[float]:
    """Seconds from the death of each killed worker until each of its jobs could be claimed again.

    Only a job's first loss counts: after further ones it waits longer by policy.
    """
    names: dict[int, str] = {}
    killed: dict[str, int] = {}
    for line in read_lines(journal):
        if line["kind"] == "event" and line["name"] == "worker.started":
            names[line["supervisor"]] = line["fields"]["worker"]
        elif line["kind"] == "killed" and line["what"] == "supervisor":
            name = names.pop(line["pid"], None)
            if name is not None:
                killed[name] = line["now"]
    times: list[float] = []
    lost: set[str] = set()
    for write in writes:
        left = write.old_state == "running" and write.abandoned and write.worker is not None
        if not left or write.job_id in lost:
            continue
        lost.add(write.job_id)
        at = killed.get((write.worker or "").partition("/")[0])
        if at is not None and write.new_state == "waiting" and write.now_ms >= at:
            times.append((max(write.now_ms, write.due_ms) - at) / 1000)
    return times


def percentile(values: Sequence[float], share: float) -> float:
    """Give the smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0
