"""Whether the file that was opened is still the one at its path.

A file that is moved away or deleted goes on for those who have it open: they would take jobs that
nobody ever finds.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lamplighter import runtime
from lamplighter.engines.sqlite import faults
from lamplighter.model.errors import StoreUnreachable

if TYPE_CHECKING:
    from pathlib import Path

LOOK_EVERY = 0.1
"""Seconds between two looks: so long can a file be gone before it is noticed."""
WRITTEN = 0.01
"""The same after a commit. A look lets other threads run, and a busy writer would wait for it; what
was committed so shortly after a move might as well have been committed before it."""


class Identity:
    """The file as it was when it was opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _file_at(path)
        self._looked_at = runtime.monotonic()

    def check(self, *, written: bool = False) -> None:
        """Refuse to go on with a file that is not at its path any more; looks now and then.

        More often before what was ``written`` is acknowledged.
        """
        now = runtime.monotonic()
        if now - self._looked_at < (WRITTEN if written else LOOK_EVERY):
            return
        found = _file_at(self._path)
        if found != self._file:
            what = "is not there any more" if found is None else "has been replaced by another file"
            raise StoreUnreachable(
                f"the database `{self._path}` {what}: it was moved or deleted while it was open",
                hint="put it back with the files beside it, or start this process again to use "
                "what is there now",
                value=str(self._path),
            )
        self._looked_at = now


def _file_at(path: Path) -> tuple[int, int] | None:
    """Return what tells a file apart from any other; None: there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - it is quicker
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise faults.explain_os(error, path) from error
    return found.st_dev, found.st_ino
