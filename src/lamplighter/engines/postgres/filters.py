"""A filter as the parameters of `fits` in sql/inspect.sql; None is not asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lamplighter.model.filters import Filter
from lamplighter.port.texts import clean

PLACES = ", ".join(["%s"] * 6 + ["%s::bigint"] * 4)
"""Where they stand in a statement."""


def parameters(which: Filter) -> tuple[object, ...]:
    """Return all but the statuses, in the order of `fits`."""
    return (
        wanted(which.types),
        wanted(which.queues),
        wanted(which.tenants),
        wanted(which.schedules),
        wanted(which.fingerprints),
        None if which.tag is None else json.dumps(which.tag),
        which.created_after_ms,
        which.created_before_ms,
        which.finished_after_ms,
        which.finished_before_ms,
    )


def wanted(names: Sequence[str]) -> list[str] | None:
    """Return the names that a column can have. All others are the name of nothing."""
    return [name for name in names if clean(name) == name] if names else None
