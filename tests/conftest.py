"""Where the folders of the tests lie, how many tests run at once, and in which order."""

import os
import shutil
from itertools import groupby, islice
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""Bytes. A container may have next to nothing there."""
WAITING = (TESTS / "system", TESTS / "unit" / "redis" / "test_durability.py")
"""Tests that wait for other processes most of their time, and share nothing that is costly."""
PIECE = 100
TOGETHER = (TESTS / "system" / "test_http_floods.py",)
"""Among them those that share a service."""


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
    """Two processes per core, because of the tests that wait."""
    if config.option.numprocesses != "auto" or "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return 2 * len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread tests that wait evenly among those that compute, which then use the time.

    Each process takes tests from one stretch of the whole. Without this one of them would play
    all fault runs in small, for minutes, while the others compute and have long finished.
    """
    waiting = [item for item in items if _waits(item.path)]
    computing = [item for item in items if not _waits(item.path)]
    items.clear()
    placed = done = 0
    for _, module in groupby(computing, key=lambda item: item.path):
        # Seldom inside of a module: its tests may share something.
        while piece := list(islice(module, PIECE)):
            items += piece
            done += len(piece)
            due = len(waiting) * done // len(computing)
            items += waiting[placed:due]
            placed = due
    items += waiting[placed:]


def _waits(path: Path) -> bool:
    return path not in TOGETHER and any(one in (path, *path.parents) for one in WAITING)
