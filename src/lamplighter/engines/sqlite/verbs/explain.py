"""explain: why is this job not running?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs import inspect
from lamplighter.model.job import JobState, version_in
from lamplighter.port import texts
from lamplighter.port.reasons import Surroundings, reasons
from lamplighter.port.rows import stored_record_of
from lamplighter.port.values import BEHIND_LIMIT, Explanation

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.model.job import Job, Mark

SQL = load("inspect")


def explain(tx: Transaction, job_id: str) -> Explanation | None:
    """Give all reasons, the most decisive first."""
    row = tx.one(SQL["job"], job_id)
    if row is None:
        return None
    *_, seq, lane = row
    record = stored_record_of(row, tx.catalog.by_id(lane), tx.now)
    if record.state is JobState.WAITING:
        around = _around(tx, record.job, seq, lane)
    elif record.state is JobState.RUNNING:
        around = Surroundings(now_ms=tx.now, types=inspect.types(tx), workers=inspect.workers(tx))
    else:
        around = Surroundings(now_ms=tx.now)
    return Explanation(record, reasons(record, around))


def _around(tx: Transaction, job: Job, seq: int, lane: int) -> Surroundings:
    version = version_in(tx.catalog.by_id(lane).requirement)
    before = tx.one(SQL["behind"], lane, job.tenant, job.due_at_ms, seq, BEHIND_LIMIT)
    return Surroundings(
        now_ms=tx.now,
        queue_hold=_mark(tx, "queue", job.queue),
        type_hold=_mark(tx, "type", job.type),
        tenant_hold=_mark(tx, "tenant", job.tenant),
        workers=inspect.workers(tx),
        behind=before[0] if before else 0,
        version=version,
        types=inspect.types(tx) if version else (),
    )


def _mark(tx: Transaction, table: str, name: str) -> Mark | None:
    row = tx.one(SQL[table], name)
    return None if row is None else texts.mark_of(row[-1])
