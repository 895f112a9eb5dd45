"""Look for jobs that nobody runs: types no live worker knows, queues that none serves."""

from __future__ import annotations

from lamplighter import runtime
from lamplighter.fleet import Fleet
from lamplighter.model.filters import Filter
from lamplighter.model.job import NO_VERSION, JobRecord
from lamplighter.model.versions import Version, place, serving
from lamplighter.observability import events
from lamplighter.port import outlook
from lamplighter.port.checkup import Grade
from lamplighter.port.inspector import Inspector
from lamplighter.port.outlook import Outlook
from lamplighter.port.store import Engine
from lamplighter.port.values import QueueInfo, TypeRow, WorkerInfo
from lamplighter.port.versions import live_versions
from lamplighter.service import Service

AFTER = 5.0
"""Seconds after a worker has joined: others may be about to."""
REST = 3600.0
PAGE = 500
MOST_RUNNING = 5_000
MOST_TYPES = 50
MOST_QUEUES = 50


async def look(engine: Engine) -> Outlook:
    """Read who works on a store, and what waits there; bounded, however large it is."""
    inspector = engine.inspector
    workers, rows = await inspector.workers(), await inspector.types()
    queues = await inspector.queues(most=1)
    due = (await inspector.jobs(Filter(statuses=("ready",)), limit=PAGE)).jobs
    return Outlook(
        workers=workers,
        queues=queues,
        running=await running_jobs(inspector),
        waiting=await _waiting(engine, workers, rows, queues, due),
        unfit=_unfit(due, live_versions(rows)),
        homes={row.queue for row in rows},
    )


async def running_jobs(inspector: Inspector) -> list[JobRecord]:
    """Read the jobs that are claimed, up to 5,000."""
    found: list[JobRecord] = []
    cursor: str | None = None
    while len(found) < MOST_RUNNING:
        which = Filter(statuses=("running", "cancelling"))
        page = await inspector.jobs(which, limit=PAGE, cursor=cursor)
        found += page.jobs
        cursor = page.cursor
        if cursor is None:
            break
    return found


def _unfit(due: list[JobRecord], live: dict[str, list[Version]]) -> set[str]:
    """Return types of jobs that were refused, and that no live version takes."""
    return {
        record.job.type
        for record in due
        if record.error is not None
        and record.error.refusals
        and (versions := serving(live.get(record.job.type, ()), record.job.queue))
        and place(record.job, versions, {one.version for one in record.error.refusals})
        == NO_VERSION
    }


async def _waiting(
    engine: Engine,
    workers: list[WorkerInfo],
    rows: list[TypeRow],
    queues: list[QueueInfo],
    due: list[JobRecord],
) -> set[tuple[str, str]]:
    """Return types of which jobs are due, each with the queue they are in.

    Of the newest jobs and of the oldest, of all types that nobody knows, and of all that nobody
    knows who serves the queue.
    """
    inspector = engine.inspector
    found = {(record.job.type, record.job.queue) for record in due}
    oldest = (await engine.activity.standing()).oldest
    if oldest is not None and (record := await inspector.job(oldest.id)) is not None:
        found.add((record.job.type, record.job.queue))
    known = outlook.known_by_queue(worker for worker in workers if worker.lives)
    everywhere = {name for names in known.values() for name in names}
    published = {row.name for row in rows}
    lonely = sorted(published - everywhere - {name for name, _ in found})
    wanted = [Filter(statuses=("ready",), types=(name,)) for name in lonely[:MOST_TYPES]]
    # Counted to one, of a queue that has both only one kind is seen.
    busy = (q.name for q in queues if q.ready + q.scheduled and q.name in known)
    strange = {name: tuple(sorted(published & everywhere - known[name])) for name in busy}
    wanted += [
        Filter(statuses=("ready",), queues=(queue,), types=types)
        for queue, types in [each for each in strange.items() if each[1]][:MOST_QUEUES]
    ]
    for which in wanted:
        page = await inspector.jobs(which, limit=PAGE if which.queues else 1)
        found |= {(record.job.type, record.job.queue) for record in page.jobs}
    return found


class Lookout(Service):
    """Tell once, when a worker has joined, what nobody on this store runs."""

    name = "lookout"
    patience = 120.0

    def __init__(self, engine: Engine, fleet: Fleet) -> None:
        super().__init__()
        self._engine = engine
        self._fleet = fleet
        self._joined_at: float | None = None

    async def step(self) -> float:
        """Wait until the worker has joined and a little longer, then look."""
        if not self._fleet.joins:
            return AFTER / 5
        if self._joined_at is None:
            self._joined_at = runtime.monotonic()
            return AFTER
        seen = await look(self._engine)
        for finding in (outlook.queues(seen), outlook.types(seen)):
            if finding.grade is not Grade.OK:
                told = f"{finding.text}: {finding.remedy}"
                events.emit(events.WORKER_WARNED, text=told)
        return REST
