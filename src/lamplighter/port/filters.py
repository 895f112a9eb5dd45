"""Which jobs a filter means, decided on whole records so that all places agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import Status
from lamplighter.model.names import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lamplighter.model.job import JobRecord
    from lamplighter.port.values import JobFilter

_GROUPS: dict[str, frozenset[str]] = {
    "pending": frozenset({"scheduled", "ready", "retrying"}),
    "failed": frozenset({"dead"}),
    "running": frozenset({"claimed", "running"}),
}
"""Statuses that stand for several. A claimed job is on its way: `running` means it too."""


def statuses_of(which: JobFilter) -> frozenset[str]:
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


def coarse_statuses(which: JobFilter) -> frozenset[str]:
    """Expand status groups for an index that does not know which handlers were called."""
    return frozenset("running" if name == "claimed" else name for name in statuses_of(which))


def matcher(which: JobFilter) -> Callable[[JobRecord], bool]:
    """Give the test a filter means."""
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
