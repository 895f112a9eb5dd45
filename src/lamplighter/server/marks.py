"""Who did something and when, as callers are told."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from lamplighter.model.job import Mark
from lamplighter.server.auth import Principal

_LAST_MS = 253_402_300_799_999


class Note(msgspec.Struct, kw_only=True, frozen=True):
    """Who did it, why and when."""

    by: str
    reason: str
    at: datetime


def note(mark: Mark | None, principal: Principal) -> Note | None:
    """Return who did it, as this caller is told, why and when."""
    if mark is None:
        return None
    return Note(by=called(mark.by, principal), reason=mark.reason, at=instant(mark.at_ms))


def called(by: str, principal: Principal) -> str:
    """Return the name of whoever did something; a tenant is not told the host behind the `@`."""
    if principal.tenant is None or by == principal.name:
        return by
    return by.partition("@")[0]


def instant(at_ms: int) -> datetime:
    """Return an instant, in UTC."""
    return datetime.fromtimestamp(min(max(at_ms, 0), _LAST_MS) / 1000, UTC)


def maybe_instant(at_ms: int | None) -> datetime | None:
    """Return an instant, if there is one."""
    return None if at_ms is None else instant(at_ms)
