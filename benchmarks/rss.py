"""Memory of running processes, without their help."""

from __future__ import annotations

import contextlib
import re
import subprocess
from pathlib import Path

from benchmarks.errors import BenchmarkError


class Growth:
    """How much more memory a process had at its worst than when this was made."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._first = self._most = _resident(pid)
        with contextlib.suppress(OSError):
            # Linux forgets the highest so far. Elsewhere we see what it is when we look.
            Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")

    def look(self) -> None:
        """Look how much it has."""
        self._most = max(self._most, _resident(self._pid, highest=True))

    @property
    def mib(self) -> float:
        """Megabytes between the first look and the highest that was seen."""
        return (self._most - self._first) / (1 << 20)


def _resident(pid: int, *, highest: bool = False) -> int:
    """Bytes that a process has in memory, or, where the system keeps it, has had at most."""
    status = Path(f"/proc/{pid}/status")
    try:
        text = status.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(rf"^{'VmHWM' if highest else 'VmRSS'}:\s+(\d+) kB$", text, re.MULTILINE)
    kib = _by_ps(pid) if found is None else found.group(1)
    try:
        return int(kib) * 1024
    except ValueError as error:
        raise BenchmarkError(f"process {pid} has ended in the middle of a measurement") from error


def _by_ps(pid: int) -> str:
    return subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
