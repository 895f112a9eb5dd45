"""A fresh SQLite engine per test, and the pieces to drive it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.connect import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from lamplighter.port.store import Engine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
async def engine(path: Path) -> AsyncIterator[Engine]:
    opened = connect(f"sqlite:///{path}", deadline=5.0)
    await opened.open()
    yield opened
    await opened.close()
