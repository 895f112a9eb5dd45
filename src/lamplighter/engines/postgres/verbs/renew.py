"""renew: extend leases."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.postgres import arrays, ids
from lamplighter.engines.postgres.call import Call
from lamplighter.port.values import Renewal, RenewAnswer, Renewed


async def renew(call: Call, leases: Sequence[Renewal], lease_ms: int) -> list[Renewed]:
    """Extend what still runs under its fence and is not locked."""
    given = list(dict.fromkeys(leases))
    rows = await call.rows(
        f"SELECT n, answer, cancelling FROM {call.function('renew')}(%s, %s, %s, %s::bigint)",
        (
            ids.uuids([lease.id for lease in given]),
            arrays.numbers([lease.fence.lease for lease in given]),
            arrays.texts([lease.fence.nonce for lease in given]),
            lease_ms,
        ),
        urgent=True,
    )
    known: dict[Renewal, tuple[RenewAnswer, bool]] = {
        given[n - 1]: (RenewAnswer(answer), cancelling) for n, answer, cancelling in rows
    }
    lost = (RenewAnswer.LOST, False)
    return [Renewed(lease.id, *known.get(lease, lost)) for lease in leases]
