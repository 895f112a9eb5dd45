"""Where the folders of the tests lie."""

import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""Bytes. A container may have next to nothing there."""


def pytest_configure() -> None:
    """Keep what tests write in memory: else each commit waits for a disk that others use too.

    Whether something survives the loss of the machine is not tested by any test: a kill keeps
    what a file system has been told, in memory too.
    """
    if "PYTEST_DEBUG_TEMPROOT" not in os.environ and _usable(MEMORY):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)


def _usable(folder: Path) -> bool:
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    runs_programs = not os.statvfs(folder).f_flag & os.ST_NOEXEC
    return runs_programs and shutil.disk_usage(folder).free >= ROOM
