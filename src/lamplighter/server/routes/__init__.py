"""Every route there is, one file per resource and one function per verb."""

from __future__ import annotations

from lamplighter.server.route import Table
from lamplighter.server.routes import document, health, job, jobs, queues, types, workers

TABLE = Table(
    (
        jobs.submit,
        jobs.submit_batch,
        jobs.list_jobs,
        job.show,
        job.cancel,
        job.retry,
        job.hold,
        job.unhold,
        job.why,
        job.attempts,
        job.logs,
        types.list_types,
        queues.list_queues,
        workers.list_workers,
        health.alive,
        health.ready,
        document.show,
    )
)
