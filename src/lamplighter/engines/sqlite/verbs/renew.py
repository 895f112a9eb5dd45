"""renew: extend leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.port.values import RenewAnswer, Renewed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.port.values import Renewal

SQL = load("renew")


def renew(tx: Transaction, leases: Sequence[Renewal], lease_ms: int) -> list[Renewed]:
    """Extend what still runs under its fence."""
    expires = tx.now + lease_ms
    answers: list[Renewed] = []
    for lease in leases:
        row = tx.one(
            SQL["renew"], expires, lease_ms, lease.id, lease.fence.lease, lease.fence.nonce
        )
        answer = RenewAnswer.LOST if row is None else RenewAnswer.HELD
        answers.append(Renewed(lease.id, answer, row is not None and bool(row[0])))
    return answers
