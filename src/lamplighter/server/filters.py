"""Which jobs a request is about."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lamplighter.model.errors import InvalidOption
from lamplighter.model.filters import Filter, fingerprints_of, statuses_of
from lamplighter.model.names import check_name, check_schedule
from lamplighter.model.timetable import milliseconds
from lamplighter.server.auth import Principal
from lamplighter.server.calendars import Instant


class Choice(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which jobs; several values of one field mean any of them."""

    type: list[str] = msgspec.field(default_factory=list[str])
    queue: list[str] = msgspec.field(default_factory=list[str])
    tenant: list[str] = msgspec.field(default_factory=list[str])
    schedule: list[str] = msgspec.field(default_factory=list[str])
    """Id of the schedule that made them."""
    fingerprint: list[str] = msgspec.field(default_factory=list[str])
    """Cause of the last error; `none` means jobs that have no such cause."""
    tag: str | None = None
    created_after: Instant | None = None
    """Created at this instant or later…"""
    created_before: Instant | None = None
    """…and before this one."""
    finished_after: Instant | None = None
    finished_before: Instant | None = None


class JobChoice(Choice, kw_only=True, forbid_unknown_fields=True):
    """Which jobs; several values of one field mean any of them."""

    status: list[str] = msgspec.field(default_factory=list[str])
    """A status, or `pending` (scheduled, ready, retrying) or `failed` (dead)."""


def job_filter(chosen: Choice, principal: Principal, statuses: Sequence[str] = ()) -> Filter | None:
    """Check a choice; not every store can look for a name that cannot be.

    None: it means only jobs of other tenants, which do not exist for whoever has one of their own.
    """
    own, tenants = principal.tenant, names("tenant", chosen.tenant)
    if own is not None:
        if tenants and own not in tenants:
            return None
        tenants = (own,)
    which = Filter(
        statuses=tuple(statuses),
        types=names("job type", chosen.type),
        queues=names("queue", chosen.queue),
        tenants=tenants,
        schedules=tuple(map(check_schedule, chosen.schedule)),
        fingerprints=fingerprints_of(names("fingerprint", chosen.fingerprint)),
        tag=None if chosen.tag is None else check_name("tag", chosen.tag),
        created_after_ms=_instant(chosen.created_after),
        created_before_ms=_instant(chosen.created_before),
        finished_after_ms=_instant(chosen.finished_after),
        finished_before_ms=_instant(chosen.finished_before),
    )
    statuses_of(which)
    return which


def check_chosen(chosen: Choice, kind: type[Choice], what: str, *, everything: bool) -> None:
    """Refuse to mean everything by mistake, or two things at once; ``kind`` has the filter."""
    filtered = any(getattr(chosen, name) not in ([], None) for name in kind.__struct_fields__)
    if filtered and everything:
        raise InvalidOption(
            "both a filter and `all` were given", hint="give one of them", value="all"
        )
    if not (filtered or everything):
        raise InvalidOption(
            f"no {what} are chosen",
            hint='give a filter, as in {"type": ["charge"]}, or {"all": true} to mean all of them',
        )


def described(chosen: Choice, kind: type[Choice], tenant: str) -> str:
    """Write down which jobs of a tenant were meant; of others it is told nothing."""
    given = {name: getattr(chosen, name) for name in kind.__struct_fields__}
    if chosen.tenant:
        given["tenant"] = [tenant]
    return msgspec.json.encode({name: value for name, value in given.items() if value}).decode()


def names(what: str, given: Sequence[str]) -> tuple[str, ...]:
    """Check names that are looked for."""
    return tuple(check_name(what, name) for name in given)


def _instant(given: Instant | None) -> int | None:
    return None if given is None else milliseconds(given)
