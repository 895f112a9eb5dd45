"""Where the folders of the tests lie."""

import os
import shutil
from pathlib import Path

import pytest

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


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Two processes per core: half of the tests wait for other processes most of their time."""
    if config.option.numprocesses != "auto" or "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return 2 * len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
