"""explain: why is this job not running?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import records
from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs import inspect
from lamplighter.model.job import JobRecord, JobState
from lamplighter.port.values import BEHIND_LIMIT, Explanation, Reason, Why

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.model.job import Mark

SQL = load("inspect")


def explain(tx: Transaction, job_id: str) -> Explanation | None:
    """Give all reasons, the most decisive first."""
    row = tx.one(SQL["job"], job_id)
    if row is None:
        return None
    record = records.job_record(row, tx.catalog.by_id(row[19]), tx.now)
    if record.state is JobState.WAITING:
        reasons = [*_holds(tx, record), *_not_due(tx, record), *_workers(tx, record)]
        reasons += _place(tx, record, row[0], row[19]) if not reasons else []
        reasons += _suspicion(record)
    else:
        reasons = [_not_waiting(tx, record)]
    return Explanation(record, reasons)


def _not_waiting(tx: Transaction, record: JobRecord) -> Reason:
    if record.state is JobState.RUNNING:
        since = _span(tx.now - (record.claimed_at_ms or tx.now))
        asked = "; a cancel was requested" if record.cancel else ""
        text = f"it is running, for {since}, on worker {record.worker}{asked}"
        return Reason(why=Why.RUNNING, text=text, until_ms=record.expires_at_ms)
    if record.state is JobState.BLOCKED:
        return Reason(why=Why.BLOCKED, text="it waits for other jobs to succeed first")
    why = f": {record.reason}" if record.reason else ""
    return Reason(why=Why.FINISHED, text=f"it has ended as {record.state.value}{why}")


def _holds(tx: Transaction, record: JobRecord) -> list[Reason]:
    job = record.job
    marks: list[tuple[Why, str, Mark | None]] = [
        (Why.HELD_JOB, "the job itself", record.hold),
        (Why.HELD_QUEUE, f"its queue `{job.queue}`", _mark(tx, "queue", job.queue)),
        (Why.HELD_TYPE, f"its type `{job.type}`", _mark(tx, "type", job.type)),
        (Why.HELD_TENANT, f"its tenant `{job.tenant}`", _mark(tx, "tenant", job.tenant)),
    ]
    return [
        Reason(why=why, text=_held(what, mark), mark=mark)
        for why, what, mark in marks
        if mark is not None
    ]


def _held(what: str, mark: Mark) -> str:
    return f"{what} is held by {mark.by}" + (f": {mark.reason}" if mark.reason else "")


def _mark(tx: Transaction, table: str, name: str) -> Mark | None:
    row = tx.one(SQL[table], name)
    return None if row is None else records.mark_of(row[-1])


def _not_due(tx: Transaction, record: JobRecord) -> list[Reason]:
    wait = record.job.due_at_ms - tx.now
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


def _workers(tx: Transaction, record: JobRecord) -> list[Reason]:
    job = record.job
    alive = [w for w in inspect.workers(tx) if w.state != "dead"]
    able = [w for w in alive if job.type in w.types and job.queue in w.queues]
    if not able:
        why = f"none of the {len(alive)} live workers" if alive else "no worker is alive; none"
        text = f"{why} serves queue `{job.queue}` and knows type `{job.type}`"
        return [Reason(why=Why.NO_WORKER, text=text, count=len(alive))]
    if all(worker.state == "suspect" for worker in able):
        silent = _span(tx.now - max(worker.beat_at_ms for worker in able))
        text = f"the workers that could run it have given no sign of life for {silent}"
        return [Reason(why=Why.NO_WORKER, text=text, count=len(able))]
    if all(worker.running >= worker.slots for worker in able):
        text = f"all slots of the {len(able)} workers that could run it are taken"
        return [Reason(why=Why.NO_ROOM, text=text, count=len(able))]
    return []


def _suspicion(record: JobRecord) -> list[Reason]:
    if not record.job.suspect:
        return []
    text = "a process died while it ran there, so it runs alone, when a process slot is free"
    return [Reason(why=Why.SUSPECT, text=text)]


def _place(tx: Transaction, record: JobRecord, seq: int, lane: int) -> list[Reason]:
    job = record.job
    row = tx.one(SQL["behind"], lane, job.tenant, job.due_at_ms, seq, BEHIND_LIMIT)
    count = row[0] if row else 0
    if count:
        many = f"at least {count}" if count >= BEHIND_LIMIT else str(count)
        text = f"{many} jobs of its tenant and type go before it"
        return [Reason(why=Why.BEHIND, text=text, count=count)]
    return [Reason(why=Why.NEXT, text="it is the next of its tenant and will start any moment")]
