"""change: do what an operator asks to jobs, each as a table says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamplighter.engines.postgres import records
from lamplighter.engines.postgres.call import Call
from lamplighter.engines.postgres.ids import uuids
from lamplighter.model.changes import Table
from lamplighter.port import texts


async def change(
    call: Call, ids: Sequence[str], table: Table, by: str, reason: str
) -> Mapping[str, int]:
    """Change each job, and return the numbers of the situations in which they were found."""
    rows = await call.rows(
        f"SELECT id, situation FROM {call.function('change')}(%s, %s, %s, %s, %s)",
        (
            uuids(ids),
            table.effects,
            table.locks_queues,
            records.mark_to_text(by, reason),
            texts.clean(reason) or "cancelled",
        ),
    )
    return dict(rows)
