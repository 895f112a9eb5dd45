"""renew: extend leases."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.postgres import arrays, ids
from lamplighter.engines.postgres.call import Call
from lamplighter.port.values import Renewal, Renewed


async def renew(call: Call, leases: Sequence[Renewal], lease_ms: int) -> list[Renewed]:
    """Extend what still runs under its fence."""
    given = list(dict.fromkeys(leases))
    rows = await call.rows(
        f"SELECT n, cancelling FROM {call.function('renew')}(%s, %s, %s, %s::bigint)",
        (
            ids.uuids([lease.id for lease in given]),
            arrays.numbers([lease.fence.lease for lease in given]),
            arrays.texts([lease.fence.nonce for lease in given]),
            lease_ms,
        ),
        urgent=True,
    )
    held: dict[Renewal, bool] = {given[row[0] - 1]: row[1] for row in rows}
    return [Renewed(lease.id, lease in held, held.get(lease, False)) for lease in leases]
