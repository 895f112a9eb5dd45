"""The store's own view of a run: triggers note every accepted write to a job's row.

The triggers live in the store that is tested and run inside its transactions. So what they note
is exactly what was committed, whoever wrote it and whatever the writer was told.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Protocol

from tests.faults.history import History


class Auditor(Protocol):
    """Installs the triggers in a store, reads what they noted, and answers a few questions."""

    def install(self) -> None:
        """Put the triggers into a store that the engine has made."""
        ...

    def unfinished(self) -> int:
        """Count jobs that have not ended."""
        ...

    def ended(self, job_ids: Collection[str]) -> int:
        """Count how many of these have ended."""
        ...

    def first_ends(self, since_ms: int) -> dict[str, int]:
        """Say when each worker first ended a job that it had claimed since then."""
        ...

    def now_ms(self) -> int:
        """Tell the store's time."""
        ...

    def running_under(self, prefix: str) -> list[str]:
        """Give the ids of the jobs held by workers whose name starts so."""
        ...

    def read_into(self, history: History) -> None:
        """Add the store's view to a history."""
        ...


def author_of(written: str | None) -> dict[str, Any] | None:
    """Find under which fence a result or an error was made; None if its maker does not say."""
    if written is None:
        return None
    value = json.loads(written)
    if isinstance(value, dict) and isinstance(value.get("message"), str):
        _, found, text = value["message"].partition("made under ")
        value = json.loads(text) if found else None
    if isinstance(value, dict) and "lease" in value:
        return value
    return None
