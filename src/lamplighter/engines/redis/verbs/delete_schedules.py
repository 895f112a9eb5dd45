"""delete_schedules: remove schedules with what they are about to run."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.verbs.wishes import wish
from lamplighter.port import texts
from lamplighter.port.schedules import ScheduleChanged


async def delete_schedules(
    call: Call, ids: Sequence[str], by: str, reason: str, tenant: str
) -> list[ScheduleChanged]:
    """Remove each, and cancel its queued jobs."""
    return await wish(
        call,
        "delete_schedules",
        ids,
        tenant,
        records.mark_to_text(by, reason),
        texts.clean(reason) or "cancelled",
    )
