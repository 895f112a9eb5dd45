"""What is to be said of a running job and its worker, who may be dead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.model.job import Status
from lamplighter.port.values import Reason, Why

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lamplighter.model.job import JobRecord
    from lamplighter.port.values import WorkerInfo

LATE_MS = 60_000
"""After the end of a lease: by then a coordinator has given the job back."""
GONE = "gone"
"""State of a worker that the store does not know, because it has left or was forgotten."""


def worker_of(record: JobRecord, workers: Iterable[WorkerInfo]) -> WorkerInfo | None:
    """Return the worker whose child has claimed a job, if the store knows it."""
    supervisor = (record.worker or "").partition("/")[0]
    return next((worker for worker in workers if worker.id == supervisor), None)


def worker_state(record: JobRecord, workers: Iterable[WorkerInfo]) -> str:
    """Return the state of the worker that has claimed a job: alive, suspect, dead or gone."""
    worker = worker_of(record, workers)
    return GONE if worker is None else worker.state


def running(record: JobRecord, workers: Sequence[WorkerInfo], now_ms: int) -> Reason:
    """Say that a job runs, or what has become of its worker and its lease."""
    worker = worker_of(record, workers)
    state = GONE if worker is None else worker.state
    ends_ms = record.expires_at_ms
    over = ends_ms is not None and ends_ms <= now_ms
    asked = "; a cancel was requested" if record.cancel else ""
    if state == "dead" or (state == GONE and over):
        silent = (
            "is no longer known"
            if worker is None
            else f"is dead (no sign of life for {span(now_ms - worker.beat_at_ms)})"
        )
        text = f"its worker {record.worker} {silent}, {_lease(workers, ends_ms, now_ms)}{asked}"
        return Reason(why=Why.WORKER_DEAD, text=text, until_ms=None if over else ends_ms)
    since = span(now_ms - (record.claimed_at_ms or now_ms))
    doing = "claimed, not started" if record.status is Status.CLAIMED else "running"
    text = f"it is {doing}, for {since}, on worker {record.worker}"
    why = Why.RUNNING
    if state == "suspect" and worker is not None:
        why = Why.WORKER_SUSPECT
        text += f", which has given no sign of life for {span(now_ms - worker.beat_at_ms)}"
    if over and ends_ms is not None:
        text += f"; its lease ended {span(now_ms - ends_ms)} ago"
    return Reason(why=why, text=f"{text}{asked}", until_ms=None if over else ends_ms)


def _lease(workers: Iterable[WorkerInfo], ends_ms: int | None, now_ms: int) -> str:
    """Say how the lease stands, and who is there to give the job back."""
    alive = any(worker.state == "alive" for worker in workers)
    nobody = "no worker is alive to give it back: start one"
    if ends_ms is not None and ends_ms > now_ms:
        left = f"and its lease ends in {span(ends_ms - now_ms)}"
        return f"{left}; then it is given back" if alive else f"{left}; {nobody}"
    ended = "and its lease has ended"
    if ends_ms is not None:
        ended = f"its lease ended {span(now_ms - ends_ms)} ago"
    if not alive:
        return f"{ended}, and {nobody}"
    if ends_ms is not None and now_ms - ends_ms >= LATE_MS:
        return f"{ended}; no live worker has given it back: start one without --no-coordinator"
    return f"{ended}; it is about to be given back"


def span(milliseconds: int) -> str:
    """Say a duration as people do."""
    seconds = milliseconds / 1000
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}".replace(".0 ", " ")
    return f"{seconds:.1f} s"
