"""Effects as a sink without any protection sees them: one line each, and nothing is unique."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path


class Ledger:
    """An append-only file with one line per effect."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(self, job_id: str) -> None:
        os.write(self._descriptor, job_id.encode() + b"\n")

    def close(self) -> None:
        os.close(self._descriptor)

    def count(self) -> Counter[str]:
        """Effects per job."""
        return Counter(self._path.read_text(encoding="ascii").split())
