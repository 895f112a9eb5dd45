"""What has to be known about a job queue before its figures say anything."""

from __future__ import annotations

from dataclasses import dataclass

PROMISES = (
    "delivery",
    "lost worker",
    "late finish",
    "commits",
    "history",
    "fairness",
    "job's end",
)
"""What is told of each, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A job queue, how it was set up, and what it promises in return for its CPU."""

    name: str
    version: str
    settings: str
    promises: dict[str, str]
    """One sentence for each of `PROMISES`."""
    waiting: str
    """Statement that counts the jobs that have not ended: SQL, or Lua for Redis."""
    share: float = 1.0
    """Part of the usual number of jobs that is enough for it to drain."""
    bulk: float = 1.0
    """Part of the usual number of jobs that is enough for it to be given in bulk."""
    due: float = 1.0
    """Part of the usual number of jobs due at one instant, so that all have run in about a
    minute; 0: it cannot do that, or only with help that it has not here."""

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"
