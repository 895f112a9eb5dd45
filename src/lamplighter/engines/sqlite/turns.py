"""Keeps turns true to the jobs behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("turns")


def place(tx: Transaction, jobs: Iterable[tuple[int, str, int, int]]) -> None:
    """Tell turns of jobs that wait now, given as (lane, tenant, due, seq)."""
    heads: dict[tuple[int, str], tuple[int, int]] = {}
    for lane, tenant, due, seq in jobs:
        key = (lane, tenant)
        head = heads.get(key)
        if head is None or (due, seq) < head:
            heads[key] = (due, seq)
    catalog, now = tx.catalog, tx.now
    tx.many(
        SQL["place"],
        (
            (lane, catalog.by_id(lane).band, tenant, due, seq, now)
            for (lane, tenant), (due, seq) in heads.items()
        ),
    )


def recount(tx: Transaction, turns: Iterable[tuple[int, str]]) -> None:
    """Look up the heads of turns that jobs have left, given as (lane, tenant)."""
    for lane, tenant in dict.fromkeys(turns):
        head = tx.one(SQL["head"], lane, tenant)
        if head is None:
            tx.run(SQL["remove"], lane, tenant)
        else:
            tx.run(SQL["rehead"], lane, tenant, head[0], head[1], tx.now)
