"""CPU time of running processes, without their help."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.errors import BenchmarkError

_WHOLE_PROCESS = 2
"""The kernel's clock of all threads of a process, those that have ended included."""


def process_ns(pid: int) -> int:
    """CPU time a process has used so far, user and system, all threads."""
    try:
        if sys.platform == "linux":
            return time.clock_gettime_ns((~pid << 3) | _WHOLE_PROCESS)
        return _by_ps(pid)
    except (OSError, ValueError) as error:
        raise BenchmarkError(f"process {pid} has ended in the middle of a measurement") from error


def waited_ns(pid: int) -> int:
    """CPU time of a process's own children that have ended; 0 where it cannot be told."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    # The name before the bracket may contain anything.
    fields = text.rpartition(")")[2].split()
    user, system = int(fields[13]), int(fields[14])
    return (user + system) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def main_thread_ns(pid: int) -> int | None:
    """CPU time of a process's first thread, which runs the event loop; None: cannot be told."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text(encoding="ascii")
    except OSError:
        return None
    return int(text.split()[0])


class Others:
    """How much of the machine other programs used meanwhile; their noise is in every number."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._machine = _machine_s()
        self._ours = _ours_s()

    def share(self) -> float | None:
        """Part of all cores since the beginning, once our processes have ended; None: unknown."""
        machine = _machine_s()
        if machine is None or self._machine is None:
            return None
        used = (machine - self._machine) - (_ours_s() - self._ours)
        return max(0.0, used / (time.monotonic() - self._began) / (os.cpu_count() or 1))


def _machine_s() -> float | None:
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
    except OSError:
        return None
    user, nice, system, _idle, _waiting, irq, softirq, steal = (int(n) for n in first[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _ours_s() -> float:
    ours = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in ours)


def _by_ps(pid: int) -> int:
    shown = subprocess.run(
        ["ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return parse_ps_time(shown)


def parse_ps_time(text: str) -> int:
    """Read `[[hours:]minutes:]seconds[.fraction]` as nanoseconds."""
    seconds = 0.0
    for part in text.strip().split(":"):
        seconds = seconds * 60 + float(part)
    return int(seconds * 1e9)
