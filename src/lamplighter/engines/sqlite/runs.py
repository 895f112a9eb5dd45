"""Keeps runs and schedules true to the ends of their jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("runs")


def ended(tx: Transaction, ends: Sequence[tuple[str, str]]) -> None:
    """Tell of jobs of schedules that have ended, given as (id, state).

    What no run names changes nothing; neither does a run of a schedule that is gone.
    """
    rows = [(state, tx.now, job_id) for job_id, state in ends]
    tx.many(SQL["end"], rows)
    tx.many(SQL["wake"], rows)


def again(tx: Transaction, job_id: str) -> None:
    """Tell of a job of a schedule that was over and is to run again."""
    tx.run(SQL["again"], job_id)
