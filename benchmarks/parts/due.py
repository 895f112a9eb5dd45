"""Jobs that fall due at one instant: submitted well before it, or not measured at all."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from benchmarks.errors import BenchmarkError
from benchmarks.fleet import Fleet

_BATCH = 5_000


async def in_time(
    jobs: int, ahead: float, once: Callable[[float], Awaitable[dict[str, object] | None]]
) -> dict[str, object]:
    """Measure with jobs due so many seconds ahead, or four times as many if that was too soon."""
    for seconds in (ahead, 4 * ahead):
        found = await once(seconds)
        if found is not None:
            return found
    raise BenchmarkError(f"submitting {jobs} jobs took over {4 * ahead:g} s")


async def submit_all(workers: Fleet, jobs: int, due_ms: int) -> float:
    """Submit jobs for one instant, and tell how many seconds are left until then."""
    due = datetime.fromtimestamp(due_ms / 1000, tz=UTC)
    call = workers.program.note.options(run_at=due).call
    for start in range(0, jobs, _BATCH):
        numbers = range(start, min(start + _BATCH, jobs))
        await workers.program.app.submit_many([call(number) for number in numbers])
    return due_ms / 1000 - time.time()
