"""Tells systemd how the worker is: started, reloading, stopping, and still making progress.

Everything goes as a datagram to the socket named by NOTIFY_SOCKET. Without one nothing happens;
a socket that cannot be written to is nobody's problem but the service manager's, so nothing here
ever raises.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from lamplighter import runtime
from lamplighter.model.counts import counted
from lamplighter.observability import events
from lamplighter.observability.health import Health
from lamplighter.service import Service
from lamplighter.worker.process import ChildProcess

LOOK = 0.5
"""Seconds between two looks at the worker."""
PATIENCE = 60.0
"""A loop no step of which returned for so long is stuck; every call of the store ends earlier."""


def wanted() -> bool:
    """Tell whether a service manager listens."""
    return bool(os.environ.get("NOTIFY_SOCKET"))


def notify(*lines: str) -> bool:
    """Send lines like `READY=1`; True if somebody was there to take them."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in {"/", "@"}:
        return False
    if address.startswith("@"):
        # An abstract address begins with a zero byte, which no variable can hold.
        address = "\0" + address[1:]
    text = "\n".join(line.replace("\n", " ") for line in lines)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto(text.encode("utf-8", "replace"), address)
    except (OSError, ValueError):
        return False
    return True


def ready(status: str = "") -> bool:
    """Tell that the worker works: for the first time, or again after a reload."""
    return notify("READY=1", *([f"STATUS={status}"] if status else []))


def reloading() -> bool:
    """Tell that a reload has begun; ``ready`` ends it, whether it went well or not."""
    return notify(
        "RELOADING=1",
        f"MONOTONIC_USEC={int(runtime.monotonic() * 1_000_000)}",
        "STATUS=reloading",
    )


def stopping(status: str = "running jobs come to their end") -> bool:
    """Tell that the worker comes to an end."""
    return notify("STOPPING=1", f"STATUS={status}")


def watchdog() -> float | None:
    """Return the seconds within which systemd wants a sign of life; None: it does not watch us."""
    pid = os.environ.get("WATCHDOG_PID", "")
    if pid and pid != str(os.getpid()):
        return None
    given = os.environ.get("WATCHDOG_USEC", "")
    microseconds = int(given) if given.isascii() and given.isdigit() else 0
    return microseconds / 1_000_000 or None


class Reported(Protocol):
    """A worker as systemd hears of it."""

    @property
    def serving(self) -> bool:
        """Whether the store knows it and a child of it has been ready."""
        ...

    @property
    def draining(self) -> bool:
        """Whether it comes to an end."""
        ...

    @property
    def size(self) -> int:
        """How many children it wants."""
        ...

    @property
    def children(self) -> Sequence[ChildProcess]:
        """Its living children."""
        ...

    def health(self) -> Health:
        """Look at its loops."""
        ...


class Notifier(Service):
    """Reports a worker's start, reloads, end and status, and that it makes progress.

    ``loops`` are those without which the worker does no good; when one of them makes no progress,
    systemd gets no sign of life and starts the worker anew. A loop whose steps fail, because the
    store is away, should not be among them: a new start would not bring the store back. Of the
    others, only one whose step could not even be given up has the same consequence.
    """

    name = "systemd"

    def __init__(
        self,
        worker: Reported,
        *,
        loops: Callable[[], Iterable[Service]] = tuple,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__()
        self._worker = worker
        self._loops = loops
        self._patience = patience
        self._told_ready = False
        self._told_stopping = False
        self._told = ""
        limit = watchdog()
        self._alive_every = None if limit is None else limit / 2
        self._alive_after = 0.0
        self._pause = LOOK if limit is None else min(LOOK, limit / 2)
        self._stop_listening: Callable[[], None] | None = None

    def start(self) -> None:
        """Begin; a reload is told in the moment it begins."""
        self._stop_listening = events.listen(self._on_event)
        super().start()

    async def stop(self) -> None:
        """End, and say that the worker does."""
        if self._stop_listening is not None:
            self._stop_listening()
        await super().stop()
        self._tell_stopping()

    async def step(self) -> float:
        """Tell what is new."""
        worker, status = self._worker, self._status()
        if worker.draining:
            self._tell_stopping()
        elif worker.serving and not self._told_ready and not _reloads(worker):
            self._told_ready = True
            ready(status)
        elif status != self._told:
            notify(f"STATUS={status}")
        self._told = status
        if self._alive_every is not None:
            self._tell_progress(self._alive_every)
        return self._pause

    def _on_event(self, name: str, _fields: Mapping[str, Any]) -> None:
        if name == events.WORKER_RELOADED and self._told_ready:
            # Also a reload that comes to nothing ends by being ready.
            self._told_ready = False
            reloading()

    def _tell_stopping(self) -> None:
        if not self._told_stopping:
            self._told_stopping = True
            stopping()

    def _status(self) -> str:
        children = self._worker.children
        running = sum(child.ledger.running() for child in children)
        ready = sum(child.ready and not child.dead and not child.alone for child in children)
        size = counted(self._worker.size, "child", "children")
        how = f"{ready} of {size} ready, {counted(running, 'job')} running"
        return "; ".join((how, *self._worker.health().why))

    def _tell_progress(self, every: float) -> None:
        now = runtime.monotonic()
        # A little early rather than a whole look late.
        if now + self._pause / 2 < self._alive_after:
            return
        stuck = [loop.name for loop in self._loops() if now - loop.progress > self._patience]
        stuck += self._worker.health().stuck
        if stuck:
            self._told = ""
            notify(f"STATUS=no progress: {', '.join(stuck)}")
            return
        notify("WATCHDOG=1")
        self._alive_after = now + every


def _reloads(worker: Reported) -> bool:
    return any(child.replaces is not None for child in worker.children)
