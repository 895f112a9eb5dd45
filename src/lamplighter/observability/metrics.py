"""Every metric there is, declared once: `docs/reference/metrics.md` is made from this.

Names of queues and job types are people's own, so that their number is bounded: see `Meter`.
Tenants are in no metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lamplighter.model.activity import LAG_BOUNDS_MS

CAPPED = frozenset({"queue", "type"})
"""Labels whose values people choose."""
OTHER = "other"
"""What values beyond the bound are called."""

RUN_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
CALL_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
LAG_BOUNDS = tuple(bound / 1000 for bound in LAG_BOUNDS_MS)


class Kind(StrEnum):
    """How a metric behaves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Source(StrEnum):
    """Which process tells a metric."""

    WORKER = "worker"
    SERVE = "serve"
    BOTH = "worker, serve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric."""

    name: str
    kind: Kind
    source: Source
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Upper bounds of the classes of a histogram, each included."""

    def __hash__(self) -> int:
        return hash(self.name)


def _counter(name: str, source: Source, help_: str, *labels: str) -> Metric:
    return Metric(name=name, kind=Kind.COUNTER, source=source, help=help_, labels=labels)


def _gauge(name: str, source: Source, help_: str, *labels: str) -> Metric:
    return Metric(name=name, kind=Kind.GAUGE, source=source, help=help_, labels=labels)


def _histogram(
    name: str, source: Source, help_: str, *labels: str, bounds: tuple[float, ...]
) -> Metric:
    return Metric(
        name=name, kind=Kind.HISTOGRAM, source=source, help=help_, labels=labels, bounds=bounds
    )


# ── both ─────────────────────────────────────────────────────────────────────────────────────

BUILD_INFO = _gauge(
    "lamplighter_build_info", Source.BOTH, "Always 1; what runs here.", "version", "python"
)
STORE_CALL_SECONDS = _histogram(
    "lamplighter_store_call_seconds",
    Source.BOTH,
    "Calls of the store that were answered, by verb.",
    "verb",
    bounds=CALL_BOUNDS,
)
STORE_ERRORS = _counter(
    "lamplighter_store_errors_total", Source.BOTH, "Calls of the store that failed.", "verb"
)

# ── what a worker did ────────────────────────────────────────────────────────────────────────

START_LAG_SECONDS = _histogram(
    "lamplighter_start_lag_seconds",
    Source.WORKER,
    "Time between the moment a job fell due and its start, by the worker's clock.",
    "queue",
    bounds=LAG_BOUNDS,
)
RUN_SECONDS = _histogram(
    "lamplighter_run_seconds",
    Source.WORKER,
    "How long handlers ran, however they ended.",
    "type",
    bounds=RUN_BOUNDS,
)
OUTCOMES = ("succeeded", "failed", "retried", "snoozed", "cancelled")
JOBS_ENDED = _counter(
    "lamplighter_jobs_ended_total",
    Source.WORKER,
    "Runs that ended: `succeeded`, `failed` (the job is dead), `retried`, `snoozed` (also given "
    "back), `cancelled`.",
    "type",
    "outcome",
)
RETRIES = _counter(
    "lamplighter_retries_total", Source.WORKER, "Failures after which a job is tried again.", "type"
)
DEAD = _counter("lamplighter_jobs_dead_total", Source.WORKER, "Jobs that died here.", "type")
LEASES_EXPIRED = _counter(
    "lamplighter_leases_expired_total",
    Source.WORKER,
    "Jobs whose lease had ended, as after the loss of a worker, given back by this process.",
)
STALE_SETTLES = _counter(
    "lamplighter_stale_settles_total",
    Source.WORKER,
    "Results that the store refused because the job belonged to somebody else by then.",
)
OUTPUT_DROPPED = _counter(
    "lamplighter_output_dropped_lines_total",
    Source.WORKER,
    "Lines that were not written to stdout or stderr, because nobody read what was there.",
)
SLOTS = _gauge("lamplighter_slots", Source.WORKER, "Jobs that this worker can run at once.")
SLOTS_BUSY = _gauge("lamplighter_slots_busy", Source.WORKER, "Jobs that it runs.")
UTILISATION = _gauge(
    "lamplighter_utilisation_ratio", Source.WORKER, "Its busy slots as a part of all, 0 to 1."
)
CHILDREN = _gauge("lamplighter_child_processes", Source.WORKER, "Its child processes.")
LOOP_IDLE_SECONDS = _gauge(
    "lamplighter_loop_idle_seconds",
    Source.WORKER,
    "Time since a loop of the supervisor last came to a good end.",
    "loop",
)
LOOP_RESTARTS = _counter(
    "lamplighter_loop_restarts_total",
    Source.WORKER,
    "Steps of a loop that did not end and were begun anew.",
    "loop",
)
WELL = _gauge("lamplighter_worker_well", Source.WORKER, "1 while all its loops are well, else 0.")
FIRE_LAG_SECONDS = _gauge(
    "lamplighter_fire_lag_seconds",
    Source.WORKER,
    "How late this process fired the schedules it fired last.",
)
SKIP_REASONS = ("late", "missed", "overlap")
FIRED = _counter(
    "lamplighter_schedules_fired_total",
    Source.WORKER,
    "Occurrences that this process made jobs of.",
)
SKIPPED = _counter(
    "lamplighter_schedules_skipped_total",
    Source.WORKER,
    "Occurrences that it skipped.",
    "reason",
)

# ── what is in the store ─────────────────────────────────────────────────────────────────────

QUEUE_WAITING = _gauge(
    "lamplighter_queue_waiting_jobs",
    Source.SERVE,
    "Waiting jobs, due or not, exact up to 500.",
    "queue",
    "level",
)
QUEUE_READY = _gauge(
    "lamplighter_queue_ready_jobs",
    Source.SERVE,
    "Jobs that are due and wait for a worker, exact up to 500.",
    "queue",
)
QUEUE_RUNNING = _gauge(
    "lamplighter_queue_running_jobs", Source.SERVE, "Jobs that run, on all workers.", "queue"
)
QUEUE_OLDEST_SECONDS = _gauge(
    "lamplighter_queue_oldest_seconds",
    Source.SERVE,
    "For how long the job that waits longest has been due; 0: none is due.",
    "queue",
    "level",
)
JOBS = _gauge(
    "lamplighter_jobs", Source.SERVE, "Jobs in the store, each exact up to 10,000.", "state"
)
DEAD_LETTERS = _gauge(
    "lamplighter_dead_letters", Source.SERVE, "Dead jobs in the store, exact up to 10,000."
)
HELD_JOBS = _gauge(
    "lamplighter_held_jobs", Source.SERVE, "Waiting jobs with a hold, exact up to 10,000."
)
WORKERS = _gauge("lamplighter_workers", Source.SERVE, "Workers that the store knows.", "state")
SCHEDULE_LAG_SECONDS = _gauge(
    "lamplighter_schedule_lag_seconds",
    Source.SERVE,
    "For how long the schedule that waits longest should have been fired; 0: none waits.",
)

# ── the HTTP service ─────────────────────────────────────────────────────────────────────────

HTTP_REQUESTS = _counter(
    "lamplighter_http_requests_total",
    Source.SERVE,
    "Requests that this process answered; what leads to no route is `none`.",
    "method",
    "route",
    "status",
)
HTTP_SECONDS = _histogram(
    "lamplighter_http_request_seconds",
    Source.SERVE,
    "Time until the answer was ready.",
    "method",
    "route",
    bounds=CALL_BOUNDS,
)

METRICS: tuple[Metric, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Metric)
)
