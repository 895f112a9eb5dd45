"""Signals that a whole service gets, and that only its supervisor may obey."""

from __future__ import annotations

import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def leave_to_supervisor() -> None:
    """Do nothing at these signals: whoever has started this process ends it.

    A handler, unlike "ignore", is not inherited by programs that are run from here.
    """
    for number in SIGNALS:
        signal.signal(number, _do_nothing)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    pass
