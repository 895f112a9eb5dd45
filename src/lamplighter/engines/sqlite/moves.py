"""The five moves of a job: it enters its turn, leaves it, starts, stops and ends.

Whatever happens to a job is made of these, and each is written only here: a verb decides, then
moves. Jobs are moved many at a time, because a statement costs about as much as the rows it writes.
Beside the moves stands what removes a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lamplighter.engines.sqlite.statements import load
from lamplighter.model.job import JobState, next_requirement
from lamplighter.port import texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lamplighter.engines.sqlite.transaction import Row, Transaction
    from lamplighter.model.lifecycle import Next

SQL = load("moves")
_SUCCEEDED, _WAITING = JobState.SUCCEEDED, JobState.WAITING
_END_RUN, _WAKE_SCHEDULE = load("runs")["end"], load("runs")["wake"]

Place = tuple[int, str, int, int]
"""Where a job stands: lane, tenant, due time and sequence."""
Ended = tuple[str, JobState, str | None]
"""A job that has ended: id, state, and the schedule that made it."""
Stop = tuple["Running", tuple[int, int, str], "Next", str | None]
"""A running job, what guards its row (sequence, lease number, nonce), what it becomes, and the
error of that as text.
"""


class Running(NamedTuple):
    """A job as a settle finds it: with a fence that holds, it runs."""

    id: str
    seq: int
    state: str
    lease: int
    nonce: str | None
    cancelling: bool
    expires: int
    """Of one that runs."""
    lane: int
    tenant: str
    held: bool
    generation: int
    claimed: int
    worker: str
    attempt: int
    schedule: str | None
    started: int


def enter(tx: Transaction, places: Iterable[Place]) -> None:
    """Let jobs that wait now stand in their turns, or move forward there."""
    heads: dict[tuple[int, str], tuple[int, int]] = {}
    for lane, tenant, due, seq in places:
        turn = (lane, tenant)
        head = heads.get(turn)
        if head is None or (due, seq) < head:
            heads[turn] = (due, seq)
    catalog, now = tx.catalog, tx.now
    tx.many(
        SQL["enter"],
        (
            (lane, catalog.by_id(lane).band, tenant, due, seq, now)
            for (lane, tenant), (due, seq) in heads.items()
        ),
    )


def leave(tx: Transaction, turns: Iterable[tuple[int, str]]) -> None:
    """Look up the new heads of turns that jobs have left, given as (lane, tenant)."""
    for lane, tenant in dict.fromkeys(turns):
        head = tx.one(SQL["head"], lane, tenant)
        if head is None:
            tx.run(SQL["remove_turn"], lane, tenant)
        else:
            tx.run(SQL["rehead"], lane, tenant, head[0], head[1], tx.now)


def start(tx: Transaction, jobs: Sequence[Row]) -> None:
    """Let waiting jobs run, given as the parameters of `start`.

    The claim has moved their turns on itself: who is next in line is what it decides.
    """
    changed = tx.many(SQL["start"], jobs)
    if changed != len(jobs):
        raise RuntimeError(f"claim wrote {changed} of {len(jobs)} jobs: the index is wrong")


def stop(tx: Transaction, stops: Sequence[Stop]) -> None:
    """Take jobs out of `running`; each ends, or waits again."""
    succeeded: list[Row] = []
    failed: list[Row] = []
    waiting: list[Row] = []
    places: list[Place] = []
    ended: list[Ended] = []
    for job, guard, following, error in stops:
        state = following.state
        if state is _WAITING:
            lane, due = _next_lane(tx, job.lane, following), tx.now + following.delay_ms
            waiting.append((due, lane, *_story(following, error), *guard))
            if not job.held:
                places.append((lane, job.tenant, due, job.seq))
            continue
        ended.append((job.id, state, job.schedule))
        if state is _SUCCEEDED:
            note = following.result_note and texts.clean(following.result_note)
            succeeded.append((tx.now, following.result, note, *guard))
        else:
            reason = None if following.reason is None else texts.clean(following.reason)
            story = _story(following, error)
            failed.append((state.value, tx.now, reason, *story, *guard))
    for name, rows in (("succeed", succeeded), ("fail", failed), ("wait", waiting)):
        if rows:
            tx.many(SQL[name], rows)
    if places:
        enter(tx, places)
    end(tx, ended)


def _story(following: Next, error: str | None) -> Row:
    """Write the counters, and the error with its fingerprint."""
    return (
        following.attempt,
        following.crashes,
        following.losses,
        int(following.suspect),
        error,
        following.error and texts.clean(following.error.fingerprint),
    )


def _next_lane(tx: Transaction, lane: int, following: Next) -> int:
    """Return the lane in which a job of a lane waits from now on."""
    if not following.suspect and following.version is None:
        return lane
    wanted = next_requirement(
        tx.catalog.by_id(lane).requirement, suspect=following.suspect, version=following.version
    )
    return tx.catalog.beside(tx, lane, wanted)


def end(tx: Transaction, ended: Iterable[Ended]) -> None:
    """Tell whom it concerns that jobs have ended: their runs, and the schedules of these.

    What no run names changes nothing; neither does a run of a schedule that is gone.
    """
    rows = [(state.value, tx.now, id_) for id_, state, schedule in ended if schedule is not None]
    if rows:
        tx.many(_END_RUN, rows)
        tx.many(_WAKE_SCHEDULE, rows)


def remove(tx: Transaction, jobs: Sequence[Row]) -> None:
    """Delete jobs that have ended, given as (seq, id), with their history, logs and progress."""
    tx.many(SQL["remove_job"], [(seq,) for seq, _ in jobs])
    ids = [(job_id,) for _, job_id in jobs]
    for name in ("remove_history", "remove_log", "remove_progress"):
        tx.many(SQL[name], ids)
