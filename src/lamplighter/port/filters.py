"""Which jobs a filter means, decided on whole records so that all places agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import Status
from lamplighter.model.names import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamplighter.model.job import JobRecord
    from lamplighter.port.values import JobFilter

_GROUPS: dict[str, frozenset[str]] = {
    "pending": frozenset({"scheduled", "ready", "retrying"}),
    "failed": frozenset({"dead"}),
}


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


def matcher(which: JobFilter) -> Callable[[JobRecord], bool]:
    """Give the test a filter means."""
    statuses = statuses_of(which)

    def matches(record: JobRecord) -> bool:
        job, finished = record.job, record.finished_at_ms
        error = record.error
        after, before = which.finished_after_ms, which.finished_before_ms
        return (
            (not statuses or record.status.value in statuses)
            and (not which.types or job.type in which.types)
            and (not which.queues or job.queue in which.queues)
            and (not which.tenants or job.tenant in which.tenants)
            and (which.tag is None or which.tag in job.extras.tags)
            and (
                not which.fingerprints
                or (error is not None and error.fingerprint in which.fingerprints)
            )
            and (after is None or (finished is not None and finished >= after))
            and (before is None or (finished is not None and finished < before))
        )

    return matches
