"""What handlers note and the driver reads: a counter and a list of starts per process."""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

_COUNT = ".count"
_STARTS = ".starts"
SLOT = ".slot"
"""In the names of the files of a process that runs one job at a time."""
LONE = ".lone"
"""In the names of the files of the child that has such processes, and runs no handler itself."""
_START = struct.Struct("<qqq")


@dataclass(frozen=True, slots=True)
class Start:
    """When one handler began, by both clocks, in nanoseconds, and in which process."""

    number: int
    monotonic_ns: int
    wall_ns: int
    pid: int = 0


class Gauge:
    """The side of a child, or of a process that a child has started.

    Counting costs far less than a microsecond, noting a start a few. ``kind`` is empty for a
    process that runs many jobs at once. Nothing of ours is imported here: the processes of other
    programs count in the same way.
    """

    def __init__(self, folder: Path, kind: str = "") -> None:
        name = folder / f"{os.getpid()}{kind}"
        self._file = os.open(f"{name}{_STARTS}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        # Made elsewhere and moved: who finds the counter finds it whole.
        unready = Path(f"{name}.new")
        unready.write_bytes(bytes(8))
        with unready.open("r+b") as file:
            self.count = memoryview(mmap.mmap(file.fileno(), 8)).cast("q")
        unready.rename(f"{name}{_COUNT}")

    def note_start(self, number: int) -> None:
        """Write down that a handler starts now."""
        os.write(self._file, _START.pack(number, time.monotonic_ns(), time.time_ns()))


class Gauges:
    """The driver's side: all processes of one worker that run handlers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._children: dict[int, memoryview] = {}
        self._slots: dict[int, memoryview] = {}
        self._lone: dict[int, memoryview] = {}
        self._read: dict[Path, int] = {}

    def pids(self) -> list[int]:
        """Children that have imported the program so far."""
        self.look()
        return sorted(self._children)

    def every_pid(self) -> list[int]:
        """The same, with the one whose jobs run in processes of their own."""
        self.look()
        return sorted([*self._children, *self._lone])

    def slot_pids(self) -> list[int]:
        """Processes for one job at a time that have imported it so far, also if they have ended."""
        self.look()
        return sorted(self._slots)

    def look(self) -> None:
        """Get to know processes that are new."""
        for path in self.folder.glob(f"*{_COUNT}"):
            known = self._children
            if SLOT in path.name:
                known = self._slots
            elif LONE in path.name:
                known = self._lone
            pid = _pid(path)
            if pid not in known:
                with path.open("r+b") as file:
                    known[pid] = memoryview(mmap.mmap(file.fileno(), 8)).cast("q")

    def counts(self) -> list[int]:
        """Handlers each known child has run so far."""
        return [count[0] for count in self._children.values()]

    def total(self) -> int:
        """Handlers all known processes have run so far."""
        known = (*self._children.values(), *self._slots.values())
        return sum(count[0] for count in known)

    def new_starts(self) -> list[Start]:
        """Starts noted since the last call."""
        found: list[Start] = []
        for path in self.folder.glob(f"*{_STARTS}"):
            offset = self._read.get(path, 0)
            with path.open("rb") as file:
                file.seek(offset)
                data = file.read()
            whole = len(data) - len(data) % _START.size
            pid = _pid(path)
            found += [Start(*fields, pid=pid) for fields in _START.iter_unpack(data[:whole])]
            self._read[path] = offset + whole
        return found


def _pid(path: Path) -> int:
    return int(path.name.partition(".")[0])
