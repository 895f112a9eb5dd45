"""check_up: look at the file, its place and its settings, and say what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import checkup
from lamplighter.port.checkup import Checkup

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def check_up(path: Path, clock_ms: Callable[[], int], lease_ms: int) -> Checkup:
    """Read all facts, and let each check judge them."""
    facts = checkup.read(path, clock_ms, lease_ms)
    return Checkup(engine="sqlite", findings=checkup.judge(facts), survives=checkup.survives(facts))
