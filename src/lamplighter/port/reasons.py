"""The answers to "why is this job not running?", from what a store reads of and around a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamplighter.model.job import JobState
from lamplighter.port.values import BEHIND_LIMIT, Reason, Why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.model.job import JobRecord, Mark
    from lamplighter.port.values import WorkerInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What decides beside the job itself, as the store sees it at one moment."""

    now_ms: int
    queue_hold: Mark | None = None
    type_hold: Mark | None = None
    tenant_hold: Mark | None = None
    workers: Sequence[WorkerInfo] = ()
    behind: int = 0
    """Jobs of its own tenant and lane that go before it, counted up to `BEHIND_LIMIT`."""


def reasons(record: JobRecord, around: Surroundings) -> list[Reason]:
    """Give all reasons, the most decisive first; only a waiting job has surroundings."""
    if record.state is not JobState.WAITING:
        return [_not_waiting(record, around.now_ms)]
    found = [*_holds(record, around), *_not_due(record, around.now_ms), *_workers(record, around)]
    return [*(found or [_place(record, around)]), *_suspicion(record)]


def _not_waiting(record: JobRecord, now: int) -> Reason:
    if record.state is JobState.RUNNING:
        since = _span(now - (record.claimed_at_ms or now))
        asked = "; a cancel was requested" if record.cancel else ""
        text = f"it is running, for {since}, on worker {record.worker}{asked}"
        return Reason(why=Why.RUNNING, text=text, until_ms=record.expires_at_ms)
    if record.state is JobState.BLOCKED:
        return Reason(why=Why.BLOCKED, text="it waits for other jobs to succeed first")
    why = f": {record.reason}" if record.reason else ""
    return Reason(why=Why.FINISHED, text=f"it has ended as {record.state.value}{why}")


def _holds(record: JobRecord, around: Surroundings) -> list[Reason]:
    job = record.job
    marks: list[tuple[Why, str, Mark | None]] = [
        (Why.HELD_JOB, "the job itself", record.hold),
        (Why.HELD_QUEUE, f"its queue `{job.queue}`", around.queue_hold),
        (Why.HELD_TYPE, f"its type `{job.type}`", around.type_hold),
        (Why.HELD_TENANT, f"its tenant `{job.tenant}`", around.tenant_hold),
    ]
    return [
        Reason(why=why, text=_held(what, mark), mark=mark)
        for why, what, mark in marks
        if mark is not None
    ]


def _held(what: str, mark: Mark) -> str:
    return f"{what} is held by {mark.by}" + (f": {mark.reason}" if mark.reason else "")


def _not_due(record: JobRecord, now: int) -> list[Reason]:
    wait = record.job.due_at_ms - now
    if wait <= 0:
        return []
    what = "it failed and is tried again" if record.job.attempt else "it is due"
    text = f"{what} in {_span(wait)}"
    return [Reason(why=Why.NOT_DUE, text=text, until_ms=record.job.due_at_ms)]


def _span(milliseconds: int) -> str:
    """Say a duration as people do."""
    seconds = milliseconds / 1000
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}".replace(".0 ", " ")
    return f"{seconds:.1f} s"


def _able(record: JobRecord, around: Surroundings) -> list[WorkerInfo]:
    """Give the workers that could run it and are not known to be dead."""
    job = record.job
    return [
        worker
        for worker in around.workers
        if worker.state != "dead" and job.type in worker.types and job.queue in worker.queues
    ]


def _silence(workers: Sequence[WorkerInfo], now: int) -> str:
    """Say how long ago the last of them gave a sign of life."""
    return _span(max(0, now - max(worker.beat_at_ms for worker in workers)))


def _workers(record: JobRecord, around: Surroundings) -> list[Reason]:
    job = record.job
    alive = [w for w in around.workers if w.state != "dead"]
    able = _able(record, around)
    if not able:
        why = f"none of the {len(alive)} live workers" if alive else "no worker is alive; none"
        text = f"{why} serves queue `{job.queue}` and knows type `{job.type}`"
        return [Reason(why=Why.NO_WORKER, text=text, count=len(alive))]
    if all(worker.state == "suspect" for worker in able):
        silent = _silence(able, around.now_ms)
        text = f"the workers that could run it have given no sign of life for {silent}"
        return [Reason(why=Why.NO_WORKER, text=text, count=len(able))]
    if all(worker.running >= worker.slots for worker in able):
        text = f"all slots of the {len(able)} workers that could run it are taken"
        return [Reason(why=Why.NO_ROOM, text=text, count=len(able))]
    return []


def _place(record: JobRecord, around: Surroundings) -> Reason:
    behind = around.behind
    if not behind:
        # Nobody can promise more: a worker that died a moment ago counts as alive for a while.
        silent = _silence(_able(record, around), around.now_ms)
        last = f"the last sign of life of a worker that could run it came {silent} ago"
        return Reason(why=Why.NEXT, text=f"it is the next of its tenant; {last}")
    many = f"at least {behind}" if behind >= BEHIND_LIMIT else str(behind)
    text = f"{many} jobs of its tenant and type go before it"
    return Reason(why=Why.BEHIND, text=text, count=behind)


def _suspicion(record: JobRecord) -> list[Reason]:
    if not record.job.suspect:
        return []
    text = "a process died while it ran there, so it runs alone, when a process slot is free"
    return [Reason(why=Why.SUSPECT, text=text)]
