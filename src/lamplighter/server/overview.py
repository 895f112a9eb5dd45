"""What is there and what happens, as a whole: read for the overview, and for metrics."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

import msgspec

from lamplighter.model import activity
from lamplighter.model.activity import Minute, Tally, percentile
from lamplighter.port.activity import Standing
from lamplighter.port.store import Engine
from lamplighter.port.values import COUNT_LIMIT, QueueInfo, WorkerInfo
from lamplighter.server.marks import instant

QUEUE_LIMIT = 500
"""To which the waiting jobs of each queue are counted: of very many, counting takes long."""
LAG_MINUTES = 5
"""Minutes whose starts the percentiles of an overview are of, and the present one."""


class Count(msgspec.Struct, kw_only=True, frozen=True):
    """A number of jobs."""

    count: int
    at_least: bool
    """Whether there may be more: nobody counts beyond 10,000, and `due` and `scheduled` not beyond
    500 in a queue."""


class Lag(msgspec.Struct, kw_only=True, frozen=True):
    """How late jobs began after they had fallen due, estimated; null: none began."""

    p50_seconds: float | None
    p95_seconds: float | None
    p99_seconds: float | None


class Happened(msgspec.Struct, kw_only=True, frozen=True):
    """What happened in some time."""

    started: int
    succeeded: int
    failed: int
    """Jobs that died."""
    retried: int
    """Failures after which the job is tried again."""
    snoozed: int
    """Jobs that wait again without a failure: snoozed, or given back."""
    cancelled: int
    """Jobs that were cancelled while they ran."""
    rescued: int
    """Jobs that were given back after the loss of their worker."""
    stale: int
    """Results that were refused, because the job belonged to somebody else by then."""


class OldestJob(msgspec.Struct, kw_only=True, frozen=True):
    """The job that has been due for longest without running."""

    id: str
    queue: str
    due_seconds: float


class Overview(msgspec.Struct, kw_only=True, frozen=True):
    """The whole store, at one moment."""

    at: datetime
    waiting: Count
    """All that wait, whatever for."""
    due: Count
    """Those of them that are due and could run."""
    scheduled: Count
    """Those of them that are due later."""
    held: Count
    """Those of them that have a hold of their own."""
    running: Count
    dead: Count
    """Dead letters."""
    oldest: OldestJob | None
    workers: int
    """Workers that are alive."""
    slots: int
    """Jobs that they can run at once."""
    last_minute: Happened
    lag: Lag
    """Of the starts of the last five minutes."""
    fire_lag_seconds: float
    """For how long the schedule that waits longest should have been fired; 0: none waits."""


class StatsMinute(Happened, kw_only=True, frozen=True):
    """What happened in one minute."""

    at: datetime
    """When it began."""
    lag: Lag


class Stats(msgspec.Struct, kw_only=True, frozen=True):
    """What happened, minute by minute, oldest first; the last one is not over."""

    minutes: list[StatsMinute]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read of the store."""

    counts: dict[str, int]
    queues: list[QueueInfo]
    workers: list[WorkerInfo]
    standing: Standing


async def look(engine: Engine) -> Seen:
    """Read the store as a whole; the cost hardly depends on how much there is."""
    inspector = engine.inspector
    counts, queues, workers, standing = await asyncio.gather(
        inspector.counts(),
        inspector.queues(most=QUEUE_LIMIT),
        inspector.workers(),
        engine.activity.standing(),
    )
    return Seen(counts=counts, queues=queues, workers=workers, standing=standing)


def overview(seen: Seen, minutes: list[Minute]) -> Overview:
    """Put together what was read."""
    standing, alive = seen.standing, [one for one in seen.workers if one.state == "alive"]
    lately = minutes[-(LAG_MINUTES + 1) :]
    oldest = standing.oldest
    return Overview(
        at=instant(standing.at_ms),
        waiting=counted(seen.counts["waiting"]),
        due=counted(*(queue.ready for queue in seen.queues), most=QUEUE_LIMIT),
        scheduled=counted(*(queue.scheduled for queue in seen.queues), most=QUEUE_LIMIT),
        held=counted(standing.held),
        running=counted(seen.counts["running"]),
        dead=counted(seen.counts["dead"]),
        oldest=None
        if oldest is None
        else OldestJob(id=oldest.id, queue=oldest.queue, due_seconds=oldest.due_ms / 1000),
        workers=len(alive),
        slots=sum(one.slots for one in alive),
        last_minute=_happened(activity.last_minute(minutes, standing.at_ms)),
        lag=lag_of(activity.added(minute.tally for minute in lately)),
        fire_lag_seconds=standing.fire_lag_ms / 1000,
    )


def stats(minutes: list[Minute]) -> Stats:
    """Return what happened, minute by minute."""
    return Stats(
        minutes=[
            StatsMinute(
                at=instant(minute.at_ms),
                lag=lag_of(minute.tally),
                **msgspec.structs.asdict(_happened(minute.tally)),
            )
            for minute in minutes
        ]
    )


def counted(*counts: int, most: int = COUNT_LIMIT) -> Count:
    """Add up numbers of which each is exact up to ``most``."""
    total = sum(counts)
    beyond = total >= COUNT_LIMIT or any(count >= most for count in counts)
    return Count(count=min(total, COUNT_LIMIT), at_least=beyond)


def lag_of(tally: Tally) -> Lag:
    """Estimate how late jobs began."""
    p50, p95, p99 = (percentile(tally.lags, share) for share in (0.5, 0.95, 0.99))
    return Lag(p50_seconds=_seconds(p50), p95_seconds=_seconds(p95), p99_seconds=_seconds(p99))


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else round(ms / 1000, 6)


def _happened(tally: Tally) -> Happened:
    return Happened(
        started=tally.started,
        succeeded=tally.succeeded,
        failed=tally.failed,
        retried=tally.retried,
        snoozed=tally.snoozed,
        cancelled=tally.cancelled,
        rescued=tally.rescued,
        stale=tally.stale,
    )
