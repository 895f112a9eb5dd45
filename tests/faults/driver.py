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

import lamplighter
from tests.faults.census import Census
from tests.faults.history import Journal, Tail
from tests.faults.processes import Found, children_of, identify, marked, tree_of
from tests.faults.rules import FOLDER

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(lamplighter.__file__).resolve().parents[1]
"""What this process imports; what it starts does so as well, unless it is told otherwise."""
POLL = 0.02
_PASSED_ON = ("COVERAGE_", "LAMPLIGHTER_REDIS_SERVER")


def _runs_handlers(pid: int) -> bool:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(one.startswith(b"LAMPLIGHTER_CHILD=") and b"/c" in one for one in variables)


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
    """The processes of one run, in one folder, on the store at one address."""

    def __init__(self, folder: Path, url: str, *, source: Path | None = None) -> None:
        self.folder = folder
        self.url = url
        self.journal_path = folder / "history.jsonl"
        self.journal = Journal(self.journal_path)
        self.census = Census(self.journal_path)
        self.processes: list[Process] = []
        self.left: list[str] = []
        """What nobody had ended in time, once `end` has looked."""
        self.steps: dict[str, int] = {}
        """The last step of each client."""
        self.answers: dict[str, list[int]] = {}
        """When submissions of each client were answered, in milliseconds."""
        self._tail = Tail(self.journal_path)
        self._workers: dict[int, str] = {}
        self._seen: set[Found] = set()
        self._stopped: set[Found] = set()
        self.environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join([str(source or SOURCE), str(ROOT)]),
            "LAMPLIGHTER_URL": self.url,
            FOLDER: str(folder),
            # So that a measured run also measures these, and a named server is the one they use.
            **{name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)},
        }
        self.census.start()

    # ── start ────────────────────────────────────────────────────────────────────────────────

    def start_worker(self, lease: float, *, program: str = "program", **settings: float) -> Process:
        """Start a worker for a module of job types, with any settings of a worker."""
        given = [f"{name}={value}" for name, value in {"lease": lease, **settings}.items()]
        name = f"worker-{len(self.processes)}"
        return self._start("supervisor", name, "worker", [program, *given])

    def start_client(self, name: str, seed: str, first: int, rate: float) -> Process:
        return self._start("client", name, "client", [name, seed, str(first), str(rate)])

    def start_coordinator(self, **options: object) -> Process:
        """Start a coordinator without a worker, with any options of `coordinator.py`."""
        name = f"coordinator-{len(self.processes)}"
        given = [f"{name}={value}" for name, value in options.items()]
        return self._start("coordinator", name, "coordinator", given)

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
        found = identify(popen.pid) or Found(popen.pid, 0)
        process = Process(what, name, popen, found)
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

    def runners(self, supervisor: Process) -> list[Found]:
        """Give the children that run handlers themselves; one more has processes for that."""
        return [child for child in self.children(supervisor) if _runs_handlers(child.pid)]

    def tree(self, supervisor: Process) -> list[Found]:
        """Give everything below a worker, however deep."""
        found = tree_of(supervisor.pid)
        self._seen.update(found)
        return found

    def look(self) -> None:
        """Take in what the processes have written since the last look."""
        for line in self._tail.news():
            if line["kind"] == "client_step":
                self.steps[line["client"]] = line["step"]
            elif line["kind"] == "submit_answered" and "client" in line:
                self.answers.setdefault(line["client"], []).append(line["now"])
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
        orphans = tree_of(victim.pid) if what == "supervisor" else []
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

    def end(self) -> None:
        """End everything that is left, and note in `left` what nobody had ended."""
        self.resume(list(self.stopped()))
        for process in self.processes:
            if process.alive():
                process.popen.kill()
            process.popen.wait()
        deadline = time.monotonic() + 5
        while (left := self._remains()) and time.monotonic() < deadline:
            time.sleep(POLL)
        self.left = [f"{one.pid} ({one.command()})" for one in left]
        for one in left:
            self._signal(one, signal.SIGKILL)
        self.census.end()
        self.journal.close()

    def _remains(self) -> list[Found]:
        """Give all that the processes of this run have left, however it has hidden itself."""
        mine = set(marked(f"{FOLDER}={self.folder}"))
        return sorted(mine | {one for one in self._seen if one.alive()}, key=lambda one: one.pid)
