"""The store's own view of a run: every accepted write to a job.

In a database triggers note it. They live in the store that is tested and run inside its
transactions. So what they note is exactly what was committed, whoever wrote it and whatever the
writer was told. Redis has no triggers, but keeps a log of all it has done.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Protocol

from tests.faults.history import History


class Auditor(Protocol):
    """Watches over a store, reads what was noted, and answers a few questions."""

    def install(self) -> None:
        """Begin, in a store that the engine has made."""
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

    def faults(self) -> list[str]:
        """Say in what a store on which nobody works any more disagrees with itself."""
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
