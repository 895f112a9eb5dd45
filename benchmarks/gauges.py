"""What handlers note and the driver reads: a counter and a list of starts per child process."""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

_COUNT = ".count"
_STARTS = ".starts"
_START = struct.Struct("<qqq")


@dataclass(frozen=True, slots=True)
class Start:
    """When one handler began, by both clocks, in nanoseconds."""

    number: int
    monotonic_ns: int
    wall_ns: int


class Gauge:
    """A child's side. Counting costs far less than a microsecond, noting a start a few."""

    def __init__(self, folder: Path) -> None:
        name = folder / str(os.getpid())
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
    """The driver's side: all children of one worker."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._counts: dict[int, memoryview] = {}
        self._read: dict[Path, int] = {}

    def pids(self) -> list[int]:
        """Children that have imported the program so far."""
        for path in self.folder.glob(f"*{_COUNT}"):
            pid = int(path.name.removesuffix(_COUNT))
            if pid not in self._counts:
                with path.open("r+b") as file:
                    self._counts[pid] = memoryview(mmap.mmap(file.fileno(), 8)).cast("q")
        return sorted(self._counts)

    def counts(self) -> list[int]:
        """Handlers each known child has run so far."""
        return [count[0] for count in self._counts.values()]

    def total(self) -> int:
        """Handlers all known children have run so far."""
        return sum(count[0] for count in self._counts.values())

    def new_starts(self) -> list[Start]:
        """Starts noted since the last call."""
        found: list[Start] = []
        for path in self.folder.glob(f"*{_STARTS}"):
            offset = self._read.get(path, 0)
            with path.open("rb") as file:
                file.seek(offset)
                data = file.read()
            whole = len(data) - len(data) % _START.size
            found += [Start(*fields) for fields in _START.iter_unpack(data[:whole])]
            self._read[path] = offset + whole
        return found
