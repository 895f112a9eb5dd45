"""What all handlers of a process share and must leave as they found it.

A handler that changes one of these hurts the others: a default timeout breaks connections that are
none of its business, a long switch interval starves the event loop, a stopped loop stops everybody.
What the program itself sets before the first job is how it wants it. A process in which something
has changed since finishes its jobs and is replaced. Limits count only when they are lowered:
libraries raise them when they are first used, and nobody is hurt by that.
"""

from __future__ import annotations

import asyncio
import gc
import locale
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from math import inf
from typing import TypeVar

T = TypeVar("T")

_LIMITS = {
    "NOFILE": resource.RLIMIT_NOFILE,
    "AS": resource.RLIMIT_AS,
    "CPU": resource.RLIMIT_CPU,
    "FSIZE": resource.RLIMIT_FSIZE,
}


class _Sentinel(logging.Handler):
    """A handler without a logger: only `logging.shutdown()` closes it."""

    closed = False

    def emit(self, record: logging.LogRecord) -> None:
        pass

    def close(self) -> None:
        self.closed = True
        super().close()


class Vitals:
    """Notices what has changed since `begin`."""

    def __init__(self, signals: Iterable[int] = ()) -> None:
        self._signals = tuple(signals)
        self._sentinel = _Sentinel()
        self._noted = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._recursion = sys.getrecursionlimit()
        self._limits = {name: _soft(limit) for name, limit in _LIMITS.items()}
        self._cheap: tuple[object, ...] = ()
        self._dear: dict[str, object] = {}
        self._froze = False

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take everything as it is now for how it has to be."""
        self._loop = loop
        # Counting what is frozen takes long where much is; nothing is counted in no time.
        self._froze = gc.get_freeze_count() > 0
        self._recursion = sys.getrecursionlimit()
        self._limits = {name: _soft(limit) for name, limit in _LIMITS.items()}
        self._cheap = self._look_cheaply()
        self._dear = self._look_closely()

    def note(self, what: str) -> None:
        """Take in what was noticed elsewhere."""
        self._noted = self._noted or what

    def touched(self) -> bool:
        """Look at what can be looked at after every job: well under a microsecond."""
        return bool(self._noted) or self._look_cheaply() != self._cheap

    def harm(self) -> str:
        """Look at everything, and name what has changed; empty: nothing has."""
        if self._noted:
            return self._noted
        for name, before, now in zip(_CHEAP, self._cheap, self._look_cheaply(), strict=True):
            if before != now:
                return _changed(name, before, now)
        found = self._look_closely()
        for name, before in self._dear.items():
            if found[name] != before:
                return _changed(name, before, found[name])
        return ""

    def mend_loop(self) -> None:
        """Make the loop known again as the running one; from a callback of it."""
        if asyncio._get_running_loop() is not self._loop:  # noqa: SLF001 - there is no other way
            asyncio._set_running_loop(self._loop)  # noqa: SLF001
            self.note("a handler made asyncio forget the running event loop")

    def _look_cheaply(self) -> tuple[object, ...]:
        return (
            sys.getswitchinterval(),
            min(sys.getrecursionlimit(), self._recursion),
            socket.getdefaulttimeout(),
            gc.isenabled() and gc.get_threshold()[0] > 0,
            self._froze or gc.get_freeze_count() == 0,
            self._sentinel.closed,
            logging.root.manager.disable,
        )

    def _look_closely(self) -> dict[str, object]:
        found: dict[str, object] = {
            "sys.stdout.closed": _closed(sys.stdout),
            "sys.stderr.closed": _closed(sys.stderr),
            "the file behind descriptor 1": _identity(os.fstat, 1),
            "the file behind descriptor 2": _identity(os.fstat, 2),
            # Not its path: a folder that somebody else renames or deletes is still the same.
            "the working directory": _identity(os.stat, "."),
            "the locale": locale.setlocale(locale.LC_ALL),
            "the executor of the event loop": getattr(
                self._loop, "_executor_shutdown_called", None
            ),
        }
        for number in self._signals:
            found[f"the handler of {signal.Signals(number).name}"] = signal.getsignal(number)
        for name, limit in _LIMITS.items():
            found[f"RLIMIT_{name}"] = min(_soft(limit), self._limits[name])
        return found


_CHEAP = (
    "sys.getswitchinterval()",
    "sys.getrecursionlimit()",
    "socket.getdefaulttimeout()",
    "gc.isenabled()",
    "gc.freeze()",
    "logging.shutdown()",
    "logging.disable()",
)
_CALLS = {
    "gc.freeze()": "a handler called gc.freeze()",
    "logging.shutdown()": "a handler called logging.shutdown()",
    "the executor of the event loop": "a handler shut down the executor of the event loop",
}


def _changed(name: str, before: object, now: object) -> str:
    return _CALLS.get(name) or f"a handler changed {name} from {before} to {now}"


def _soft(limit: int) -> float:
    soft, _ = resource.getrlimit(limit)
    return inf if soft == resource.RLIM_INFINITY else soft


def _closed(stream: object) -> object:
    return getattr(stream, "closed", None)


def _identity(look: Callable[[T], os.stat_result], what: T) -> object:
    try:
        found = look(what)
    except OSError:
        return "nothing"
    return found.st_dev, found.st_ino
