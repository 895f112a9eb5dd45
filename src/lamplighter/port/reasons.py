"""The answers to "why is this job not running?", from what a store reads of and around a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamplighter.model.counts import counted
from lamplighter.model.job import NO_VERSION, JobState, Status, version_requirement
from lamplighter.model.versions import MOST_SLOTS, signature, signature_of
from lamplighter.port.running import running, span
from lamplighter.port.values import BEHIND_LIMIT, Reason, Why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.model.job import JobRecord, Mark
    from lamplighter.port.values import TypeRow, WorkerInfo


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
    types: Sequence[TypeRow] = ()
    """Published types, for a job that runs, or that only some versions take."""
    version: str = ""
    """Part of its requirement that says which versions of its type take it; empty: any."""


def reasons(record: JobRecord, around: Surroundings) -> list[Reason]:
    """Return all reasons, the most decisive first."""
    if record.state is not JobState.WAITING:
        found = _not_waiting(record, around)
        # Nobody tells the handlers of a dead worker to end.
        return [found, *(() if found.why is Why.WORKER_DEAD else _out_of_time(record, around))]
    found = [
        *_holds(record, around),
        *_no_version(record, around),
        *_not_due(record, around.now_ms),
        *_workers(record, around),
    ]
    place = [] if found else [_place(record, around)]
    return [*found, *place, *_some_versions(record, around), *_suspicion(record)]


def _not_waiting(record: JobRecord, around: Surroundings) -> Reason:
    if record.state is JobState.RUNNING:
        return running(record, around.workers, around.now_ms)
    if record.state is JobState.BLOCKED:
        return Reason(why=Why.BLOCKED, text="it waits for other jobs to succeed first")
    why = f": {record.reason}" if record.reason else ""
    return Reason(why=Why.FINISHED, text=f"it has ended as {record.state.value}{why}")


def _out_of_time(record: JobRecord, around: Surroundings) -> list[Reason]:
    """Return that the timeout of a running job has passed, as far as the store knows of it."""
    if record.status is Status.CLAIMED:
        return []  # it has not begun
    timeout = record.job.extras.timeout or _published(record, around, "timeout")
    if record.state is not JobState.RUNNING or record.claimed_at_ms is None or not timeout:
        return []
    over_ms = around.now_ms - record.claimed_at_ms - int(timeout * 1000)
    if over_ms < 0:
        return []
    said = span(int(timeout * 1000))
    text = f"its timeout of {said} passed {span(over_ms)} ago, and its handler was told to end"
    hard_after = _published(record, around, "hard_after")
    if hard_after is None:
        return [Reason(why=Why.TIMED_OUT, text=text)]
    until_ms = around.now_ms - over_ms + int(hard_after * 1000)
    if until_ms <= around.now_ms:
        # A process that jobs share is not killed before the others have had their time.
        text += "; its process is killed when the jobs beside it have ended, or their grace has"
        return [Reason(why=Why.TIMED_OUT, text=text)]
    text += f"; its process is killed in {span(until_ms - around.now_ms)}, unless it does"
    return [Reason(why=Why.TIMED_OUT, text=text, until_ms=until_ms)]


def _published(record: JobRecord, around: Surroundings, option: str) -> float | None:
    """Return the largest value that a version of the type has for an option, or None."""
    values = [row.options.get(option) for row in around.types if row.name == record.job.type]
    return max((float(one) for one in values if isinstance(one, (int, float))), default=None)


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
    text = f"{what} in {span(wait)}"
    return [Reason(why=Why.NOT_DUE, text=text, until_ms=record.job.due_at_ms)]


def _able(record: JobRecord, around: Surroundings) -> list[WorkerInfo]:
    """Return the workers that could run it and are not known to be dead."""
    able = _serving(record, around)
    if around.version in {"", NO_VERSION}:
        return able
    return [worker for worker in able if version_requirement(worker.version_slot) == around.version]


def _serving(record: JobRecord, around: Surroundings) -> list[WorkerInfo]:
    """Return the live workers that serve its queue and know its type, in whichever version."""
    job = record.job
    return [
        worker
        for worker in around.workers
        if worker.lives and job.type in worker.types and job.queue in worker.queues
    ]


def _silence(workers: Sequence[WorkerInfo], now: int) -> str:
    """Say how long ago the last of them gave a sign of life."""
    return span(max(0, now - max(worker.beat_at_ms for worker in workers)))


def _workers(record: JobRecord, around: Surroundings) -> list[Reason]:
    job = record.job
    alive = [worker for worker in around.workers if worker.lives]
    able = _able(record, around)
    if not able and (others := _serving(record, around)):
        text = (
            f"no live worker that serves queue `{job.queue}` has the version of `{job.type}` for "
            "which it waits; it is looked at again within seconds, while a coordinator runs"
        )
        return [Reason(why=Why.NO_WORKER, text=text, count=len(others))]
    if not able:
        text = _nobody(len(alive), job.queue, job.type)
        return [Reason(why=Why.NO_WORKER, text=text, count=len(alive))]
    if all(worker.state == "suspect" for worker in able):
        silent = _silence(able, around.now_ms)
        who = "the one worker" if len(able) == 1 else f"the {len(able):,} workers"
        have = "has" if len(able) == 1 else "have"
        text = f"{who} that could run it {have} given no sign of life for {silent}"
        return [Reason(why=Why.NO_WORKER, text=text, count=len(able))]
    if all(worker.running >= worker.slots for worker in able):
        who = "the one worker" if len(able) == 1 else f"the {len(able)} workers"
        text = f"all slots of {who} that could run it are taken"
        return [Reason(why=Why.NO_ROOM, text=text, count=len(able))]
    return []


def _nobody(alive: int, queue: str, type_: str) -> str:
    """Say that none of the live workers can run what stands in a queue."""
    if alive == 1:
        return f"the only live worker does not both serve queue `{queue}` and know type `{type_}`"
    who = f"none of the {alive} live workers" if alive else "no worker is alive; none"
    return f"{who} serves queue `{queue}` and knows type `{type_}`"


def _place(record: JobRecord, around: Surroundings) -> Reason:
    behind = around.behind
    if not behind:
        # Nobody can promise more: a worker that died a moment ago counts as alive for a while.
        silent = _silence(_able(record, around), around.now_ms)
        last = f"the last sign of life of a worker that could run it came {silent} ago"
        return Reason(why=Why.NEXT, text=f"it is the next of its tenant; {last}")
    whose = "of its tenant and type"
    text = counted(behind, f"job {whose} goes before it", f"jobs {whose} go before it")
    if behind >= BEHIND_LIMIT:
        text = f"at least {text}"
    return Reason(why=Why.BEHIND, text=text, count=behind)


def _no_version(record: JobRecord, around: Surroundings) -> list[Reason]:
    if around.version != NO_VERSION:
        return []
    job = record.job
    text = (
        f"it was submitted as {signature_of(job.type, job.args)}, and {_live(record, around)}; "
        "it waits until a worker starts whose version takes it"
    )
    return [Reason(why=Why.NO_VERSION, text=text)]


def _some_versions(record: JobRecord, around: Surroundings) -> list[Reason]:
    if around.version in {"", NO_VERSION}:
        return []
    text = f"not every version of its type takes its arguments: {_live(record, around)}"
    return [Reason(why=Why.VERSION, text=text)]


def _live(record: JobRecord, around: Surroundings) -> str:
    """Say which versions of its type live, and what they take."""
    name = record.job.type
    live = [row for row in around.types if row.name == name and row.live_workers]
    if not live:
        return f"no version of `{name}` lives"
    told = "; ".join(
        f"{signature(name, row.schema)} ({_workers_of(row, record.job.queue)})"
        for row in live[:MOST_SLOTS]
    )
    return f"the live versions take {told}"


def _workers_of(row: TypeRow, queue: str) -> str:
    who = counted(row.live_workers, "worker")
    here = any(queue in seat.queues for seat in row.seats)
    return f"{who}, version {row.hash}" + ("" if here else f", not in queue `{queue}`")


def _suspicion(record: JobRecord) -> list[Reason]:
    if not record.job.suspect:
        return []
    text = "a process died while it ran there, so it runs alone, when a process slot is free"
    return [Reason(why=Why.SUSPECT, text=text)]
