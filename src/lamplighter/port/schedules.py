"""Schedules: the verbs that keep and fire them, and what goes in and comes out.

The store does not read calendars. What a schedule is to do stands in its ``spec``, a text that only
`model/schedule` reads; pure code plans from it what has fallen due, and `fire` writes that plan in
one step, if nobody has written since. So any number of coordinators may plan the same schedule,
at any speed and in any belief about themselves: of their plans one is written.

Words: an *occurrence* is an instant that the calendar names, its ``due_ms``. What became of it is
its *run*: a job, or the reason why there is none. The *cursor* of a schedule is the last instant
of its calendar that is resolved: all occurrences up to it have their run, or have been skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lamplighter.model.names import DEFAULT_TENANT, check_words
from lamplighter.model.quick import quick
from lamplighter.model.recurring import Overlap
from lamplighter.port.guards import bounded, check_jobs, check_note, check_owners
from lamplighter.port.verbs import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.model.job import Mark, NewJob

BEHIND_A_RUN = ("schedule", "it waits until the run before it has ended")
"""Who holds a job that waits for another run of its schedule, and why."""
MOST_RUNS = 100
"""Runs that one plan may have."""

# ── put ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A schedule as it is put."""

    id: str
    """The user's own name for it, unique in its tenant."""
    spec: str
    """Calendar, policy and template of the jobs, as text; equal texts are equal schedules."""
    tenant: str
    """Whose it is and whose jobs it makes. Another tenant's schedule of the same id is another."""
    type: str
    """Type of its jobs, to be found by."""
    due_ms: int | None
    """When it is to be looked at first: the next occurrence, as far as the caller can tell. None:
    there is none. Too early does no harm."""
    first_ms: int | None = None
    """The occurrence that this is for, without its jitter. If it is past when it arrives, a new
    schedule has missed it, and does not begin behind it. None: it is not known."""
    zones: str = ""
    """Version of the time zone data that ``due_ms`` was computed with."""
    expect_version: int | None = None
    """Put it only if there is one, of this version; None: whatever there is."""


class PutAnswer(StrEnum):
    """What became of one put."""

    CREATED = "created"
    """It was not there before."""
    CHANGED = "changed"
    """It was there, and is as given now."""
    ALREADY = "already"
    """It was exactly so before; nothing was changed."""
    CONFLICT = "conflict"
    """It is not of the version that was expected; nothing was changed."""
    UNKNOWN = "unknown"
    """A version of it was expected, and it is not there; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Put:
    """Answer to one put."""

    id: str
    """Id of the schedule."""
    answer: PutAnswer
    """What became of it."""
    version: int
    """The one it has now; 0 if it is unknown."""


# ── fire ─────────────────────────────────────────────────────────────────────────────────────


class RunKind(StrEnum):
    """Where a run comes from."""

    DUE = "due"
    """Its calendar says so."""
    TRIGGER = "trigger"
    """Somebody asked for it."""
    BACKFILL = "backfill"
    """It is made up for."""


class RunState(StrEnum):
    """What became of an occurrence."""

    QUEUED = "queued"
    """Its job is held until the run before it has ended."""
    STARTED = "started"
    """Its job may run, or runs."""
    SKIPPED = "skipped"
    """There is no job for it."""
    SUCCEEDED = "succeeded"
    """Its job succeeded."""
    DEAD = "dead"
    """Its job is dead."""
    CANCELLED = "cancelled"
    """Its job was cancelled."""
    EXPIRED = "expired"
    """Its job was not run in time."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An occurrence with its job, as planned."""

    due_ms: int
    job: NewJob
    kind: RunKind = RunKind.DUE
    overlap: Overlap = Overlap.ALLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Occurrences that get no job, as planned."""

    due_ms: int
    """The last of them."""
    first_ms: int
    reason: str
    """One word: `missed`, `late`, …"""
    count: int | None = 1
    """How many; None: more than are worth counting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Occurrences of the past that are to be run, a few at a time."""

    from_ms: int
    """After this instant…"""
    to_ms: int
    """…up to this one."""
    cursor_ms: int
    """The last one that is resolved; ``from_ms`` at first."""
    limit: int
    """How many of its jobs may be unfinished at once."""
    made: int = 0
    """Jobs made so far."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A plan for one schedule, made from what `due_schedules` gave."""

    tenant: str
    """Whose the schedule is, and so are the jobs of all runs."""
    id: str
    version: int
    cursor_ms: int
    """Version and cursor as they were read: the plan counts only while they are still so."""
    next_cursor_ms: int
    """The cursor from now on; never earlier."""
    due_ms: int | None
    """When the schedule is to be looked at next; None: never again, unless one of its jobs ends."""
    runs: tuple[Run, ...] = ()
    """In the order of their due times."""
    skips: tuple[Skip, ...] = ()
    backfill: Backfill | None = None
    """Where its backfill stands from now on; None: there is none, or it is complete. The jobs that
    this plan makes are not yet among those ``made``: the store adds them."""
    hold: str | None = None
    """A reason to hold the schedule from now on, or None."""
    keep: tuple[int, int] = (100, 100)
    """How many runs are kept that succeeded, and how many others that have ended."""
    zones: str = ""


class FireAnswer(StrEnum):
    """What became of one plan."""

    DONE = "done"
    STALE = "stale"
    """Somebody has fired, put or held the schedule meanwhile, or it is gone; nothing changed."""


@quick
@dataclass(frozen=True, slots=True)
class Fired:
    """Answer to one plan: which of its runs got a job that may run now, and what was skipped."""

    id: str
    answer: FireAnswer
    started: tuple[str, ...] = ()
    """Jobs that may run from now on: new ones, and one that was queued."""
    queued: int = 0
    skipped: int = 0


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRecord:
    """Everything the store knows of a schedule."""

    id: str
    """Its id, unique in its tenant."""
    spec: str
    """Calendar, job and policy as JSON; `Schedule.spec` reads it."""
    tenant: str
    """Whose it is."""
    type: str
    """Job type of its runs."""
    version: int
    """Raised by each change of it."""
    cursor_ms: int
    """Occurrences up to here are settled."""
    due_ms: int | None
    """When the next occurrence is to be fired; None: never."""
    created_at_ms: int
    """When it was put first."""
    changed_at_ms: int
    """When it was put last."""
    fired: int = 0
    """Jobs made for occurrences so far, without triggers and backfills."""
    skipped: int = 0
    """Occurrences for which no job was made."""
    failures: int = 0
    """Runs that have ended dead since the last that succeeded."""
    last_due_ms: int | None = None
    """The occurrence that was fired or skipped last."""
    last_job: str | None = None
    """Id of the job made last."""
    hold: Mark | None = None
    """Who holds it, why and since when; None: nobody."""
    backfill: Backfill | None = None
    """The backfill that goes on; None: there is none."""
    zones: str = ""
    """Version of the time zone data that `due_ms` was computed with."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class DueSchedule:
    """A schedule to be planned now."""

    record: ScheduleRecord
    backfilling: int = 0
    """Jobs of its backfill that have not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSchedules:
    """Answer to `due_schedules`."""

    schedules: list[DueSchedule]
    now_ms: int
    """The store's now: plans are made for this instant."""
    poll_after_ms: int | None
    """0: more are due. A number: the next is due then. None: there is none."""
    oldest_ms: int = 0
    """For how long the first of them has been due."""


# ── reads ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFilter:
    """Which schedules; all given fields must match."""

    tenants: tuple[str, ...] = ()
    """Of any of these tenants; empty: of all."""
    types: tuple[str, ...] = ()
    """Of any of these job types; empty: of all."""
    prefix: str = ""
    """Ids that begin so."""
    held: bool | None = None
    """Held ones, or others; None: both."""
    zones_not: str | None = None
    """Those whose plan was made with other time zone data than this."""


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """Some schedules by tenant and id, and where to go on; ``cursor`` None: that was all."""

    schedules: list[ScheduleRecord]
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What became of an occurrence."""

    schedule: str
    """Id of the schedule."""
    due_ms: int
    """The occurrence, in milliseconds since 1970."""
    kind: RunKind
    """Where it comes from."""
    state: RunState
    """What became of it."""
    at_ms: int
    """When that was written first."""
    job_id: str | None = None
    """Id of its job; None: there is none."""
    reason: str | None = None
    """Why it was skipped."""
    first_ms: int | None = None
    """The first of several skipped ones."""
    count: int | None = 1
    """Of skipped ones that stand together: the first, and how many; None: very many."""
    started_at_ms: int | None = None
    """When its job was first handed out, while the job is still known."""
    finished_at_ms: int | None = None
    """When its job ended."""


@dataclass(frozen=True, slots=True)
class RunPage:
    """Some runs, the latest due first, and where to go on."""

    runs: list[RunRecord]
    cursor: str | None


class ScheduleAnswer(StrEnum):
    """What became of one operator's wish."""

    DONE = "done"
    """It was done."""
    ALREADY = "already"
    """It was so before."""
    CONFLICT = "conflict"
    """Its state does not allow it."""
    UNKNOWN = "unknown"
    """There is no such schedule."""


@dataclass(frozen=True, slots=True)
class ScheduleChanged:
    """Answer to one wish."""

    id: str
    """Id of the schedule."""
    answer: ScheduleAnswer
    """What became of the wish."""


@dataclass(frozen=True, slots=True)
class Triggered:
    """Answer to a trigger: the run as `fire` would have made it; no job: skipped, or unknown."""

    id: str
    """Id of the schedule."""
    answer: ScheduleAnswer
    """What became of the wish."""
    job_id: str | None = None
    """Id of the run's job; None: it was skipped, or unknown."""
    state: RunState | None = None
    """State of the run."""


class ScheduleStore(Part):
    """Everything that moves a schedule. A schedule and its jobs are in one shard.

    When a job of a schedule ends, by settle, cancel or purge, then in the same write its run gets
    that end as its state and the time; the schedule's failures are 0 after `succeeded` and one
    more after `dead`; and the schedule is due at once, unless it is held, or the job succeeded and
    neither a queued run nor a backfill waits for that. Nothing of that happens to a schedule that
    is gone, or to a job of it that no run names. A job that is replayed makes its run `started`
    again.

    A schedule is known by its tenant and its id together: the same id in two tenants is two
    schedules, which know nothing of each other. So verbs and reads name the ``tenant``, and what
    is another tenant's is `unknown` to them, as if it were not there.
    """

    async def put_schedules(self, schedules: Sequence[NewSchedule], *, by: str) -> list[Put]:
        """Create or change schedules, all in one write (one per shard), answering in order.

        New: the version is 1, and the cursor the store's now, or just before ``first_ms`` if that
        is earlier. Known with another spec or type: version + 1, and ``due_ms`` as given
        or now if that is later than the one it had; cursor, counts, runs, hold, backfill and the
        last job stay, so that no occurrence is fired twice and none between is lost. Known and
        equal: `already`. Two of one tenant and id in a call follow each other. What is expected in
        a version and not known is `unknown`; what is known, not equal and not of
        ``expect_version`` is `conflict`; both change nothing.
        """
        check_words("operator's name", by)
        if not schedules:
            return []
        return await self._call("put_schedules", check_owners(self._call.bounded(schedules)))

    async def due_schedules(
        self, *, limit: int, lease_ms: int, newest_first: bool = False
    ) -> DueSchedules:
        """Hand out schedules that are due, those first that have been due longest.

        A schedule is due when its ``due_ms`` has come, one of its jobs has ended since, or a
        backfill was begun. Held ones are not due. What is handed out is not handed out again for
        ``lease_ms`` or until `fire`, whichever is first; whoever comes later may plan it too.
        ``newest_first`` turns the order round. Work is O(limit), however many are at rest.
        """
        return await self._call("due_schedules", limit, lease_ms, newest_first)

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        """Write plans, each wholly or not at all, answering in order; of at most 100 runs each.

        A job that is not of the schedule's tenant is refused.

        A plan counts only if version and cursor are still those it was made from; otherwise it is
        `stale` and changes nothing. Then, in one write: cursor, next due time, hold, backfill and
        zones are set as planned, with version + 1 if that holds the schedule or changes where its
        backfill stands, so that no older plan sets it back; skips are noted; and the runs in their
        order are judged by the schedule's active run, the last one that was started and not by a
        backfill or with ``Overlap.ALLOW``. It is over when its job is terminal or gone. Before
        anything else, if it is over, the queued run with the earliest due time is started: its job
        is unheld. Then for each run, while no active run is going on and none is queued, the job
        is created as `submit` would and is the active run. While one is:
        `skip`: noted as skipped (`overlap`). `queue_one`: its job is created held and queued, or
        skipped (`queue_full`) if one is queued already. `queue_all`: created held and queued.
        `cancel_running`: the active job is cancelled as `cancel` would, jobs queued before are
        cancelled and their runs skipped (`replaced`), those of the same plan too, and the job is
        queued; so of several in one plan the last is left.
        `allow` and backfills: created in any case. An occurrence that has a run already gets no
        second one, but a backfill's takes the place of a skipped one; skips that an earlier run
        or skip covers are not noted again. A job whose id exists is not created again. `fired`
        counts runs of kind `due` that got a job, the backfill's ``made`` grows by the jobs created
        for runs of kind `backfill`, `skipped` counts what was skipped (skips of unknown count as
        1). Runs that have ended beyond ``keep`` are removed, the earliest due first,
        some with each plan.
        """
        for firing in self._call.bounded(firings):
            check_jobs(firing.tenant, firing.id, bounded(firing.runs, MOST_RUNS))
        return await self._call("fire", firings) if firings else []

    async def trigger(
        self, schedule_id: str, run: Run, *, by: str, reason: str, tenant: str = DEFAULT_TENANT
    ) -> Triggered:
        """Make a run now, judged as `fire` judges one of kind `trigger`; cursor and due time stay.

        ``run.due_ms`` is replaced by the store's now, or the next millisecond that has no run, is
        no whole second and not the schedule's due time: it never takes the place of an occurrence,
        and calendars name whole seconds, but for one that names a single instant. A held schedule
        is triggered too. Repeated with the same job id: the same answer.
        """
        check_note(by, reason)
        check_jobs(tenant, schedule_id, [run])
        return await self._call("trigger", schedule_id, run, tenant)

    async def backfill(
        self,
        schedule_id: str,
        backfill: Backfill,
        *,
        by: str,
        reason: str,
        tenant: str = DEFAULT_TENANT,
    ) -> ScheduleChanged:
        """Begin to run occurrences of the past, and make the schedule due; version + 1.

        The same again is `already`; another while one is under way is `conflict`.
        """
        check_note(by, reason)
        return await self._call("backfill", schedule_id, backfill, tenant)

    async def hold_schedules(
        self, ids: Sequence[str], *, by: str, reason: str, tenant: str = DEFAULT_TENANT
    ) -> list[ScheduleChanged]:
        """Keep schedules from being fired, version + 1; held: `already`, and the first mark stays.

        Jobs they have made go on; a queued run waits until they are unheld, or triggered.
        """
        check_note(by, reason)
        return (
            await self._call("hold_schedules", self._call.bounded(ids), by, reason, tenant)
            if ids
            else []
        )

    async def unhold_schedules(
        self, ids: Sequence[str], *, by: str, reason: str, tenant: str = DEFAULT_TENANT
    ) -> list[ScheduleChanged]:
        """Let held schedules go on: due now, failures at zero, version + 1; else `already`."""
        check_note(by, reason)
        return (
            await self._call("unhold_schedules", self._call.bounded(ids), by, reason, tenant)
            if ids
            else []
        )

    async def delete_schedules(
        self, ids: Sequence[str], *, by: str, reason: str, tenant: str = DEFAULT_TENANT
    ) -> list[ScheduleChanged]:
        """Remove schedules and their runs. Queued jobs are cancelled; others go on."""
        check_note(by, reason)
        return (
            await self._call("delete_schedules", self._call.bounded(ids), by, reason, tenant)
            if ids
            else []
        )

    # Reads.

    async def schedule(
        self, schedule_id: str, *, tenant: str = DEFAULT_TENANT
    ) -> ScheduleRecord | None:
        """Return one schedule, or None."""
        return await self._call("schedule", tenant, schedule_id)

    async def schedules(
        self, which: ScheduleFilter, *, limit: int, cursor: str | None = None
    ) -> SchedulePage:
        """List schedules by tenant, then by id (both bytewise).

        A page may be short and still have a cursor. A listing of named tenants looks at theirs
        alone, however many others there are.
        """
        return await self._call("schedules", which, limit, cursor)

    async def runs(
        self,
        schedule_id: str,
        *,
        limit: int,
        cursor: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> RunPage:
        """List a schedule's runs, the latest due first."""
        return await self._call("runs", tenant, schedule_id, limit, cursor)
