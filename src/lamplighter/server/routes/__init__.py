"""Every route there is, one file per resource and one function per verb."""

from __future__ import annotations

from lamplighter.server.route import Table
from lamplighter.server.routes import (
    dlq,
    document,
    health,
    job,
    jobs,
    queues,
    schedule,
    schedules,
    tenants,
    types,
    workers,
)

TABLE = Table(
    (
        jobs.submit,
        jobs.submit_batch,
        jobs.list_jobs,
        job.show,
        job.cancel,
        job.retry,
        job.replay,
        job.hold,
        job.unhold,
        job.why,
        job.attempts,
        job.logs,
        types.list_types,
        schedules.put,
        schedules.list_schedules,
        schedule.show,
        schedule.change,
        schedule.delete,
        schedule.hold,
        schedule.unhold,
        schedule.trigger,
        schedule.backfill,
        schedule.runs,
        schedule.preview,
        dlq.list_groups,
        dlq.replay,
        dlq.purge,
        queues.list_queues,
        queues.show,
        queues.put,
        tenants.list_tenants,
        tenants.show,
        tenants.put,
        workers.list_workers,
        health.alive,
        health.ready,
        document.show,
    )
)
