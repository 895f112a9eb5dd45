"""Names of everything worth telling, and the one way to tell it.

An event is a name from this module and a few fields. Listeners get them synchronously and must be
quick; a listener that raises is logged and never disturbs the work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

log = logging.getLogger("lamplighter.events")

JOB_SUBMITTED = "job.submitted"
JOB_CLAIMED = "job.claimed"
JOB_STARTED = "job.started"
JOB_SETTLED = "job.settled"
JOB_CANCELLED = "job.cancelled"
JOB_RESCUED = "job.rescued"
JOB_UNFIT = "job.unfit"
LEASE_LOST = "lease.lost"
LEASES_RENEWED = "leases.renewed"
STORE_CALL = "store.call"
STORE_ERROR = "store.error"
WORKER_STARTED = "worker.started"
WORKER_STOPPING = "worker.stopping"
WORKER_STOPPED = "worker.stopped"
WORKER_WARNED = "worker.warned"
WORKER_SCALED = "worker.scaled"
WORKER_RELOADED = "worker.reloaded"
CHILD_STARTED = "child.started"
CHILD_RETIRED = "child.retired"
CHILD_DIED = "child.died"
TYPE_ISOLATED = "type.isolated"
LOOP_SILENT = "loop.silent"
SERVICE_ERROR = "service.error"
PRUNED = "store.pruned"
CLOCK_JUMPED = "clock.jumped"
STORE_LOG_LARGE = "store.log_large"
SCHEDULES_FIRED = "schedules.fired"
SCHEDULES_BEHIND = "schedules.behind"
SCHEDULE_HELD = "schedule.held"
SCHEDULES_REPLANNED = "schedules.replanned"
SERVICE_STUCK = "service.stuck"
HEALTH_CHANGED = "health.changed"
METRICS_SERVED = "metrics.served"

EVENTS: Mapping[str, str] = {
    JOB_SUBMITTED: "Jobs were accepted by the store: count, created, types.",
    JOB_CLAIMED: "Jobs were handed to a worker: count, worker.",
    JOB_STARTED: "A handler started: job_id, type, tenant, queue, attempt.",
    JOB_SETTLED: "A claim was settled: job_id, type, tenant, queue, outcome, state, seconds.",
    JOB_CANCELLED: "A cancel was accepted: job_id, answer.",
    JOB_RESCUED: "Claims of vanished workers went back: count.",
    JOB_UNFIT: "A job is dead as no live version took its arguments: job_id, type, reason.",
    LEASE_LOST: "A write was refused because the fence was not current: job_id, verb.",
    LEASES_RENEWED: "Leases were extended: count, lost.",
    STORE_CALL: "A verb of the store returned: verb, seconds, count.",
    STORE_ERROR: "A verb of the store raised: verb, seconds, error.",
    WORKER_STARTED: "A supervisor joined: worker, queues, store (its address without password).",
    WORKER_STOPPING: "A supervisor was told to end, or still waits for jobs: worker, running, "
    "seconds (that they have left), jobs (id, type and seconds of those that run longest).",
    WORKER_STOPPED: "A supervisor left: worker.",
    WORKER_WARNED: "Jobs of this program or store will not run as things are: text.",
    WORKER_SCALED: "A worker chose another number of children: worker, size, before, reason.",
    WORKER_RELOADED: "A worker began to replace every child by a fresh one: worker, children.",
    CHILD_STARTED: "A child process started: worker, pid, alone (its jobs run alone).",
    CHILD_RETIRED: "A child process was told to end in peace: worker, pid, why.",
    CHILD_DIED: "A child process died: worker, pid, status, started, unstarted.",
    TYPE_ISOLATED: "Jobs of a type run alone for a while: type, seconds, how one of them died.",
    LOOP_SILENT: "A child's loop was silent for too long: worker, seconds.",
    SERVICE_ERROR: "A step of a service raised: service, error.",
    PRUNED: "Retention removed records: jobs, keys, others.",
    CLOCK_JUMPED: "The search for lost jobs came late, as the clock was set, the machine slept or "
    "the store was away: seconds.",
    SCHEDULES_FIRED: "Jobs were made of what schedules said: count.",
    SCHEDULES_BEHIND: "Occurrences fall due faster than they are fired, or not any more: behind, "
    "lag_ms.",
    SCHEDULE_HELD: "A schedule was held because its runs failed: tenant, schedule, reason.",
    SCHEDULES_REPLANNED: "Next runs were computed anew with other time zone data: count, zones.",
    SERVICE_STUCK: "A step of a service did not come to its end and was begun anew: service, "
    "seconds.",
    HEALTH_CHANGED: "A worker is well, or not any more: worker, well, why, loops, fire.",
    METRICS_SERVED: "A worker serves its metrics: url.",
    STORE_LOG_LARGE: "The store's log cannot start over, perhaps for a stuck reader: path, bytes.",
}

Listener = Callable[[str, Mapping[str, Any]], None]

_listeners: list[Listener] = []


def listen(listener: Listener) -> Callable[[], None]:
    """Call ``listener(name, fields)`` for each event; gives back the way to stop it."""
    _listeners.append(listener)

    def stop() -> None:
        if listener in _listeners:
            _listeners.remove(listener)

    return stop


def listened() -> bool:
    """Tell whether anybody listens, so that hot paths can skip making fields."""
    return bool(_listeners)


def emit(name: str, **fields: Any) -> None:
    """Tell all listeners."""
    for listener in tuple(_listeners):
        try:
            listener(name, fields)
        except Exception:
            log.exception("listener failed on %s", name)
