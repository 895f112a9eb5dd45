"""What a schedule is: when, which jobs, and what to do when things get in each other's way."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING

from lamplighter.model.errors import InvalidOption
from lamplighter.model.ids import schedule_key
from lamplighter.model.job import NO_EXTRAS, Delivery, Extras, Level
from lamplighter.model.names import DEFAULT_QUEUE, DEFAULT_TENANT, shown

if TYPE_CHECKING:
    from lamplighter.model.schedule import Calendar

HOUR_MS = 3_600_000
ON_TIME_MS = 30_000
"""With `CatchUp.NONE` an occurrence is fired that is at most so late: the time in which another
coordinator takes over from one that died, and a little more."""
KEEP_LIMIT = 10_000
BACKFILL_LIMIT = 100


def _at_least(what: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise InvalidOption(
            f"the {what} is {shown(value)}",
            hint=f"give {least} or more, or leave it out",
            value=value,
        )


class Overlap(StrEnum):
    """What happens to an occurrence while the run before it has not ended."""

    SKIP = "skip"
    ALLOW = "allow"
    QUEUE_ONE = "queue_one"
    QUEUE_ALL = "queue_all"
    CANCEL_RUNNING = "cancel_running"


class CatchUp(StrEnum):
    """Which of the occurrences that nobody was there to fire are made up for."""

    LATEST = "latest"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The job that each occurrence gets."""

    type: str
    args: bytes = field(repr=False)
    queue: str = DEFAULT_QUEUE
    level: Level = Level.NORMAL
    tenant: str = DEFAULT_TENANT
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    extras: Extras = NO_EXTRAS
    cost: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What to do about runs that overlap, were missed, or fail."""

    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.LATEST
    window_ms: int = HOUR_MS
    """Occurrences that are later than this are not made up for."""
    jitter_ms: int = 0
    """Each schedule is shifted by a part of this that is always the same for its id."""
    start_ms: int | None = None
    end_ms: int | None = None
    """Occurrences before the start, and after the end, do not count."""
    max_runs: int | None = None
    """After so many runs it is over; triggers and backfills do not count."""
    hold_after: int | None = None
    """Hold it after so many runs in a row that ended dead."""
    keep_succeeded: int = 100
    keep_failed: int = 100
    """How many ended runs are remembered; `failed` are all that did not succeed."""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself, naming it."""
        _at_least("catch-up window", self.window_ms, 0)
        _at_least("jitter", self.jitter_ms, 0)
        _at_least("max_runs", self.max_runs, 1)
        _at_least("hold_after", self.hold_after, 1)
        for kept in (self.keep_succeeded, self.keep_failed):
            if not 0 <= kept <= KEEP_LIMIT:
                raise InvalidOption(
                    f"{shown(kept)} runs cannot be kept",
                    hint=f"keep 0 to {KEEP_LIMIT:,}",
                    value=kept,
                )
        if self.start_ms is not None and self.end_ms is not None and self.end_ms < self.start_ms:
            raise InvalidOption(
                f"the end {shown(self.end_ms)} is before the start {shown(self.start_ms)} "
                "(both in milliseconds since 1970)",
                hint="give an end that is later than the start",
                value=self.end_ms,
            )


DEFAULT_POLICY = Policy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Calendar, template and policy of a schedule."""

    calendar: Calendar
    """When."""
    template: Template
    """The job of each occurrence."""
    policy: Policy = DEFAULT_POLICY
    """How it behaves; see the options of a schedule."""


def jitter_of(tenant: str, schedule_id: str, most_ms: int) -> int:
    """Return by how much a schedule is shifted: 0 up to ``most_ms``, always the same for its id.

    Tenants that use the same id are shifted each by another part.
    """
    if most_ms <= 0:
        return 0
    key = schedule_key(tenant, schedule_id)
    digest = blake2b(key.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest) % (most_ms + 1)
