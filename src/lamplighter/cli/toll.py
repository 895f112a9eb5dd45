"""What killing a child costs: nothing, and here is the proof.

Every job that was seen to start is remembered until the store has confirmed its end. Until then
the store must know it, waiting or running: one it does not know is lost. Of a killed child the
jobs it held are followed until none of them is in its hands any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from lamplighter import runtime
from lamplighter.model.errors import StoreError
from lamplighter.model.job import TERMINAL, Fence, JobState
from lamplighter.observability import events
from lamplighter.port.inspector import Inspector
from lamplighter.service import Service
from lamplighter.worker.process import ChildProcess

WATCHED = 1_000
"""So many jobs are watched at once; of a program with more of them, these are a sample."""
LOOKED_UP = 50
"""So many of them are looked up in a step."""
EVERY = 1.0
SOON = 0.05
"""Seconds between two steps while the jobs of a killed child are followed."""

_ENDS = frozenset(state.value for state in TERMINAL)


class Worker(Protocol):
    """A worker that lets its children be killed."""

    @property
    def children(self) -> Sequence[ChildProcess]:
        """Its living children."""
        ...

    def kill_one(self) -> int | None:
        """Kill one; gives its pid."""
        ...


@dataclass(slots=True)
class Kill:
    """A killed child and the jobs that are still in its hands."""

    pid: int
    at: float
    held: dict[str, Fence] = field(default_factory=dict[str, Fence])


class Toll:
    """Counts what was killed and what was lost."""

    def __init__(self) -> None:
        self.killed = 0
        self.lost: set[str] = set()
        self.recovered_in: float | None = None
        """Seconds until the jobs of the last killed child were out of its hands."""
        self.on_recovered: Callable[[Kill, float], None] | None = None
        self._watched: dict[str, None] = {}
        self._kills: list[Kill] = []

    def __str__(self) -> str:
        text = f"killed {self.killed} · lost {len(self.lost)}"
        if self._kills:
            return f"{text} · recovering…"
        if self.recovered_in is not None:
            return f"{text} · recovered in {self.recovered_in:.1f} s"
        return text

    @property
    def pending(self) -> bool:
        """Whether jobs of a killed child are being followed."""
        return bool(self._kills)

    def on_event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Take in the start or the end of a job."""
        if name == events.JOB_STARTED and len(self._watched) < WATCHED:
            self._watched[fields["job_id"]] = None
        elif name == events.JOB_SETTLED and fields.get("state") in _ENDS:
            # The store has confirmed it; from now on it may be removed like any other.
            self._watched.pop(fields["job_id"], None)

    def kill(self, worker: Worker) -> Kill | None:
        """Kill a child of the worker, and follow what it held."""
        held = {
            child.pid: {entry.id: entry.fence for entry in child.ledger.entries.values()}
            for child in worker.children
        }
        pid = worker.kill_one()
        if pid is None:
            return None
        self.killed += 1
        kill = Kill(pid, runtime.monotonic(), held.get(pid, {}))
        self._kills.append(kill)
        return kill

    async def check(self, inspector: Inspector) -> None:
        """Look up what must not be lost."""
        for kill in list(self._kills):
            for job_id, fence in list(kill.held.items()):
                record = await inspector.job(job_id)
                if record is None:
                    self._lose(job_id)
                elif record.state is JobState.RUNNING and record.lease == fence.lease:
                    # Not given back yet. Those behind it will not be either.
                    break
                del kill.held[job_id]
            if not kill.held:
                self._kills.remove(kill)
                self.recovered_in = runtime.monotonic() - kill.at
                if self.on_recovered is not None:
                    self.on_recovered(kill, self.recovered_in)
        for job_id in list(islice(self._watched, LOOKED_UP)):
            record = await inspector.job(job_id)
            # Whether it has ended while we asked, decides.
            if job_id not in self._watched:
                continue
            del self._watched[job_id]
            if record is None:
                self._lose(job_id)
            elif record.state not in TERMINAL:
                # To the end of the line: all get their turn.
                self._watched[job_id] = None

    def _lose(self, job_id: str) -> None:
        self.lost.add(job_id)


class Auditor(Service):
    """Has the toll look things up, often while jobs are being recovered."""

    name = "audit"

    def __init__(self, inspector: Inspector, toll: Toll) -> None:
        super().__init__()
        self._inspector = inspector
        self._toll = toll

    async def step(self) -> float:
        """Look once; a store that does not answer says nothing about lost jobs."""
        try:
            await self._toll.check(self._inspector)
        except StoreError:
            return EVERY
        return SOON if self._toll.pending else EVERY / 2
