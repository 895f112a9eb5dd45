"""Decide what is to happen to a schedule now. Pure: from what the store has said, and no clock.

Missed occurrences are never gone through one by one: calendars are asked for the next and for the
latest one, whatever lies between.
"""

from __future__ import annotations

from dataclasses import replace

from lamplighter.model.recurring import ON_TIME_MS, CatchUp, Overlap, Spec
from lamplighter.model.schedule.effort import bounded
from lamplighter.model.timetable import Timetable
from lamplighter.port.schedules import (
    Backfill,
    DueSchedule,
    Firing,
    Run,
    RunKind,
    ScheduleRecord,
    Skip,
)

MOST_RUNS = 100
"""Occurrences that one plan may start; the rest follow with the next, at once."""
MOST_COUNTED = 100
"""Skipped occurrences that are counted; more are "very many"."""
BACKFILL_LOOK_MS = 1_000
END_MS = 1 << 62


def plan(due: DueSchedule, spec: Spec, now_ms: int, zones: str) -> Firing:
    """Plan one schedule for the instant ``now_ms``; ``zones`` is the version of our zone data."""
    record, policy = due.record, spec.policy
    same = _unchanged(record, spec, zones)
    if policy.hold_after is not None and record.failures >= policy.hold_after:
        return replace(same, hold=_held(record.failures))
    times = Timetable(record.id, spec)
    # Others are planned after it: all its searches together may cost as much as one.
    with bounded():
        planned = _planned(same, times, now_ms, record.fired)
        if record.backfill is not None:
            planned = _backfilled(planned, record.backfill, times, due.backfilling, now_ms)
    return planned


def replanned(record: ScheduleRecord, spec: Spec, zones: str) -> Firing:
    """Plan by other zone data, and only when it is to be looked at next: the past stays."""
    policy = spec.policy
    ended = policy.max_runs is not None and record.fired >= policy.max_runs
    due_ms = None if ended else Timetable(record.id, spec).due_after(record.cursor_ms)
    return replace(_unchanged(record, spec, zones), due_ms=due_ms)


def _held(failures: int) -> str:
    told = "run has" if failures == 1 else f"{failures:,} runs have"
    return f"its last {told} failed"


def _unchanged(record: ScheduleRecord, spec: Spec, zones: str) -> Firing:
    return Firing(
        tenant=record.tenant,
        id=record.id,
        version=record.version,
        cursor_ms=record.cursor_ms,
        next_cursor_ms=record.cursor_ms,
        due_ms=record.due_ms,
        backfill=record.backfill,
        keep=(spec.policy.keep_succeeded, spec.policy.keep_failed),
        zones=zones,
    )


def _planned(same: Firing, times: Timetable, now_ms: int, fired: int) -> Firing:
    """Resolve what has fallen due since the cursor, by the catch-up policy."""
    policy = times.spec.policy
    room = MOST_RUNS if policy.max_runs is None else min(MOST_RUNS, policy.max_runs - fired)
    if room <= 0:
        return replace(same, due_ms=None)
    first = times.next_after(same.cursor_ms)
    horizon_ms = now_ms - times.offset_ms
    if first is None or first > horizon_ms:
        return replace(same, due_ms=times.due_after(same.cursor_ms))
    window_ms = policy.window_ms
    if policy.catch_up is CatchUp.NONE:
        window_ms = min(window_ms, ON_TIME_MS)
    oldest_ms = horizon_ms - window_ms
    following = times.next_after(first)
    if first >= oldest_ms and (following is None or following > horizon_ms):
        return _one(same, times, first, following)
    if policy.catch_up is CatchUp.ALL:
        chosen = times.up_to(max(same.cursor_ms, oldest_ms - 1), horizon_ms, room)
        last = chosen[-1] if chosen else times.latest_until(horizon_ms) or first
        before = chosen[0] if chosen else last + 1
        skips = _skips(times, same.cursor_ms, before, "late")
    else:
        last = times.latest_until(horizon_ms) or first
        chosen = [last] if last >= oldest_ms else []
        reason = "missed" if chosen else "late"
        skips = _skips(times, same.cursor_ms, last if chosen else last + 1, reason)
    return replace(
        same,
        next_cursor_ms=max(last, same.cursor_ms),
        due_ms=times.due_after(last),
        runs=tuple(Run(due_ms=at, job=times.job(at), overlap=policy.overlap) for at in chosen),
        skips=skips,
    )


def _one(same: Firing, times: Timetable, due_ms: int, following: int | None) -> Firing:
    """Start the only occurrence that has fallen due, as almost always."""
    return Firing(
        tenant=same.tenant,
        id=same.id,
        version=same.version,
        cursor_ms=same.cursor_ms,
        next_cursor_ms=due_ms,
        due_ms=None if following is None else following + times.offset_ms,
        runs=(Run(due_ms=due_ms, job=times.job(due_ms), overlap=times.spec.policy.overlap),),
        backfill=same.backfill,
        keep=same.keep,
        zones=same.zones,
    )


def _skips(times: Timetable, cursor_ms: int, before_ms: int, reason: str) -> tuple[Skip, ...]:
    """Note what lies between the cursor and the first occurrence that is fired."""
    first = times.next_after(cursor_ms)
    if first is None or first >= before_ms:
        return ()
    counted = len(times.up_to(cursor_ms, before_ms - 1, MOST_COUNTED + 1))
    return (
        Skip(
            due_ms=times.latest_until(before_ms - 1) or first,
            first_ms=first,
            reason=reason,
            count=counted if counted <= MOST_COUNTED else None,
        ),
    )


def _backfilled(
    planned: Firing, backfill: Backfill, times: Timetable, unfinished: int, now_ms: int
) -> Firing:
    """Add as many runs of the backfill as there is room for."""
    room = max(0, min(backfill.limit - unfinished, MOST_RUNS - len(planned.runs)))
    chosen, everything = times.unbounded(backfill.cursor_ms, backfill.to_ms, room)
    more = not everything
    runs = tuple(
        Run(
            due_ms=due_ms,
            job=times.job(due_ms, run_at_ms=now_ms),
            kind=RunKind.BACKFILL,
            overlap=Overlap.ALLOW,
        )
        for due_ms in chosen
    )
    left = replace(
        backfill,
        cursor_ms=(chosen[-1] if chosen else backfill.cursor_ms) if more else backfill.to_ms,
    )
    complete = not more and not chosen and unfinished == 0
    due_ms = planned.due_ms
    if not complete:
        # What had its run before gets no job whose end could wake us: there may be room at once.
        look_ms = now_ms if chosen else now_ms + BACKFILL_LOOK_MS
        due_ms = min(look_ms, END_MS if due_ms is None else due_ms)
    merged = sorted((*planned.runs, *runs), key=_due)
    return replace(planned, runs=tuple(merged), backfill=None if complete else left, due_ms=due_ms)


def _due(run: Run) -> int:
    return run.due_ms
