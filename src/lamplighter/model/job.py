"""The nouns: a job as submitted, as stored, as claimed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import DEFAULT_QUEUE, DEFAULT_TENANT, shown
from lamplighter.model.quick import quick

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamplighter.model.journal import Progress
    from lamplighter.model.retry import Retry


class JobState(StrEnum):
    """What the store keeps. Everything else that is shown is derived from it."""

    BLOCKED = "blocked"
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


TERMINAL = frozenset(
    {JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED},
)


class Status(StrEnum):
    """What people are shown: the state, refined by due time, holds and flags."""

    BLOCKED = "blocked"
    SCHEDULED = "scheduled"
    RETRYING = "retrying"
    READY = "ready"
    PAUSED = "paused"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Level(IntEnum):
    """Priority. A lower number goes first."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3

    @property
    def label(self) -> str:
        """The name users write."""
        return self.name.lower()

    @classmethod
    def of(cls, name: object) -> Level:
        """Read a priority as users write it."""
        if isinstance(name, str) and name.upper() in cls.__members__:
            return cls[name.upper()]
        raise InvalidOption(
            f"unknown priority {shown(name)}",
            hint="use one of critical, high, normal, low",
            value=name,
        )


class Delivery(StrEnum):
    """What happens to a started job whose end nobody saw."""

    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


ALONE = "alone"
"""Requirement of ordinary jobs that are suspects: who meets it runs them one to a process."""


def requirement_of(base: str, *, suspect: bool) -> str:
    """Give the requirement that a job has at present, from the one it was submitted with."""
    if not suspect:
        return base
    return f"{base}+{ALONE}" if base else ALONE


def base_requirement(requirement: str) -> str:
    """Give the requirement that a job was submitted with, from the one it has at present."""
    return "" if requirement == ALONE else requirement.removesuffix(f"+{ALONE}")


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to write about a job: the number of the claim and its random nonce.

    The number orders claims for outside sinks. The nonce keeps the fence true even after the
    store was rolled back and hands out the same number again.
    """

    lease: int
    nonce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """A caller's own name for a submission, unique per (tenant, scope, key)."""

    key: str
    body: str
    """Hash of type, arguments and options as given; another body under one key is a conflict."""
    scope: str = ""
    """Empty for the Python client; route and principal for HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """Options a submission gave for itself, and what it wants to be found by."""

    retry: Retry | None = None
    timeout: float | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    secrets: tuple[str, ...] = ()
    """Names of arguments whose values are shown nowhere."""


NO_EXTRAS = Extras()


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job as handed to ``submit``."""

    id: str
    type: str
    args: bytes = field(repr=False)
    """JSON object of the arguments by name. The store never looks inside."""
    queue: str = DEFAULT_QUEUE
    level: Level = Level.NORMAL
    tenant: str = DEFAULT_TENANT
    delay_ms: int = 0
    """Due this long after the store's now. Ignored when ``run_at_ms`` is set."""
    run_at_ms: int | None = None
    """Due at this instant (milliseconds since 1970, UTC); the past means now."""
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    extras: Extras = NO_EXTRAS
    key: IdempotencyKey | None = None
    held: bool = False
    """Submit it held: it waits until somebody unholds it."""
    cost: int = 1
    """What one hand-out costs its tenant in the fair share."""
    schedule: str | None = None
    requirement: str = ""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as a worker sees it: what to do, and what happened to it before."""

    id: str
    type: str
    args: bytes = field(repr=False)
    queue: str
    level: Level
    tenant: str
    due_at_ms: int
    created_at_ms: int
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    extras: Extras = NO_EXTRAS
    attempt: int = 0
    """How often the handler itself has failed."""
    crashes: int = 0
    """How often a process died while running this job alone."""
    losses: int = 0
    """How often its whole worker vanished."""
    suspect: bool = False
    generation: int = 0
    """Raised by replay, so that nothing meant for an earlier life touches this one."""
    cost: int = 1
    schedule: str | None = None

    @property
    def is_untroubled(self) -> bool:
        """Whether it has never failed, crashed or been lost, as far as is counted."""
        return not (self.attempt or self.crashes or self.losses or self.suspect)


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A job held by one worker until its lease ends."""

    job: Job
    fence: Fence
    worker: str
    handout: int
    """Number of this hand-out in its queue: the store's claim sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Who did something to a job or a setting, why and when."""

    by: str
    reason: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """What went wrong in an attempt, as kept in the store."""

    type: str
    message: str
    traceback: str = ""
    fingerprint: str = ""
    """Same place, same kind: equal errors have equal fingerprints."""
    kinds: tuple[str, ...] = ()
    """Names of the exception's class and its bases, for rules like ``no_retry_on``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """Everything the store knows of a job, for people and programs that look."""

    job: Job
    state: JobState
    status: Status
    lease: int
    nonce: str | None
    worker: str | None
    handout: int | None
    claimed_at_ms: int | None
    expires_at_ms: int | None
    finished_at_ms: int | None
    hold: Mark | None
    cancel: Mark | None
    reason: str | None
    """Why it is dead or cancelled, in one word or sentence."""
    result: bytes | None
    result_note: str | None
    """Why there is no result although the job succeeded."""
    error: ErrorInfo | None
    progress: Progress | None = None
    """How far the last attempt said it had come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt in a job's history."""

    job_id: str
    generation: int
    number: int
    lease: int
    nonce: str
    """With the lease number it is the fence of the claim."""
    worker: str
    outcome: str
    """Name of the outcome; `running` for an attempt that has not ended."""
    started_at_ms: int
    finished_at_ms: int | None
    error: ErrorInfo | None

    @property
    def host(self) -> str:
        """The machine, as the worker's id names it."""
        return self.worker.rsplit("-", 3)[0]


def status_of(
    state: JobState,
    *,
    due: bool,
    attempt: int,
    held: bool,
    cancel_requested: bool,
) -> Status:
    """Derive the shown status from what is stored."""
    if state is JobState.RUNNING:
        return Status.CANCELLING if cancel_requested else Status.RUNNING
    if state is not JobState.WAITING:
        return Status(state.value)
    if held:
        return Status.PAUSED
    if due:
        return Status.READY
    return Status.RETRYING if attempt else Status.SCHEDULED
