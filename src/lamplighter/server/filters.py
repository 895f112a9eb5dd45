"""Which jobs a request is about."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lamplighter.model.filters import Filter, fingerprints_of, statuses_of
from lamplighter.model.names import check_name
from lamplighter.model.timetable import milliseconds
from lamplighter.server.auth import Principal
from lamplighter.server.calendars import Instant


class Choice(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which jobs; several values of one field mean any of them."""

    type: list[str] = msgspec.field(default_factory=list[str])
    queue: list[str] = msgspec.field(default_factory=list[str])
    tenant: list[str] = msgspec.field(default_factory=list[str])
    fingerprint: list[str] = msgspec.field(default_factory=list[str])
    """Cause of the last error; `none` means jobs that have no such cause."""
    tag: str | None = None
    finished_after: Instant | None = None
    finished_before: Instant | None = None


def job_filter(chosen: Choice, principal: Principal, statuses: Sequence[str] = ()) -> Filter | None:
    """Check a choice; not every store can look for a name that cannot be.

    None: it means only jobs of other tenants, which do not exist for whoever has one of their own.
    """
    own, tenants = principal.tenant, names("tenant", chosen.tenant)
    if own is not None:
        if tenants and own not in tenants:
            return None
        tenants = (own,)
    after, before = chosen.finished_after, chosen.finished_before
    which = Filter(
        statuses=tuple(statuses),
        types=names("job type", chosen.type),
        queues=names("queue", chosen.queue),
        tenants=tenants,
        fingerprints=fingerprints_of(names("fingerprint", chosen.fingerprint)),
        tag=None if chosen.tag is None else check_name("tag", chosen.tag),
        finished_after_ms=None if after is None else milliseconds(after),
        finished_before_ms=None if before is None else milliseconds(before),
    )
    statuses_of(which)
    return which


def names(what: str, given: Sequence[str]) -> tuple[str, ...]:
    """Check names that are looked for."""
    return tuple(check_name(what, name) for name in given)
