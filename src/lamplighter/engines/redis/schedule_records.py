"""Schedules, their runs and plans for them, as the store keeps and takes them.

A schedule is declared in `layout.py`; of runs and plans the other side is `lua/lib/runs.lua` and
`lua/fire.lua`.
"""

from __future__ import annotations

from struct import Struct

from lamplighter.engines.redis import inputs, records
from lamplighter.engines.redis.layout import SCHEDULE
from lamplighter.model.errors import InvalidName
from lamplighter.model.names import KEY_LIMIT, shown
from lamplighter.port import texts
from lamplighter.port.schedules import (
    Backfill,
    DueSchedule,
    Firing,
    Overlap,
    Run,
    RunKind,
    RunRecord,
    RunState,
    ScheduleRecord,
    Skip,
)

OVERLAPS = {
    Overlap.SKIP: b"S",
    Overlap.ALLOW: b"A",
    Overlap.QUEUE_ONE: b"O",
    Overlap.QUEUE_ALL: b"Q",
    Overlap.CANCEL_RUNNING: b"C",
}
STATES = {
    b"Q": RunState.QUEUED,
    b"R": RunState.STARTED,
    b"K": RunState.SKIPPED,
    b"S": RunState.SUCCEEDED,
    b"D": RunState.DEAD,
    b"C": RunState.CANCELLED,
    b"E": RunState.EXPIRED,
}
_KINDS = {RunKind.DUE: b"D", RunKind.TRIGGER: b"T", RunKind.BACKFILL: b"B"}
_KINDS_READ = {letter: kind for kind, letter in _KINDS.items()}
_LONGEST_ID = 4 * KEY_LIMIT
_HOLDER = "schedule"
"""Who holds a schedule that its own policy holds."""
_SCHEDULE = SCHEDULE.reader(
    *("failures", "backfilling", "flags", "version", "cursor", "due", "created", "changed"),
    *("fired", "skipped", "last_due", "last_job", *SCHEDULE.texts),
)
_DUE, _LAST_DUE = SCHEDULE.flags["due"], SCHEDULE.flags["last_due"]
_NO_JOB = bytes(26)
_PLAN = Struct("<QqqBqIIHH")
_RUN = Struct("<qcc")
_SKIP = Struct("<qqQB")
_TEXT = Struct("<H")
_NOTED = Struct("<qQQccB")
_SEVERAL = Struct("<qQ")
_MOST_KEPT = 0xFFFFFFFF


# ── to the store ─────────────────────────────────────────────────────────────────────────────


def check_id(schedule_id: str) -> str:
    """Refuse a name that cannot stand in a job or a key."""
    if "\0" in schedule_id:
        raise inputs.with_nul(schedule_id)
    size = len(schedule_id.encode())
    if size > _LONGEST_ID:
        raise InvalidName(
            f"schedule id {shown(schedule_id)} has {size:,} bytes, the limit is {_LONGEST_ID}",
            hint=f"shorten it to {KEY_LIMIT} characters",
            value=shown(schedule_id),
        )
    return schedule_id


def is_id(schedule_id: str) -> bool:
    """Tell whether there can be a schedule of this name."""
    return texts.clean(schedule_id) == schedule_id


def plan_to_text(firing: Firing) -> bytes:
    """Pack a plan; its jobs are sent apart."""
    hold = "" if firing.hold is None else records.mark_to_text(_HOLDER, firing.hold)
    succeeded, others = firing.keep
    return b"".join(
        (
            _PLAN.pack(
                firing.version,
                firing.cursor_ms,
                firing.next_cursor_ms,
                firing.due_ms is not None,
                firing.due_ms or 0,
                min(succeeded, _MOST_KEPT),
                min(others, _MOST_KEPT),
                len(firing.runs),
                len(firing.skips),
            ),
            *map(_run_to_text, firing.runs),
            *map(_skip_to_text, firing.skips),
            _with_length(backfill_to_text(firing.backfill)),
            _with_length(hold),
            _with_length(texts.clean(firing.zones)),
        )
    )


def _run_to_text(run: Run) -> bytes:
    return _RUN.pack(run.due_ms, _KINDS[run.kind], OVERLAPS[run.overlap])


def _skip_to_text(skip: Skip) -> bytes:
    reason = texts.clean(skip.reason).encode()[:255]
    return _SKIP.pack(skip.first_ms, skip.due_ms, skip.count or 0, len(reason)) + reason


def _with_length(text: str) -> bytes:
    data = text.encode()
    return _TEXT.pack(len(data)) + data


def backfill_to_text(backfill: Backfill | None) -> str:
    """Write a backfill: first what it is, then how far it has come."""
    if backfill is None:
        return ""
    return f"{same_backfill(backfill)}{backfill.cursor_ms} {backfill.made}"


def same_backfill(backfill: Backfill) -> str:
    """Write what a backfill is; the same one begins so however far it has come."""
    return f"{backfill.from_ms} {backfill.to_ms} {backfill.limit} "


# ── from the store ───────────────────────────────────────────────────────────────────────────


def schedule_of(name: bytes, value: bytes, spec: bytes) -> ScheduleRecord:
    """Read a schedule; its name is its key."""
    return due_of(name, value, spec).record


def due_of(name: bytes, value: bytes, spec: bytes) -> DueSchedule:
    """Read a schedule that is to be planned."""
    (
        failures, backfilling, flags, version, cursor, due, created, changed, fired, skipped,
        last_due, last_job, tenant, type_, zones, hold, backfill,
    ) = _SCHEDULE.unpack_from(value)  # fmt: skip
    type_at = _SCHEDULE.size + tenant
    zones_at = type_at + type_
    hold_at = zones_at + zones
    backfill_at = hold_at + hold
    return DueSchedule(
        record=ScheduleRecord(
            id=name[tenant + 1 :].decode(),
            spec=spec.decode(),
            tenant=value[_SCHEDULE.size : type_at].decode(),
            type=value[type_at:zones_at].decode(),
            version=version,
            cursor_ms=cursor,
            due_ms=due if flags & _DUE else None,
            created_at_ms=created,
            changed_at_ms=changed,
            fired=fired,
            skipped=skipped,
            failures=failures,
            last_due_ms=last_due if flags & _LAST_DUE else None,
            last_job=None if last_job == _NO_JOB else last_job.decode(),
            hold=texts.mark_of(value[hold_at:backfill_at].decode()) if hold else None,
            backfill=_backfill_of(value[backfill_at:].decode()) if backfill else None,
            zones=value[zones_at:hold_at].decode(),
        ),
        backfilling=backfilling,
    )


def _backfill_of(text: str) -> Backfill:
    from_ms, to_ms, limit, cursor_ms, made = map(int, text.split())
    return Backfill(from_ms=from_ms, to_ms=to_ms, limit=limit, cursor_ms=cursor_ms, made=made)


def due_of_run(run: bytes) -> int:
    """Return when a run was due."""
    return _NOTED.unpack_from(run)[0]


def run_of(schedule_id: str, run: bytes, claimed_ms: int) -> RunRecord:
    """Read a run; ``claimed_ms`` is when its job was handed out, 0 if nobody knows."""
    due, at, finished, state, kind, size = _NOTED.unpack_from(run)
    job = run[_NOTED.size : _NOTED.size + size].decode() or None
    reason: str | None = None
    first: int | None = None
    count: int | None = 1
    if state == b"K":
        reason, first, count = _tail_of(run[_NOTED.size + size :])
    return RunRecord(
        schedule=schedule_id,
        due_ms=due,
        kind=_KINDS_READ[kind],
        state=STATES[state],
        at_ms=at,
        job_id=job,
        reason=reason,
        first_ms=first,
        count=count,
        started_at_ms=claimed_ms or None,
        finished_at_ms=finished or None,
    )


def _tail_of(tail: bytes) -> tuple[str, int | None, int | None]:
    """Read why occurrences were skipped, the first of them, and how many."""
    reason_end = 1 + tail[0]
    reason = tail[1:reason_end].decode("utf-8", "replace")
    several = tail[reason_end + 1 + tail[reason_end] :]
    if not several:
        return reason, None, 1
    first, count = _SEVERAL.unpack(several)
    return reason, first, count or None
