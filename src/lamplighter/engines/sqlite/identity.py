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


class Identity:
    """The file as it was when it was opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _file_at(path)
        self._looked_at = runtime.monotonic()

    def check(self) -> None:
        """Refuse to go on with a file that is not at its path any more; looks now and then."""
        now = runtime.monotonic()
        if now - self._looked_at < LOOK_EVERY:
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
    """Give what tells a file apart from any other; None: there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - it is quicker
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise faults.explain_os(error, path) from error
    return found.st_dev, found.st_ino
