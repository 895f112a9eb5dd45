"""delete_schedules: remove schedules and their runs."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.postgres import records
from lamplighter.engines.postgres.call import Call
from lamplighter.engines.postgres.verbs.wishes import DONE, UNKNOWN, change
from lamplighter.port import texts
from lamplighter.port.schedules import ScheduleChanged


async def delete_schedules(
    call: Call, ids: Sequence[str], by: str, reason: str, tenant: str
) -> list[ScheduleChanged]:
    """Remove each, and cancel its queued jobs."""
    return await change(
        call,
        "delete_schedules",
        ids,
        tenant,
        records.mark_to_text(by, reason),
        texts.clean(reason) or "cancelled",
        again={DONE: UNKNOWN},
    )
