"""Which jobs: the one value that lists, dead letters and bulk changes filter by.

Whether a job matches is decided here on whole records, so that all engines agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import Status
from lamplighter.model.names import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lamplighter.model.job import JobRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which jobs; all given fields must match, and of several values of a field any."""

    statuses: tuple[str, ...] = ()
    """Shown statuses, or the groups `pending` and `failed`."""
    types: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    """Ids of the schedules that made them."""
    fingerprints: tuple[str, ...] = ()
    """Causes of the last error; the empty one means jobs that have none."""
    tag: str | None = None
    created_after_ms: int | None = None
    created_before_ms: int | None = None
    """An age is written as this one: what is older than two hours was created before then."""
    finished_after_ms: int | None = None
    finished_before_ms: int | None = None

    @property
    def empty(self) -> bool:
        """Whether it means every job."""
        return self == EVERY_JOB


EVERY_JOB = Filter()

_GROUPS: dict[str, frozenset[str]] = {
    "pending": frozenset({"scheduled", "ready", "retrying"}),
    "failed": frozenset({"dead"}),
    "running": frozenset({"claimed", "running"}),
}
"""Statuses that stand for several. A claimed job is on its way: `running` means it too."""


def statuses_of(which: Filter) -> frozenset[str]:
    """Expand status groups; an unknown status is refused."""
    found: set[str] = set()
    known = {status.value for status in Status}
    for name in which.statuses:
        if name not in known and name not in _GROUPS:
            raise InvalidInput(
                f"unknown status {shown(name)}",
                hint=f"use one of {', '.join(sorted(known | set(_GROUPS)))}",
                value=name,
            )
        found |= _GROUPS.get(name, frozenset({name}))
    return frozenset(found)


NO_FINGERPRINT = "none"
"""How people write the empty fingerprint: no error has this one."""


def fingerprints_of(written: Iterable[str]) -> tuple[str, ...]:
    """Return fingerprints as a filter takes them, from how people write them."""
    return tuple("" if name == NO_FINGERPRINT else name for name in written)


def coarse_statuses(which: Filter) -> frozenset[str]:
    """Expand status groups for an index that does not know which handlers were called."""
    return frozenset("running" if name == "claimed" else name for name in statuses_of(which))


def matcher(which: Filter) -> Callable[[JobRecord], bool]:
    """Return the test that a filter means."""
    statuses = statuses_of(which)

    def matches(record: JobRecord) -> bool:
        job, finished = record.job, record.finished_at_ms
        error = record.error
        after, before = which.finished_after_ms, which.finished_before_ms
        since, until = which.created_after_ms, which.created_before_ms
        return (
            (not statuses or record.status.value in statuses)
            and (not which.types or job.type in which.types)
            and (not which.queues or job.queue in which.queues)
            and (not which.tenants or job.tenant in which.tenants)
            and (not which.schedules or job.schedule in which.schedules)
            and (which.tag is None or which.tag in job.extras.tags)
            and (
                not which.fingerprints
                or ("" if error is None else error.fingerprint) in which.fingerprints
            )
            and (after is None or (finished is not None and finished >= after))
            and (before is None or (finished is not None and finished < before))
            and (since is None or job.created_at_ms >= since)
            and (until is None or job.created_at_ms < until)
        )

    return matches
