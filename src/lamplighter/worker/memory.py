"""How much memory a process uses, where the system tells."""

from __future__ import annotations

import os
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
KNOWN = Path("/proc/self/statm").exists()
"""Whether the system tells."""


def of(pid: int) -> int | None:
    """Return the bytes of a process that are in memory; None: it is gone, or nobody tells."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return None
