"""Starts, kills, stops and ends processes; only such as it has started, always by their number."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.faults.history import Journal, Tail
from tests.faults.rules import FOLDER

ROOT = Path(__file__).resolve().parents[2]
POLL = 0.02


@dataclass(frozen=True, slots=True)
class Found:
    """A process that cannot be confused with a later one of the same number."""

    pid: int
    born: int

    def alive(self) -> bool:
        stat = _stat(self.pid)
        return stat is not None and stat.born == self.born and stat.state not in "ZX"


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    parent: int
    born: int


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may contain anything, so count from its end.
    fields = text.rpartition(")")[2].split()
    return _Stat(state=fields[0], parent=int(fields[1]), born=int(fields[19]))


def identify(pid: int) -> Found | None:
    stat = _stat(pid)
    return None if stat is None else Found(pid, stat.born)


def children_of(pid: int) -> list[Found]:
    """Give the living children of a process, in the order of their numbers."""
    found: list[Found] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            stat = _stat(int(entry.name))
            if stat is not None and stat.parent == pid and stat.state not in "ZX":
                found.append(Found(int(entry.name), stat.born))
    return sorted(found, key=lambda one: one.pid)


class Late(AssertionError):
    """Something that had to happen did not happen in time."""


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Look until a condition holds; say what was waited for when it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Late(f"not within {seconds:g} s: {what}")
        time.sleep(POLL)


@dataclass(slots=True)
class Process:
    """A process started here."""

    what: str
    name: str
    popen: subprocess.Popen[bytes]
    found: Found

    @property
    def pid(self) -> int:
        return self.found.pid

    def alive(self) -> bool:
        return self.popen.poll() is None


class Driver:
    """The processes of one run, in one folder, on one store."""

    def __init__(self, folder: Path, *, source: Path | None = None) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder}/jobs.db"
        self.journal_path = folder / "history.jsonl"
        self.journal = Journal(self.journal_path)
        self.processes: list[Process] = []
        self.steps: dict[str, int] = {}
        """The last step of each client."""
        self._tail = Tail(self.journal_path)
        self._workers: dict[int, str] = {}
        self._seen: set[Found] = set()
        self._stopped: set[Found] = set()
        paths = [str(source)] if source is not None else []
        self.environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join([*paths, str(ROOT)]),
            "LAMPLIGHTER_URL": self.url,
            FOLDER: str(folder),
            # So that a measured run also measures these.
            **{name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")},
        }

    # ── start ────────────────────────────────────────────────────────────────────────────────

    def start_worker(self, lease: float, *, children: int, slots: int) -> Process:
        arguments = [str(lease), str(children), str(slots)]
        return self._start("supervisor", f"worker-{len(self.processes)}", "worker", arguments)

    def start_client(self, name: str, seed: str, first: int, rate: float) -> Process:
        return self._start("client", name, "client", [name, seed, str(first), str(rate)])

    def run(self, module: str, *arguments: str, timeout: float) -> subprocess.CompletedProcess[str]:
        """Run a short program of the run and wait for it."""
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def _start(self, what: str, name: str, module: str, arguments: list[str]) -> Process:
        with (self.folder / f"{what}.log").open("ab") as log:
            popen = subprocess.Popen(
                [sys.executable, "-m", f"tests.faults.{module}", *arguments],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        stat = _stat(popen.pid)
        process = Process(what, name, popen, Found(popen.pid, stat.born if stat else 0))
        self.processes.append(process)
        self._seen.add(process.found)
        self.journal.write("started", what=what, name=name, pid=process.pid)
        return process

    # ── find ─────────────────────────────────────────────────────────────────────────────────

    def living(self, what: str) -> list[Process]:
        return [process for process in self.processes if process.what == what and process.alive()]

    def children(self, supervisor: Process) -> list[Found]:
        found = children_of(supervisor.pid)
        self._seen.update(found)
        return found

    def look(self) -> None:
        """Take in what the processes have written since the last look."""
        for line in self._tail.news():
            if line["kind"] == "client_step":
                self.steps[line["client"]] = line["step"]
            elif line["kind"] == "event" and line["name"] == "worker.started":
                self._workers[line["supervisor"]] = line["fields"]["worker"]

    def worker_of(self, supervisor: Process) -> str | None:
        """Give the name under which a worker has joined, None before."""
        self.look()
        return self._workers.get(supervisor.pid)

    def ready(self, *supervisors: Process) -> bool:
        """Tell whether workers have joined, by their own reports."""
        return all(self.worker_of(one) is not None for one in supervisors)

    # ── hurt ─────────────────────────────────────────────────────────────────────────────────

    def kill(self, what: str, victim: Found) -> None:
        """End one process at once, and with a supervisor its children, which the system kills."""
        orphans = children_of(victim.pid) if what == "supervisor" else []
        self._seen.update(orphans)
        self.journal.write("killed", what=what, pid=victim.pid)
        self._signal(victim, signal.SIGKILL)
        gone = [victim, *orphans]
        self._stopped.difference_update(gone)
        for process in self.processes:
            if process.found == victim:
                process.popen.wait()
        for one in gone:
            wait_until(lambda one=one: not one.alive(), 10, f"the end of process {one.pid}")
            self.journal.write("died", pid=one.pid)

    def stop(self, victims: list[Found]) -> None:
        """Stop processes where they stand; the supervisor first, so that it notices nothing."""
        for victim in victims:
            self._signal(victim, signal.SIGSTOP)
            self._stopped.add(victim)
            self.journal.write("stopped_by_signal", pid=victim.pid)

    def resume(self, victims: list[Found]) -> None:
        for victim in victims:
            self._stopped.discard(victim)
            self.journal.write("resumed_by_signal", pid=victim.pid)
            self._signal(victim, signal.SIGCONT)

    def stopped(self) -> set[Found]:
        return {one for one in self._stopped if one.alive()}

    @staticmethod
    def _signal(victim: Found, number: int) -> None:
        if victim.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim.pid, number)

    # ── end ──────────────────────────────────────────────────────────────────────────────────

    def stop_clients(self) -> None:
        """Ask clients to finish the call they are in."""
        (self.folder / "clients-stop").touch()
        wait_until(lambda: not self.living("client"), 30, "the end of the clients")

    def drain_workers(self) -> None:
        """Ask workers to end in peace."""
        for process in self.living("supervisor"):
            process.popen.send_signal(signal.SIGTERM)
        wait_until(lambda: not self.living("supervisor"), 40, "the end of the workers")

    def end(self) -> list[int]:
        """End everything that is left; gives the numbers of children that nobody had ended."""
        for process in self.processes:
            if process.alive() and process.what == "supervisor":
                self._seen.update(children_of(process.pid))
        self.resume(list(self.stopped()))
        for process in self.processes:
            if process.alive():
                process.popen.kill()
            process.popen.wait()
        deadline = time.monotonic() + 5
        while any(one.alive() for one in self._seen) and time.monotonic() < deadline:
            time.sleep(POLL)
        left = [one for one in self._seen if one.alive()]
        for one in left:
            self._signal(one, signal.SIGKILL)
        self.journal.close()
        return [one.pid for one in left]
