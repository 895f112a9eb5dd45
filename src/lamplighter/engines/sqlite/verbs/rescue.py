"""rescue: read the claims whose lease has ended, and those of one worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.port.rows import claim_of
from lamplighter.port.values import Expired

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.model.job import Claim

SQL = load("rescue")


def clock_went_back(tx: Transaction) -> bool:
    """Tell whether some lease ends later than now plus its own length."""
    return tx.number(SQL["ahead"], tx.now) > 0


def cut_leases(tx: Transaction) -> None:
    """Cut such leases to now plus their own length."""
    tx.run(SQL["cut"], tx.now)


def rescue(tx: Transaction, limit: int) -> list[Expired]:
    """Read expired claims, longest overdue first."""
    return [
        Expired(claim_of(row, tx.catalog.by_id(row[-1])), row[-2])
        for row in tx.all(SQL["expired"], tx.now, limit)
    ]


def claims_of(tx: Transaction, worker: str) -> list[Claim]:
    """Read what a worker holds."""
    found = tx.all(SQL["claims_of"], worker)
    return [claim_of(row, tx.catalog.by_id(row[-1])) for row in found]
