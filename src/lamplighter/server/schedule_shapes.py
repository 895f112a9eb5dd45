"""What callers get of schedules and their runs. Fields stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from lamplighter.model.errors import InvalidInput
from lamplighter.model.recurring import CatchUp, Overlap, Spec
from lamplighter.model.schedule import Calendar, Effect, Mark, Preview, Touch, encode
from lamplighter.port.schedules import Backfill, RunKind, RunRecord, RunState
from lamplighter.schedules import Schedule
from lamplighter.secrecy import concealed
from lamplighter.server.auth import Principal
from lamplighter.server.marks import Note, instant, maybe_instant, note
from lamplighter.server.shapes import LARGE, plain


class ScheduleSpec(msgspec.Struct, kw_only=True, frozen=True):
    """When a schedule fires, which job it runs, and what it does when things go wrong."""

    calendar: dict[str, Any]
    """As it is stored: `kind`, and what belongs to it."""
    description: str
    """The calendar in words."""
    arguments: Any
    """Without those that are secret."""
    queue: str
    priority: str
    timeout: float | None
    tags: list[str]
    metadata: dict[str, Any]
    overlap: Overlap
    catch_up: CatchUp
    window: float
    jitter: float
    shift: float
    """Seconds by which its jitter fires it later than its calendar says."""
    start: datetime | None
    end: datetime | None
    max_runs: int | None
    hold_after: int | None
    keep_succeeded: int
    keep_failed: int
    omitted: list[str]
    """In lists: fields that are left out because they are large; `GET /v1/schedules/{id}` has
    them."""


class BackfillState(msgspec.Struct, kw_only=True, frozen=True, rename={"from_": "from"}):
    """How far a backfill is."""

    from_: datetime
    to: datetime
    at: datetime
    """All up to this have their job."""
    at_once: int
    made: int


class ScheduleShape(msgspec.Struct, kw_only=True, frozen=True):
    """A schedule."""

    id: str
    type: str
    tenant: str
    version: int
    """Grows with every change."""
    next_run: datetime | None
    """When it is fired next; null: never, or it is held."""
    spec: ScheduleSpec | None
    unreadable: str | None
    """Why there is no `spec`: another version has written it, or whoever has changed it may not
    read schedules."""
    fired: int
    skipped: int
    failures: int
    """Runs that have failed since the last that succeeded."""
    last_due: datetime | None
    last_job: str | None
    hold: Note | None
    backfill: BackfillState | None
    created_at: datetime
    changed_at: datetime


class SchedulePage(msgspec.Struct, kw_only=True, frozen=True):
    """Some schedules by tenant and id."""

    schedules: list[ScheduleShape]
    next: str | None
    """Cursor of the next page; null: that was all. A page may be short and have one."""


class PutSchedule(msgspec.Struct, kw_only=True, frozen=True):
    """What became of a schedule that was put."""

    id: str
    tenant: str
    answer: Literal["created", "changed", "already"]
    """`created`; `changed`; `already`: it was exactly so before."""
    version: int
    next_run: datetime | None
    """When it is fired next; null: never, or it is held."""


class DeletedSchedule(msgspec.Struct, kw_only=True, frozen=True):
    """A schedule that is gone."""

    id: str


class TriggeredRun(msgspec.Struct, kw_only=True, frozen=True):
    """A run that was asked for."""

    id: str
    job: str
    """Id of its job."""
    state: RunState
    """`started`, or `queued`: it runs when the run before it has ended."""


class RunShape(msgspec.Struct, kw_only=True, frozen=True):
    """What became of an occurrence."""

    due: datetime
    state: RunState
    kind: RunKind
    job: str | None
    reason: str | None
    """Why it was skipped."""
    first: datetime | None
    """Of skipped ones that stand together: the first."""
    count: int | None
    """How many they are; null: very many."""
    written_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class RunPage(msgspec.Struct, kw_only=True, frozen=True):
    """Some runs, the latest due first."""

    runs: list[RunShape]
    next: str | None
    """Cursor of the next page; null: that was all."""


class PreviewShape(msgspec.Struct, kw_only=True, frozen=True):
    """An occurrence to come."""

    utc: datetime
    local: str
    """The same instant as the clocks of its time zone show it, with the offset."""
    mark: Mark | None
    """What a change of the clocks has to do with it."""


class ClockChange(msgspec.Struct, kw_only=True, frozen=True):
    """A change of the clocks that touches a schedule."""

    at: datetime
    timezone: str
    effect: Effect
    """`skipped`, `moved`: a time that the clocks skip does not happen, or happens when they have;
    `doubled`, `first only`: one that they show twice happens twice, or the first time."""
    wall: str
    """The first time of the schedule that it concerns, as the clocks would show it."""


class Previews(msgspec.Struct, kw_only=True, frozen=True):
    """The next occurrences of a schedule."""

    id: str
    shift: float
    """Seconds by which each is fired later, because of the jitter."""
    clocks: ClockChange | None
    """The next change of the clocks that touches it; null: none does."""
    runs: list[PreviewShape]


class Foretold(msgspec.Struct, kw_only=True, frozen=True):
    """When a schedule would fire that is not stored."""

    description: str
    """The calendar in words."""
    shift: float | None
    """Seconds by which each is fired later, because of the jitter; null: its id decides about
    that, and none was given."""
    clocks: ClockChange | None
    """The next change of the clocks that touches it; null: none does."""
    runs: list[PreviewShape]


_NOT_READ = "the scope `schedules:read` is needed to see it"


def schedule(found: Schedule, principal: Principal, *, content: bool = True) -> ScheduleShape:
    """Return a schedule; what cannot be read of it is told as `unreadable`.

    Without ``content``, as the answer to a change by a caller who may not read schedules, nothing
    is told of its job and its calendar.
    """
    record = found.record
    try:
        spec, unreadable = (_spec(found, found.spec), None) if content else (None, _NOT_READ)
    except InvalidInput as error:
        spec, unreadable = None, error.cause
    return ScheduleShape(
        id=record.id,
        type=record.type,
        tenant=record.tenant,
        version=record.version,
        next_run=next_run(found),
        spec=spec,
        unreadable=unreadable,
        fired=record.fired,
        skipped=record.skipped,
        failures=record.failures,
        last_due=maybe_instant(record.last_due_ms),
        last_job=record.last_job,
        hold=note(record.hold, principal),
        backfill=_backfill(record.backfill),
        created_at=instant(record.created_at_ms),
        changed_at=instant(record.changed_at_ms),
    )


def brief(found: Schedule, principal: Principal) -> ScheduleShape:
    """Return a schedule as lists show it: what is large is left out, and said to be."""
    shown = schedule(found, principal)
    spec = shown.spec
    if spec is None:
        return shown
    none: dict[str, Any] = {"arguments": None, "metadata": {}}
    large = [name for name in none if len(msgspec.json.encode(getattr(spec, name))) > LARGE]
    if not large:
        return shown
    left = msgspec.structs.replace(spec, **{n: none[n] for n in large}, omitted=large)
    return msgspec.structs.replace(shown, spec=left)


def next_run(found: Schedule) -> datetime | None:
    """Return when a schedule is fired next."""
    return maybe_instant(found.next_run_ms)


def _spec(found: Schedule, spec: Spec) -> ScheduleSpec:
    template, policy = spec.template, spec.policy
    extras = template.extras
    return ScheduleSpec(
        calendar=encode(spec.calendar),
        description=spec.calendar.describe(),
        arguments=plain(concealed(template.args, extras.secrets)),
        queue=template.queue,
        priority=template.level.label,
        timeout=extras.timeout,
        tags=list(extras.tags),
        metadata=dict(extras.metadata),
        overlap=policy.overlap,
        catch_up=policy.catch_up,
        window=policy.window_ms / 1000,
        jitter=policy.jitter_ms / 1000,
        shift=found.shift.total_seconds(),
        start=maybe_instant(policy.start_ms),
        end=maybe_instant(policy.end_ms),
        max_runs=policy.max_runs,
        hold_after=policy.hold_after,
        keep_succeeded=policy.keep_succeeded,
        keep_failed=policy.keep_failed,
        omitted=[],
    )


def _backfill(found: Backfill | None) -> BackfillState | None:
    if found is None:
        return None
    return BackfillState(
        from_=instant(found.from_ms),
        to=instant(found.to_ms),
        at=instant(found.cursor_ms),
        at_once=found.limit,
        made=found.made,
    )


def run(found: RunRecord) -> RunShape:
    """Return what became of an occurrence."""
    return RunShape(
        due=instant(found.due_ms),
        state=found.state,
        kind=found.kind,
        job=found.job_id,
        reason=found.reason,
        first=maybe_instant(found.first_ms),
        count=found.count,
        written_at=instant(found.at_ms),
        started_at=maybe_instant(found.started_at_ms),
        finished_at=maybe_instant(found.finished_at_ms),
    )


def previews(found: Schedule, runs: Sequence[Preview], touch: Touch | None) -> Previews:
    """Return the next occurrences of a schedule."""
    return Previews(
        id=found.id,
        shift=found.shift.total_seconds(),
        clocks=_clocks(touch),
        runs=list(map(_preview, runs)),
    )


def foretold(
    calendar: Calendar, shift_ms: int | None, runs: Sequence[Preview], touch: Touch | None
) -> Foretold:
    """Return when a schedule would fire that is not stored."""
    return Foretold(
        description=calendar.describe(),
        shift=None if shift_ms is None else shift_ms / 1000,
        clocks=_clocks(touch),
        runs=list(map(_preview, runs)),
    )


def _preview(found: Preview) -> PreviewShape:
    return PreviewShape(utc=found.utc, local=found.local.isoformat(), mark=found.mark)


def _clocks(touch: Touch | None) -> ClockChange | None:
    if touch is None:
        return None
    return ClockChange(
        at=touch.at,
        timezone=touch.timezone,
        effect=touch.effect,
        wall=touch.wall.isoformat(),
    )
