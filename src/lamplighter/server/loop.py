"""How a process that serves runs: with the faster event loop, where one is installed."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

try:
    from uvloop import new_event_loop as _new_loop
except ImportError:  # an extra, `speed`; not made for every system
    _new_loop = None

T = TypeVar("T")

_YOUNG = 10_000
"""Objects after which to look for those that nobody needs; requests leave hardly any behind."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run the work to its end, in a loop of its own. The process is there for nothing else."""
    # What has been imported stays: there is no use in looking at it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG)
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(work)
