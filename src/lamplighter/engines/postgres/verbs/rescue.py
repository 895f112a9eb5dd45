"""rescue: read the claims whose lease has ended, and those of one worker."""

from __future__ import annotations

from lamplighter.engines.postgres import records
from lamplighter.engines.postgres.call import Call
from lamplighter.model.job import Claim
from lamplighter.port.values import Expired


async def rescue(call: Call, limit: int) -> list[Expired]:
    """Read expired claims, longest overdue first; leases that the clock stretched are cut."""
    rows = await call.rows(f"SELECT * FROM {call.function('rescue')}(%s::integer)", (limit,))
    return [Expired(records.claim_of(row), row[22]) for row in rows]


async def claims_of(call: Call, worker: str) -> list[Claim]:
    """Read what a worker holds."""
    rows = await call.rows(f"SELECT * FROM {call.function('claims_of')}(%s)", (worker,))
    return [records.claim_of(row) for row in rows]
