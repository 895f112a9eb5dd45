"""Short ways to say what a test of schedules needs: schedules, runs, plans."""

from __future__ import annotations

from itertools import count, islice
from typing import TYPE_CHECKING, Any

from lamplighter import runtime
from lamplighter.model.ids import RANDOM_BITS, compose, of_occurrence, shard_of_schedule
from lamplighter.model.job import Level
from lamplighter.model.names import DEFAULT_TENANT
from lamplighter.model.retry import Retry
from lamplighter.port.conformance import builders
from lamplighter.port.conformance.builders import (
    LEASE_MS,
    claim_one,
    completed,
    failed,
    new_job,
    settle_one,
)
from lamplighter.port.conformance.clock import START_MS
from lamplighter.port.schedules import (
    Backfill,
    FireAnswer,
    Firing,
    NewSchedule,
    Overlap,
    PutAnswer,
    Run,
    RunKind,
    Skip,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lamplighter.model.job import Claim
    from lamplighter.model.lifecycle import Settlement
    from lamplighter.port.schedules import (
        DueSchedules,
        Fired,
        RunRecord,
        RunState,
        ScheduleAnswer,
        ScheduleChanged,
        ScheduleRecord,
    )
    from lamplighter.port.store import Engine

NIGHTLY = "nightly"
MINUTE = 60_000
BY = {"by": "alice", "reason": "for the test"}
OTHERS = ("other", "", "ac\0me", "acme\ud800")
"""Tenants other than `acme`; some that nobody can be."""


def at(minutes: float) -> int:
    """Return the instant so many minutes after the clock's start."""
    return START_MS + int(minutes * MINUTE)


def new_schedule(
    id: str = NIGHTLY,
    *,
    spec: str = "every minute",
    tenant: str = "default",
    type: str = "work",
    due_ms: int | None = START_MS + MINUTE,
    first_ms: int | None = None,
    zones: str = "",
    expect_version: int | None = None,
) -> NewSchedule:
    """Make a schedule, due after a minute."""
    return NewSchedule(
        id=id,
        spec=spec,
        tenant=tenant,
        type=type,
        due_ms=due_ms,
        first_ms=first_ms,
        zones=zones,
        expect_version=expect_version,
    )


def neighbours(engine: Engine, number: int) -> list[str]:
    """Return ids of schedules that are in the same part of the store, in their order."""
    parts = engine.capabilities.shards
    names = (f"schedule {n:05}" for n in count())
    home = builders.home % parts
    return list(islice((one for one in names if _shard(one) % parts == home), number))


def _shard(schedule: str) -> int:
    return shard_of_schedule(DEFAULT_TENANT, schedule)


def trigger_id(schedule: str = NIGHTLY, tenant: str = DEFAULT_TENANT) -> str:
    """Make the id of a job that somebody triggers."""
    chance = runtime.random_bits(RANDOM_BITS)
    return compose(runtime.now_ms(), shard_of_schedule(tenant, schedule), chance)


def run_at(
    due_ms: int,
    overlap: Overlap = Overlap.ALLOW,
    *,
    schedule: str = NIGHTLY,
    kind: RunKind = RunKind.DUE,
    id: str | None = None,
    level: Level = Level.NORMAL,
    run_at_ms: int | None = None,
    tenant: str = DEFAULT_TENANT,
) -> Run:
    """Make an occurrence with its job, as a planner does."""
    job = new_job(
        id=id or of_occurrence(tenant, schedule, due_ms),
        tenant=tenant,
        schedule=schedule,
        level=level,
        run_at_ms=due_ms if run_at_ms is None else run_at_ms,
    )
    return Run(due_ms=due_ms, job=job, kind=kind, overlap=overlap)


def wanted_run(
    overlap: Overlap = Overlap.ALLOW, *, schedule: str = NIGHTLY, tenant: str = DEFAULT_TENANT
) -> Run:
    """Make a run as somebody triggers it, with a fresh id; its due time does not matter."""
    job_id = trigger_id(schedule, tenant)
    kind = RunKind.TRIGGER
    return run_at(1, overlap, schedule=schedule, kind=kind, id=job_id, tenant=tenant)


def skip_of(first_ms: int, due_ms: int, reason: str = "missed", count: int | None = 1) -> Skip:
    """Make a skip."""
    return Skip(due_ms=due_ms, first_ms=first_ms, reason=reason, count=count)


def backfill_of(from_ms: int, to_ms: int, *, limit: int = 2) -> Backfill:
    """Make a backfill that has not begun."""
    return Backfill(from_ms=from_ms, to_ms=to_ms, cursor_ms=from_ms, limit=limit)


def plan_of(known: ScheduleRecord, *runs: Run, skips: Sequence[Skip] = (), **others: Any) -> Firing:
    """Make a plan from a record: its cursor goes to the last occurrence in it."""
    resolved = [run.due_ms for run in runs if run.kind is RunKind.DUE]
    resolved += [skip.due_ms for skip in skips]
    facts: dict[str, Any] = {
        "next_cursor_ms": max(known.cursor_ms, *resolved, known.cursor_ms),
        "due_ms": None,
        "backfill": known.backfill,
        "zones": known.zones,
    }
    return Firing(
        tenant=known.tenant,
        id=known.id,
        version=known.version,
        cursor_ms=known.cursor_ms,
        runs=tuple(runs),
        skips=tuple(skips),
        **facts | others,
    )


async def put(engine: Engine, *schedules: NewSchedule) -> list[str]:
    """Put schedules that must all be new; give their ids."""
    batch = engine.capabilities.max_batch
    for start in range(0, len(schedules), batch):
        said = await engine.schedules.put_schedules(schedules[start : start + batch], by="alice")
        assert all(one.answer is PutAnswer.CREATED for one in said)
    return [one.id for one in schedules]


async def known(
    engine: Engine, schedule: str = NIGHTLY, tenant: str = DEFAULT_TENANT
) -> ScheduleRecord:
    """Read a schedule that must be there."""
    found = await engine.schedules.schedule(schedule, tenant=tenant)
    assert found is not None, f"{schedule} is not in the store"
    return found


async def fire(
    engine: Engine,
    *runs: Run,
    schedule: str = NIGHTLY,
    skips: Sequence[Skip] = (),
    tenant: str = DEFAULT_TENANT,
    **others: Any,
) -> Fired:
    """Write a plan that is made from what the store says now, and must be accepted."""
    plan = plan_of(await known(engine, schedule, tenant), *runs, skips=skips, **others)
    (said,) = await engine.schedules.fire([plan])
    assert said.answer is FireAnswer.DONE
    return said


async def look(
    engine: Engine, limit: int = 100, *, lease_ms: int = LEASE_MS, newest_first: bool = False
) -> DueSchedules:
    """Ask once for what is due."""
    return await engine.schedules.due_schedules(
        limit=limit, lease_ms=lease_ms, newest_first=newest_first
    )


async def due_ids(
    engine: Engine, limit: int = 100, *, lease_ms: int = LEASE_MS, newest_first: bool = False
) -> list[str]:
    """Ask once for what is due, and give the ids in their order."""
    found = await look(engine, limit, lease_ms=lease_ms, newest_first=newest_first)
    return [one.record.id for one in found.schedules]


async def runs_of(
    engine: Engine, schedule: str = NIGHTLY, tenant: str = DEFAULT_TENANT
) -> list[RunRecord]:
    """Read all runs of a schedule, the earliest due first."""
    found: list[RunRecord] = []
    cursor: str | None = None
    while True:
        page = await engine.schedules.runs(schedule, tenant=tenant, limit=100, cursor=cursor)
        found += page.runs
        if (cursor := page.cursor) is None:
            return found[::-1]


async def states_of(
    engine: Engine, schedule: str = NIGHTLY, tenant: str = DEFAULT_TENANT
) -> list[RunState]:
    """Read the states of all runs, the earliest due first."""
    return [run.state for run in await runs_of(engine, schedule, tenant)]


def dead(taken: Claim) -> Settlement:
    """The handler raised, and that was the last attempt."""
    return failed(taken, retry=Retry(max_attempts=1))


async def end(engine: Engine, how: Callable[[Claim], Settlement] = completed) -> str:
    """Claim the job that is next and settle it, by default as succeeded; give its id."""
    taken = await claim_one(engine)
    await settle_one(engine, how(taken))
    return taken.job.id


def wishes(changes: Iterable[ScheduleChanged]) -> list[ScheduleAnswer]:
    """Return the bare answers of an operator's verb."""
    return [change.answer for change in changes]
