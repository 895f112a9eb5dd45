"""The nouns: a job as submitted, as stored, as claimed."""

from __future__ import annotations

import re
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
    """It waits for other jobs."""
    WAITING = "waiting"
    """It waits: for its time, its turn, or a retry."""
    RUNNING = "running"
    """A worker has it."""
    SUCCEEDED = "succeeded"
    """Its handler returned."""
    DEAD = "dead"
    """It failed for good: a dead letter."""
    CANCELLED = "cancelled"
    """Somebody ended it."""
    EXPIRED = "expired"
    """It was not run in time."""


TERMINAL = frozenset(
    {JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED},
)


class Status(StrEnum):
    """What people are shown: the state, refined by due time, holds and flags."""

    BLOCKED = "blocked"
    """It waits for other jobs."""
    SCHEDULED = "scheduled"
    """It is due later."""
    RETRYING = "retrying"
    """It failed, and is tried again later."""
    READY = "ready"
    """It is due, and waits for its turn."""
    PAUSED = "paused"
    """Somebody holds it."""
    CLAIMED = "claimed"
    """A worker has it, but its handler was not called yet."""
    RUNNING = "running"
    """Its handler runs."""
    CANCELLING = "cancelling"
    """It runs, and was asked to end."""
    SUCCEEDED = "succeeded"
    """Its handler returned."""
    DEAD = "dead"
    """It failed for good: a dead letter."""
    CANCELLED = "cancelled"
    """Somebody ended it."""
    EXPIRED = "expired"
    """It was not run in time."""


class Level(IntEnum):
    """Priority. A lower number goes first."""

    CRITICAL = 0
    """Before all others."""
    HIGH = 1
    """Before `normal`."""
    NORMAL = 2
    """Of jobs that say nothing else."""
    LOW = 3
    """After all others, unless it has waited for as long as its queue allows."""

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
    """It runs again."""
    AT_MOST_ONCE = "at_most_once"
    """It ends as dead."""


ALONE = "alone"
"""Part of the requirement of suspects: who meets it runs them one to a process."""
NO_VERSION = "no_version"
"""Part of the requirement of jobs whose arguments no live version takes. No worker meets it."""

_VERSION = re.compile(r"(?:^|\+)(version:\d+|no_version)$")


def version_requirement(slot: int) -> str:
    """Part of the requirement of jobs that only some versions take: those on this slot."""
    return f"version:{slot}"


def requirement_of(base: str, *, suspect: bool, version: str = "") -> str:
    """Return the requirement that a job has at present, from the one it was submitted with.

    ``version`` is the part that says which versions of its type take it, empty for any.
    """
    return "+".join(part for part in (base, version, ALONE if suspect else "") if part)


def base_requirement(requirement: str) -> str:
    """Return the requirement that a job was submitted with, from the one it has at present."""
    return _VERSION.sub("", _shared(requirement))


def version_in(requirement: str) -> str:
    """Return the part of a requirement that says which versions take the job; empty: any."""
    found = _VERSION.search(_shared(requirement))
    return found[1] if found else ""


def next_requirement(requirement: str, *, suspect: bool, version: str | None) -> str:
    """Return the requirement of a job that waits again; without a version it keeps its own.

    One that was a suspect stays one.
    """
    kept = version_in(requirement) if version is None else version
    alone = suspect or _shared(requirement) != requirement
    return requirement_of(base_requirement(requirement), suspect=alone, version=kept)


def _shared(requirement: str) -> str:
    return "" if requirement == ALONE else requirement.removesuffix(f"+{ALONE}")


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to write about a job: the number of the claim and its random nonce.

    The number orders claims for outside sinks. The nonce keeps the fence true even after the
    store was rolled back and hands out the same number again.
    """

    lease: int
    """Number of the claim; it only grows."""
    nonce: str
    """Drawn at random for each claim."""


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
    """Instead of the type's policy."""
    timeout: float | None = None
    """Seconds that the handler has, instead of the type's."""
    tags: tuple[str, ...] = ()
    """Names to find it by."""
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    """JSON data beside the arguments."""
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
    """Its id, a ULID."""
    type: str
    """Name of its job type."""
    args: bytes = field(repr=False)
    """JSON object of the arguments by name."""
    queue: str
    """The queue it came from."""
    level: Level
    """Its priority."""
    tenant: str
    """On whose behalf it runs."""
    due_at_ms: int
    """When it was due, in milliseconds since 1970."""
    created_at_ms: int
    """When it was submitted, in milliseconds since 1970."""
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    """What happens if nobody sees its end."""
    extras: Extras = NO_EXTRAS
    """What the submission said for itself."""
    attempt: int = 0
    """How often the handler itself has failed."""
    crashes: int = 0
    """How often a process died while running this job alone."""
    losses: int = 0
    """How often its whole worker vanished."""
    suspect: bool = False
    """A process died while it ran there: it runs alone."""
    generation: int = 0
    """Raised by replay, so that nothing meant for an earlier life touches this one."""
    cost: int = 1
    """What one hand-out costs its tenant in the fair share."""
    schedule: str | None = None
    """Id of the schedule that made it."""

    @property
    def is_untroubled(self) -> bool:
        """Whether it has never failed, crashed or been lost, as far as is counted."""
        return not (self.attempt or self.crashes or self.losses or self.suspect)


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A job held by one worker until its lease ends."""

    job: Job
    """What to do: a stored job."""
    fence: Fence
    """The right to write about it."""
    worker: str
    """Id of the worker."""
    handout: int
    """Number of this hand-out in its queue: the store's claim sequence."""
    started: bool = False
    """Whether the store has its start mark: from then on its handler may have been called. Only
    at-most-once jobs get one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Who did something to a job or a setting, why and when."""

    by: str
    """Name of the person or program."""
    reason: str
    """What they said to it; may be empty."""
    at_ms: int
    """When, in milliseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A version of a type that did not take a job's arguments."""

    version: str
    """Hash of the version."""
    since_ms: int
    """When the job was first refused, by any version, by the store's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """What went wrong in an attempt, as kept in the store."""

    type: str
    """Name of the exception's class."""
    message: str
    """What it says."""
    traceback: str = ""
    """Where it was raised; empty if that is not known."""
    fingerprint: str = ""
    """Same place, same kind: equal errors have equal fingerprints."""
    kinds: tuple[str, ...] = ()
    """Names of the exception's class and its bases, for rules like ``no_retry_on``."""
    refusals: tuple[Refusal, ...] = ()
    """Of a job whose arguments do not fit: the versions that have refused it."""

    @property
    def text(self) -> str:
        """Its kind and what it says, as in `OSError: no route`."""
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """Everything the store knows of a job, for people and programs that look."""

    job: Job
    """What was submitted, and what happened to it: a stored job."""
    state: JobState
    """What the store keeps."""
    status: Status
    """What people are shown."""
    lease: int
    """Number of its last claim; 0: it was never claimed."""
    nonce: str | None
    """Random number of its last claim; None: it has none."""
    worker: str | None
    """Id of the worker of its last attempt."""
    handout: int | None
    """Number of its last hand-out in its queue."""
    claimed_at_ms: int | None
    """When it was last handed to a worker."""
    expires_at_ms: int | None
    """When its lease ends."""
    finished_at_ms: int | None
    """When it ended; None before."""
    hold: Mark | None
    """Who holds it, why and since when; None: nobody."""
    cancel: Mark | None
    """Who asked for its end; None: nobody."""
    reason: str | None
    """Why it is dead or cancelled, in one word or sentence."""
    result: bytes | None
    """What its handler returned, as JSON."""
    result_note: str | None
    """Why there is no result although the job succeeded."""
    error: ErrorInfo | None
    """Why its last attempt failed."""
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
    started: bool = True,
) -> Status:
    """Derive the shown status from what is stored.

    ``started`` says of a running job whether its handler was called, as far as is known.
    """
    if state is JobState.RUNNING:
        if cancel_requested:
            return Status.CANCELLING
        return Status.RUNNING if started else Status.CLAIMED
    if state is not JobState.WAITING:
        return Status(state.value)
    if held:
        return Status.PAUSED
    if due:
        return Status.READY
    return Status.RETRYING if attempt else Status.SCHEDULED
