"""What happened in a run, as JSON lines that any number of processes append to.

One line is one `write` to a file opened with O_APPEND, so lines of different processes never mix
and a process that is killed leaves whole lines only.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Journal:
    """Appends records to a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, kind: str, **fields: Any) -> None:
        now_ms = time.time_ns() // 1_000_000
        line = json.dumps({"kind": kind, "boot": boottime(), "now": now_ms, **fields})
        os.write(self._descriptor, line.encode() + b"\n")

    def close(self) -> None:
        os.close(self._descriptor)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


class Tail:
    """Reads a journal while it is being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def news(self) -> list[dict[str, Any]]:
        """Give the lines written since the last call; a line half way waits for the next."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            whole, _, _ = file.read().rpartition(b"\n")
        self._offset += len(whole) + bool(whole)
        return [json.loads(line) for line in whole.splitlines()]


# ── what clients and handlers did ────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Submission:
    """One call of submit, repeated until answered. ``answer`` None: nobody lived to see it."""

    job_id: str
    type: str
    tenant: str
    key: str | None = None
    answer: str | None = None
    answered_id: str | None = None
    answered_ms: int = 0

    @property
    def acknowledged(self) -> bool:
        return self.answer in {"created", "already"}


@dataclass(slots=True)
class Cancel:
    """One call of cancel. ``answer`` None: the client did not live to see it, or it failed."""

    job_id: str
    answer: str | None = None
    answered_ms: int = 0


@dataclass(slots=True)
class Run:
    """One run of a handler. ``ended`` None: nobody saw its end."""

    job_id: str
    type: str
    lease: int
    pid: int
    started: float
    started_ms: int = 0
    due_ms: int = 0
    attempt: int = 1
    ended: float | None = None


@dataclass(slots=True)
class Pause:
    """A time during which a process was stopped by a signal."""

    pid: int
    begun: float
    ended: float


# ── the store's own view ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One accepted change of a job's row, in the order in which the store made them."""

    number: int
    job_id: str
    old_state: str | None
    new_state: str | None
    now_ms: int = 0
    tenant: str = "default"
    queue: str = "default"
    level: int = 2
    part: int = 0
    """The part of the store it was made in; each is fair for itself."""
    generation: int = 0
    old_generation: int = 0
    lease: int = 0
    old_lease: int = 0
    nonce: str | None = None
    old_nonce: str | None = None
    worker: str | None = None
    due_ms: int = 0
    claimed_ms: int | None = None
    old_expires_ms: int | None = None
    attempt: int = 0
    abandoned: bool = False
    """It was taken from its holder: a loss was counted, or it became a suspect with others."""
    crashed: bool = False
    """A crash was counted: the process that ran nothing else has died."""
    author: dict[str, Any] | None = None
    """Under which fence the written result or error was made, as its handler says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """A job as the store has it at the end of a run."""

    job_id: str
    type: str
    tenant: str
    state: str
    attempt: int = 0
    crashes: int = 0
    losses: int = 0
    reason: str | None = None
    suspect: bool = False
    lease: int = 0
    error: str | None = None
    """Its last error as JSON."""


@dataclass(slots=True)
class History:
    """Everything the checker looks at."""

    submissions: list[Submission] = field(default_factory=list)
    cancels: list[Cancel] = field(default_factory=list)
    retries: Counter[str] = field(default_factory=Counter)
    """How often each dead job was let go on by a retry."""
    runs: list[Run] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    deaths: list[tuple[int, float]] = field(default_factory=list)
    """Processes that died before they were done: pid and BOOTTIME."""
    dead_workers: set[str] = field(default_factory=set)
    """Holders of claims whose process died."""
    refused: int = 0
    """Writes that their callers report as refused."""
    kills: dict[str, int] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    endings: dict[str, Ending] = field(default_factory=dict)
    doubled: list[str] = field(default_factory=list)
    """Jobs that the store has twice at the end of a run."""
    keyed: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Jobs in the store per tenant and idempotency key."""
    broken: list[str] = field(default_factory=list)
    """What a store that nobody works on any more says is wrong with itself."""
    failures: Counter[str] = field(default_factory=Counter)
    """Calls of clients that ended with an error of the store, by its class."""
    end: float = 0.0


def read(path: Path) -> History:
    """Build a history from a journal; the store's view is added by the auditor."""
    reader = _Reader()
    for line in read_lines(path):
        reader.take(line)
    return reader.finish()


class _Reader:
    """Joins the lines that belong to one call, one run or one pause."""

    def __init__(self) -> None:
        self.history = History()
        self._submissions: dict[str, Submission] = {}
        self._cancels: dict[str, Cancel] = {}
        self._runs: dict[tuple[str, int, int], Run] = {}
        self._stopped: dict[int, float] = {}
        self._workers: dict[int, str] = {}

    def take(self, line: dict[str, Any]) -> None:
        self.history.end = max(self.history.end, line["boot"])
        handle = getattr(self, f"_{line['kind']}", None)
        if handle is not None:
            handle(line)

    def finish(self) -> History:
        for pid, begun in self._stopped.items():
            self.history.pauses.append(Pause(pid, begun, self.history.end))
        _end_with_process(self.history)
        return self.history

    def _submit_sent(self, line: dict[str, Any]) -> None:
        call = Submission(line["job"], line["type"], line["tenant"], line["key"])
        self._submissions[line["job"]] = call
        self.history.submissions.append(call)

    def _submit_answered(self, line: dict[str, Any]) -> None:
        call = self._submissions[line["job"]]
        call.answer, call.answered_id = line["answer"], line["id"]
        call.answered_ms = line["now"]

    def _failed(self, line: dict[str, Any]) -> None:
        self.history.failures[line["error"]] += 1

    def _cancel_sent(self, line: dict[str, Any]) -> None:
        call = Cancel(line["job"])
        self._cancels[line["call"]] = call
        self.history.cancels.append(call)

    def _cancel_answered(self, line: dict[str, Any]) -> None:
        call = self._cancels[line["call"]]
        call.answer, call.answered_ms = line["answer"], line["now"]

    def _run_started(self, line: dict[str, Any]) -> None:
        run = Run(
            job_id=line["job"],
            type=line["type"],
            lease=line["lease"],
            pid=line["pid"],
            started=line["boot"],
            started_ms=line["now"],
            due_ms=line["due"],
            attempt=line["attempt"],
        )
        self._runs[run.job_id, run.lease, run.pid] = run
        self.history.runs.append(run)

    def _run_ended(self, line: dict[str, Any]) -> None:
        run = self._runs.get((line["job"], line["lease"], line["pid"]))
        if run is not None:
            run.ended = line["boot"]

    def _killed(self, line: dict[str, Any]) -> None:
        kills = self.history.kills
        kills[line["what"]] = kills.get(line["what"], 0) + 1

    def _died(self, line: dict[str, Any]) -> None:
        self.history.deaths.append((line["pid"], line["boot"]))
        self._resume(line)

    def _stopped_by_signal(self, line: dict[str, Any]) -> None:
        self._stopped.setdefault(line["pid"], line["boot"])

    def _resumed_by_signal(self, line: dict[str, Any]) -> None:
        self._resume(line)

    def _resume(self, line: dict[str, Any]) -> None:
        begun = self._stopped.pop(line["pid"], None)
        if begun is not None:
            self.history.pauses.append(Pause(line["pid"], begun, line["boot"]))

    def _event(self, line: dict[str, Any]) -> None:
        fields = line["fields"]
        if line["name"] == "lease.lost":
            self.history.refused += fields["verb"] == "settle"
        elif line["name"] == "child.died":
            self.history.dead_workers.add(fields["worker"])
            if fields["pid"]:
                self.history.deaths.append((fields["pid"], line["boot"]))


def _end_with_process(history: History) -> None:
    """A run without an end lasted until its process died; pids may be used again."""
    deaths: dict[int, list[float]] = {}
    for pid, at in history.deaths:
        deaths.setdefault(pid, []).append(at)
    for run in history.runs:
        if run.ended is None:
            after = [at for at in deaths.get(run.pid, ()) if at >= run.started]
            run.ended = min(after) if after else None
