"""enter_queues, remove_queue: which queues there are, and who has brought them."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.postgres.call import Call
from lamplighter.port.health import DEAD_MS
from lamplighter.port.texts import clean
from lamplighter.port.values import ChangeAnswer


async def enter_queues(call: Call, names: Sequence[str], tenant: str, most: int) -> bool:
    """Note who brings these, unless they would have brought too many."""
    ((answer,),) = await call.rows(
        f"SELECT {call.function('enter_queues')}(%s::text[], %s, %s::integer)",
        (list(names), tenant, most),
    )
    return answer


async def remove_queue(call: Call, name: str) -> ChangeAnswer:
    """Let an empty queue be listed no more."""
    if clean(name) != name:
        return ChangeAnswer.UNKNOWN
    ((answer,),) = await call.rows(
        f"SELECT {call.function('remove_queue')}(%s, %s::bigint)", (name, DEAD_MS)
    )
    return ChangeAnswer(answer)


async def held(call: Call, tenant: str, most: int) -> int:
    """Count the waiting jobs of a tenant that are held."""
    ((count,),) = await call.rows(
        f"SELECT {call.function('count_held')}(%s, %s::integer)", (clean(tenant), most)
    )
    return count
