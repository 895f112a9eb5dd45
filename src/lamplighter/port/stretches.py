"""Which parts of all schedules a listing looks at, in the order of their keys."""

from __future__ import annotations

from dataclasses import dataclass

from lamplighter.model.ids import schedule_key
from lamplighter.port.schedules import ScheduleFilter, ScheduleRecord
from lamplighter.port.texts import clean, is_nobody


@dataclass(frozen=True, slots=True)
class Stretch:
    """Schedules whose keys begin with a text."""

    prefix: str
    after: str | None
    """The key behind which to go on; None: from the first on."""


def stretches(which: ScheduleFilter, cursor: str | None) -> list[Stretch]:
    """Return the parts that can hold what a filter means: one for each tenant, or all in one."""
    if clean(which.prefix) != which.prefix:
        return []
    after = None if cursor is None else clean(cursor)
    if not which.tenants:
        return [Stretch("", after)]
    tenants = sorted({name for name in which.tenants if not is_nobody(name)})
    found: list[Stretch] = []
    for prefix in (schedule_key(name, which.prefix) for name in tenants):
        if after is None or after < prefix:
            found.append(Stretch(prefix, None))
        elif after.startswith(prefix):
            found.append(Stretch(prefix, after))
    return found


def matches(which: ScheduleFilter, record: ScheduleRecord) -> bool:
    """Tell whether a schedule in such a part is meant."""
    return (
        record.id.startswith(which.prefix)
        and (not which.types or record.type in which.types)
        and (which.held is None or which.held is (record.hold is not None))
        and (which.zones_not is None or record.zones != which.zones_not)
    )
