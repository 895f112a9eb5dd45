"""change: do what an operator asks to jobs, each as the table of the action says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamplighter.engines.postgres import records
from lamplighter.engines.postgres.call import Call
from lamplighter.engines.postgres.ids import uuids
from lamplighter.model.changes import TABLES, Action
from lamplighter.port import texts


async def change(
    call: Call, ids: Sequence[str], action: Action, by: str, reason: str
) -> Mapping[str, int]:
    """Change each job, and return the numbers of the situations in which they were found."""
    effects, locks_queues = TABLES[action]
    rows = await call.rows(
        f"SELECT id, situation FROM {call.function('change')}(%s, %s, %s, %s, %s)",
        (
            uuids(ids),
            effects,
            locks_queues,
            records.mark_to_text(by, reason),
            texts.clean(reason) or "cancelled",
        ),
    )
    return dict(rows)
