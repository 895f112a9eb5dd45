"""CPU time of running processes, without their help."""

from __future__ import annotations

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


def main_thread_ns(pid: int) -> int | None:
    """CPU time of a process's first thread, which runs the event loop; None: cannot be told."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text(encoding="ascii")
    except OSError:
        return None
    return int(text.split()[0])


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
