"""The live versions of types, as the store tells them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lamplighter.model.versions import Seat, Version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lamplighter.port.values import TypeRow


def live_versions(rows: Iterable[TypeRow]) -> dict[str, list[Version]]:
    """Return the versions that live workers know, by type."""
    found: dict[str, list[Version]] = {}
    for row in rows:
        if row.live_workers:
            version = Version(
                hash=row.hash,
                schema=row.schema,
                seats=row.seats,
            )
            found.setdefault(row.name, []).append(version)
    return found


def slots_of(rows: Iterable[TypeRow]) -> list[tuple[int, str, str]]:
    """Return slot, type and version of all live workers, for `model.versions.free_slot`."""
    return [(seat.slot, row.name, row.hash) for row in rows for seat in row.seats if seat.slot]


def seats_of(text: str) -> tuple[Seat, ...]:
    """Read seats from a JSON list of slot, queues and number of workers."""
    return tuple(
        Seat(slot=slot, queues=tuple(queues), workers=workers)
        for slot, queues, workers in json.loads(text)
    )
