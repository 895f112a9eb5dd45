"""due_schedules, fire: hand out what is to be planned now, and write the plans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.overlap import BY, Judge, Standing, standings
from lamplighter.model.fields import SCHEDULE
from lamplighter.port import texts
from lamplighter.port.rows import SCHEDULE_WIDTH, schedule_of
from lamplighter.port.schedules import DueSchedule, DueSchedules, FireAnswer, Fired

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lamplighter.engines.sqlite.transaction import Row, Transaction
    from lamplighter.port.schedules import Firing, Skip

SQL = load("fire")
_DUE = SCHEDULE.index("due")
_NUMBER, _WAKE, _BACKFILLING = range(SCHEDULE_WIDTH, SCHEDULE_WIDTH + 3)
_FORGOTTEN = 100
"""Runs of each sort that a plan removes at most: nobody should wait long for it."""


def due_schedules(
    tx: Transaction,
    limit: int,
    lease_ms: int,
    newest_first: bool,  # noqa: FBT001 - verbs are called by position
) -> DueSchedules:
    """Hand out up to ``limit``, and say when there is more."""
    now = tx.now
    rows = tx.all(SQL["newest" if newest_first else "longest"], now, limit)
    if rows:
        tx.many(SQL["lease"], [(now + lease_ms, row[_NUMBER]) for row in rows])
    following = tx.one(SQL["next"])
    return DueSchedules(
        schedules=[
            DueSchedule(record=schedule_of(row), backfilling=row[_BACKFILLING]) for row in rows
        ],
        now_ms=now,
        poll_after_ms=None if following is None else max(0, following[0] - now),
        oldest_ms=now - _due_since(rows[0]) if rows else 0,
    )


def _due_since(row: Row) -> int:
    """Return since when a schedule has been due, however often it was handed out since."""
    wake: int = row[_WAKE]
    return wake if row[_DUE] is None else min(wake, row[_DUE])


def fire(tx: Transaction, firings: Sequence[Firing]) -> list[Fired]:
    """Judge each by what is stored then, and write them."""
    return [answer for part in _parts(firings) for answer in _fire(tx, part)]


def _parts(firings: Sequence[Firing]) -> Iterator[list[Firing]]:
    """Divide plans so that no part has two for one schedule: the second sees what the first did."""
    part: dict[tuple[str, str], Firing] = {}
    for firing in firings:
        if _key(firing) in part:
            yield list(part.values())
            part = {}
        part[_key(firing)] = firing
    yield list(part.values())


def _key(firing: Firing) -> tuple[str, str]:
    return firing.tenant, firing.id


def _fire(tx: Transaction, firings: list[Firing]) -> list[Fired]:
    found = standings(tx, [_key(firing) for firing in firings])
    valid = [
        (firing, standing)
        for firing in firings
        if (standing := found.get(_key(firing))) is not None
        and (standing.version, standing.cursor) == (firing.version, firing.cursor_ms)
    ]
    judge = Judge(tx, [run.job for firing, _ in valid for run in firing.runs])
    for firing, standing in valid:
        judge.start_queued(standing)
        for skip in firing.skips:
            _note(tx, standing, skip)
        for run in firing.runs:
            judge.judge(standing, run)
    judge.finish()
    tx.many(SQL["write"], [_row(tx.now, firing, standing) for firing, standing in valid])
    for name, which in (("forget_succeeded", 0), ("forget_failed", 1)):
        tx.many(SQL[name], [(s.number, f.keep[which], _FORGOTTEN) for f, s in valid])
    done = {_key(firing): _answer(standing) for firing, standing in valid}
    return [done.get(_key(firing)) or Fired(firing.id, FireAnswer.STALE) for firing in firings]


def _note(tx: Transaction, standing: Standing, skip: Skip) -> None:
    """Note a skip, unless something covers it."""
    reason = texts.clean(skip.reason)
    values = (standing.number, skip.due_ms, tx.now, reason, skip.first_ms, skip.count)
    if tx.run(SQL["skip"], *values):
        standing.skipped += 1 if skip.count is None else skip.count
        standing.resolve(skip.due_ms)


def _row(now: int, firing: Firing, standing: Standing) -> Row:
    """Build what a plan makes of its schedule."""
    wake = firing.due_ms
    if standing.ended:
        wake = now if wake is None else min(wake, now)
    hold = None if firing.hold is None else texts.mark_to_text(BY, firing.hold, now)
    return (
        firing.next_cursor_ms,
        firing.due_ms,
        wake,
        hold,
        _backfill(firing, standing),
        firing.zones,
        standing.fired,
        standing.skipped,
        standing.last_due,
        standing.last_job,
        standing.active,
        standing.number,
    )


def _backfill(firing: Firing, standing: Standing) -> str | None:
    """Write where its backfill stands, with the jobs that were made now."""
    left = firing.backfill
    if left is None:
        return None
    return texts.backfill_to_text(replace(left, made=left.made + standing.backfilled))


def _answer(standing: Standing) -> Fired:
    return Fired(
        standing.id,
        FireAnswer.DONE,
        tuple(standing.started),
        queued=standing.queued,
        skipped=standing.skipped,
    )
