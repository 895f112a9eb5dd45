"""What goes into the verbs and comes out of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from lamplighter.model.changes import ChangeAnswer as ChangeAnswer  # noqa: PLC0414 - of the port
from lamplighter.model.changes import Changed as Changed  # noqa: PLC0414 - of the port
from lamplighter.model.journal import NO_NEWS, Journal
from lamplighter.model.stride import DEFAULT_MAX_WAIT_MS, DEFAULT_WEIGHT
from lamplighter.port.health import DEAD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamplighter.model.job import Claim, ErrorInfo, Fence, JobRecord, JobState, Level, Mark
    from lamplighter.model.journal import Piece
    from lamplighter.model.versions import Seat

# ── submit ───────────────────────────────────────────────────────────────────────────────────


class SubmitAnswer(StrEnum):
    """What became of one submission."""

    CREATED = "created"
    """It was stored."""
    ALREADY = "already"
    """The id, or the key with the same body, was there before; ``id`` names the existing job."""
    GONE = "gone"
    """The key outlived its job: the job ran and was removed by retention."""
    CONFLICT = "conflict"
    """The key was used with another body; ``id`` names the job that has it."""

    @property
    def existing(self) -> bool:
        """Whether the submission met a job that was there before."""
        return self in {SubmitAnswer.ALREADY, SubmitAnswer.GONE}


@dataclass(frozen=True, slots=True)
class Submitted:
    """Answer to one submission."""

    id: str
    answer: SubmitAnswer


# ── claim ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """What a worker has room for."""

    nonce: str
    """16 hex digits, drawn anew for each request: request id, and half of every fence in it."""
    worker: str
    """Incarnation of the claiming process."""
    queues: tuple[tuple[str, int], ...]
    """Queues in the order to fill, each with its quota; the rest of ``limit`` follows in order."""
    types: tuple[str, ...]
    """Job types this worker can run; others stay where they are."""
    limit: int
    lease_ms: int
    requirements: tuple[str, ...] = ("",)
    """Requirements this worker meets; the empty one is that of ordinary jobs."""
    max_bytes: int = 4 * 1024 * 1024
    """Bytes of arguments after which no further job is handed out; the first always is."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """Answer to a claim."""

    claims: list[Claim]
    poll_after_ms: int | None
    """0: ask again at once. A number: something asked for falls due then. None: nothing known."""


# ── renew, settle ────────────────────────────────────────────────────────────────────────────


class RenewAnswer(StrEnum):
    """What became of one renewal."""

    HELD = "held"
    """The lease was extended."""
    LOST = "lost"
    """It belongs to somebody else, or the job has ended."""
    UNKNOWN = "unknown"
    """Another client has the job locked: not extended, and nothing is known. Ask again."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """Answer to one renewal."""

    id: str
    answer: RenewAnswer
    cancel_requested: bool = False

    @property
    def held(self) -> bool:
        """Whether the lease was extended."""
        return self.answer is RenewAnswer.HELD


class SettleAnswer(StrEnum):
    """What became of one settlement."""

    DONE = "done"
    ALREADY = "already"
    """This very fence settled the job before; nothing was changed."""
    LOST = "lost"
    """The fence is not the current one; nothing was changed."""
    RENEWED = "renewed"
    """Only for rescue: the lease had been extended, so the job was left alone."""
    STARTED = "started"
    """The claim has a start mark, and was to be settled only without one: it was left alone."""
    BUSY = "busy"
    """Another client has the job locked: nothing was changed. Settle it again."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Answer to one settlement."""

    id: str
    answer: SettleAnswer
    state: JobState | None
    """State of the job now, if it is still known."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What a running attempt has to say."""

    id: str
    fence: Fence
    journal: Journal = NO_NEWS
    started: bool = False
    """Set the start mark of the claim."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Answer to one recording."""

    id: str
    held: bool
    """True: it is written. False: the claim belongs to somebody else, or the job has ended, unless
    it is ``busy``."""
    busy: bool = False
    """Another client has the job locked: nothing was written. Record it again."""


@dataclass(frozen=True, slots=True)
class LogPiece:
    """A piece of a job's log; the claim that wrote it is named by its lease number."""

    lease: int
    piece: Piece


@dataclass(frozen=True, slots=True)
class Expired:
    """A claim whose lease ended, as ``rescue`` reads it."""

    claim: Claim
    overdue_ms: int


# ── operators' verbs ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long terminal jobs are kept. Nothing younger than 15 minutes is ever pruned."""

    finished_ms: int = 7 * 86_400_000
    finished_count: int = 1_000_000
    dead_ms: int = 30 * 86_400_000
    key_ms: int = 7 * 86_400_000


RETENTION_FLOOR_MS = 15 * 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What one bounded step of retention removed; ``more`` when it stopped at its limit."""

    jobs: int = 0
    keys: int = 0
    others: int = 0
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """What operators set on a queue. None leaves a field as it is."""

    max_wait_ms: int | None = None
    """Milliseconds after which a job of low priority goes first."""
    held: bool | None = None
    """Whether its jobs are kept from running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSettings:
    """What operators set on a tenant. None leaves a field as it is."""

    weight: int | None = None
    """Its share of the workers relative to others, 1 to 1,000."""
    held: bool | None = None
    """Whether its jobs are kept from running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSettings:
    """What operators set on a job type. None leaves a field as it is."""

    held: bool | None = None
    """Whether its jobs are kept from running."""


# ── membership ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeInfo:
    """A job type as a worker publishes it, so that others can validate without its code."""

    name: str
    schema: str
    """JSON Schema of the arguments, as text."""
    hash: str
    queue: str
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    """Defaults of the type: priority, timeout, retry, delivery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorker:
    """A process that joins."""

    id: str
    host: str
    pid: int
    queues: tuple[str, ...]
    slots: int
    types: tuple[TypeInfo, ...] = ()
    version_slot: int = 0
    """The slot of its versions: see `model.versions`; 0: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """A worker as others see it."""

    id: str
    host: str
    pid: int
    queues: tuple[str, ...]
    types: tuple[str, ...]
    slots: int
    running: int
    """Handlers that ran at its last sign of life; 0 of a dead worker."""
    joined_at_ms: int
    beat_at_ms: int
    state: str
    """alive, suspect (15 s without a beat) or dead (30 s)."""
    version_slot: int = 0
    """The slot of its versions: see `model.versions`; 0: none."""

    @property
    def lives(self) -> bool:
        """Whether it is not known to be dead."""
        return self.state != DEAD


@dataclass(frozen=True, slots=True)
class Beat:
    """Answer to a beat, and to joining."""

    known: bool
    """False: the store has forgotten this worker; it should join again."""
    settings_version: int
    workers: int
    """How many workers there are that are not dead."""
    overdue: bool = True
    """False: no lease has ended and no schedule is due. True as well where nobody has looked."""


# ── reads ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some jobs, newest first, and where to go on; ``cursor`` None: that was all."""

    jobs: list[JobRecord]
    cursor: str | None


class Why(StrEnum):
    """Why a job is not running."""

    FINISHED = "finished"
    """It has ended."""
    RUNNING = "running"
    """A worker has it."""
    WORKER_SUSPECT = "worker_suspect"
    """It is running on a worker that has been silent for 15 s."""
    WORKER_DEAD = "worker_dead"
    """It was claimed by a worker that is dead, and has not been given back yet."""
    BLOCKED = "blocked"
    """It waits for other jobs."""
    HELD_JOB = "held_job"
    """Somebody holds it."""
    HELD_QUEUE = "held_queue"
    """Somebody holds its queue."""
    HELD_TYPE = "held_type"
    """Somebody holds its type."""
    HELD_TENANT = "held_tenant"
    """Somebody holds its tenant."""
    NOT_DUE = "not_due"
    """It is due later."""
    BEHIND = "behind"
    """Other jobs go first."""
    NO_WORKER = "no_worker"
    """No live worker serves its queue and knows its type."""
    NO_VERSION = "no_version"
    """No live version of its type takes its arguments."""
    VERSION = "version"
    """Beside other reasons: only some live versions of its type take its arguments."""
    NO_ROOM = "no_room"
    """All slots of the workers that could run it are taken."""
    NEXT = "next"
    """It is the next of its tenant."""
    SUSPECT = "suspect"
    """Beside other reasons: it needs a process of its own, and waits until one is free."""
    TIMED_OUT = "timed_out"
    """Beside `RUNNING`: its timeout has passed, its handler was told to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One answer to "why did this not run?"."""

    why: Why
    """The answer, for programs."""
    text: str
    """The answer, for people."""
    mark: Mark | None = None
    """Who holds it, why and since when; None: nobody."""
    until_ms: int | None = None
    """Until when this is so, in milliseconds since 1970; None: that is not known."""
    count: int | None = None
    """How many jobs or workers are meant; None: the answer is not about a number."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All answers, the most decisive first."""

    record: JobRecord
    """The job."""
    reasons: list[Reason]
    """The answers."""

    def __str__(self) -> str:
        return "; ".join(reason.text for reason in self.reasons)


SCAN_LIMIT = 10_000
"""After a look at so many records a page ends, where a filter has no index: it may be short and
still have a cursor. So many dead letters, the newest ones, are grouped."""
COUNT_LIMIT = 10_000
LEVEL_LIMIT = 1_000
"""To which levels of a queue are counted, however many jobs others of its levels have."""
BEHIND_LIMIT = 1_000
TENANT_LIMIT = 1_000
"""How many tenants are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """A queue as people see it.

    Counts are exact up to 10,000, or what was asked for; then they mean: at least.
    """

    name: str
    ready: int
    scheduled: int
    running: int
    held: Mark | None
    max_wait_ms: int = DEFAULT_MAX_WAIT_MS
    oldest_due_ms: int | None = None
    """How long the head that waits longest has been due."""
    handouts: int = 0
    by_level: Mapping[Level, int] = field(default_factory=dict["Level", int])
    """Waiting jobs, due or not, per level: exact if the queue's counts are, else up to 1,000."""
    oldest_by_level: Mapping[Level, int] = field(default_factory=dict["Level", int])
    """How long the head that waits longest has been due, per level that has one; in ms."""

    @property
    def busy(self) -> bool:
        """Whether jobs were seen in it that wait or run."""
        return bool(self.ready or self.scheduled or self.running)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantInfo:
    """A tenant as people see it."""

    name: str
    weight: int = DEFAULT_WEIGHT
    held: Mark | None = None
    waiting: int = 0
    running: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRow:
    """A job type as people see it."""

    name: str
    queue: str
    schema: str
    hash: str
    options: Mapping[str, object]
    held: Mark | None
    live_workers: int
    seats: tuple[Seat, ...] = ()
    """Slots and queues of the live workers that know this version: see `model.versions`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroup:
    """Dead letters with one cause."""

    fingerprint: str
    type: str
    queue: str
    error: ErrorInfo | None
    reason: str
    count: int
    newest_at_ms: int
    example: str
    """Id of the newest job in the group."""


@dataclass(frozen=True, slots=True)
class DeadGroups:
    """Dead letters by cause."""

    groups: list[DeadGroup]
    at_least: bool
    """Whether older dead letters were not looked at: each count may be too small, and groups of
    which no newer letter is left are missing."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """One lease to be extended."""

    id: str
    fence: Fence
