"""Standard streams that never block the process that writes to them.

A pipe that nobody reads and a terminal that was stopped with Ctrl-S block whoever writes to them,
and with an event loop all of its work. Here a write takes what the system accepts at once; the
rest waits in a bounded queue for a thread that is started when it is needed. What the queue cannot
hold is dropped and counted, and the count is written as soon as the stream moves again.
"""

from __future__ import annotations

import atexit
import errno
import io
import os
import select
import socket
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO, cast

from lamplighter import runtime
from lamplighter.model.counts import counted

LIMIT = 1 << 20
"""Bytes per stream that wait to be written."""
FLUSH = 0.5
"""Seconds that the queues get when the process ends."""

_CHUNK = 4096
"""Bytes that a writable pipe accepts in one piece on every system we know (PIPE_BUF on Linux)."""
_LOOK = 1000
"""Milliseconds after which a thread that waits for a stream looks whether it is still the same."""

Notice = Callable[[int, int], str]
"""Writes that so many lines and bytes were dropped."""


def plain_notice(lines: int, size: int) -> str:
    """Say it to people."""
    lost = f"{counted(lines, 'line')} ({counted(size, 'byte')}) of output"
    dropped = "was dropped: nobody read it" if lines == 1 else "were dropped: nobody read them"
    return f"lamplighter: {lost} {dropped}"


notice: Notice = plain_notice
"""How this process says that output was dropped; `logs.install` chooses."""


class _Target:
    """What a descriptor leads to, and how to write to it without waiting."""

    def __init__(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        self.key = (found.st_dev, found.st_ino)
        self.waits = False
        """Whether only a thread may write, since there is no way to write without waiting."""
        self._own = -1
        """A descriptor of ours that leads to the same place and never waits."""
        self._socket: socket.socket | None = None
        self._descriptor = descriptor
        if stat.S_ISSOCK(found.st_mode):
            self._own = os.dup(descriptor)
            self._socket = socket.socket(fileno=self._own)
        elif stat.S_ISFIFO(found.st_mode) or os.isatty(descriptor):
            self._open()

    def _open(self) -> None:
        """Open the same pipe or terminal once more: the flags of the other are not ours to set."""
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
        try:
            if sys.platform != "linux":
                raise PermissionError
            self._own = os.open(f"/proc/self/fd/{self._descriptor}", flags)
        except OSError as error:
            # Without a reader it cannot be opened, nor does a write wait: it fails.
            self.waits = error.errno != errno.ENXIO

    def is_at(self, descriptor: int) -> bool:
        """Tell whether the descriptor still leads here; a handler may close or replace any."""
        if self._own >= 0 and _key_of(self._own) != self.key:
            # Closed under us, and perhaps another's by now.
            self._own = -1
            if self._socket is not None:
                self._socket.detach()
            return False
        return _key_of(descriptor) == self.key

    def write(self, data: memoryview) -> int:
        """Write as much as is accepted now. Raises BlockingIOError when that is nothing."""
        if self._socket is not None:
            return self._socket.send(data, socket.MSG_DONTWAIT)
        return os.write(self._descriptor if self._own < 0 else self._own, data)

    def wait(self) -> None:
        """Wait for a while until something is accepted."""
        poll = select.poll()
        # ValueError: closed meanwhile.
        with suppress(ValueError):
            poll.register(self._own, select.POLLOUT)
            poll.poll(_LOOK)

    def close(self) -> None:
        """Close what is ours."""
        if self._socket is not None:
            self._socket.close()
        elif self._own >= 0:
            os.close(self._own)
        self._own = -1


def _key_of(descriptor: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Outlet(io.RawIOBase):
    """The raw end of a stream. A write always takes everything and never waits.

    Closing it leaves the descriptor open: whoever closes `sys.stdout` in a handler would take it
    from all others.
    """

    def __init__(
        self, descriptor: int, *, name: str = "", limit: int = LIMIT, tells: bool = True
    ) -> None:
        self.name = name or f"<{descriptor}>"
        self.mode = "wb"
        self.dropped = 0
        """Lines that were dropped so far."""
        self._descriptor = descriptor
        self._limit = limit
        self._tells = tells
        self._lock = threading.RLock()
        self._target: _Target | None = None
        self._waiting: deque[memoryview] = deque()
        self._size = 0
        self._lost = (0, 0)
        """Lines and bytes that were dropped and not yet told."""
        self._whole = True
        """Whether what was kept last ended its line."""
        self._broken: OSError | None = None
        self._thread: threading.Thread | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: Any, /) -> int:
        """Take all of it. Raises what a plain write would: that the reader is gone, for example."""
        view = memoryview(data).cast("B")
        with self._lock:
            self._raise_if_broken()
            target, rest = self._aim(), view
            if not self._waiting and not any(self._lost) and not target.waits:
                rest = self._offer(target, rest)
            if rest:
                self._keep(rest)
        return len(view)

    def settle(self, seconds: float) -> bool:
        """Wait for so long until nothing waits to be written; False: something does."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, seconds))
        return not self._waiting

    def close(self) -> None:
        """Close what is ours; what still waits is lost."""
        if not self.closed:
            with self._lock:
                self._waiting.clear()
                if self._target is not None:
                    self._target.close()
            super().close()

    def after_fork(self) -> None:
        """Begin anew in a forked process: the parent writes what waits, and threads stay there."""
        self._lock = threading.RLock()
        self._waiting.clear()
        self._size, self._lost, self._thread = 0, (0, 0), None

    def _aim(self) -> _Target:
        """Return where the descriptor leads to now."""
        if self._target is None or not self._target.is_at(self._descriptor):
            if self._target is not None:
                self._target.close()
                self._target = None
            self._target = _Target(self._descriptor)
        return self._target

    def _raise_if_broken(self) -> None:
        if self._broken is not None:
            error, self._broken = self._broken, None
            raise error

    def _offer(self, target: _Target, data: memoryview) -> memoryview:
        """Write what is accepted at once, and return the rest."""
        with suppress(BlockingIOError):
            while data:
                data = data[target.write(data) :]
        return data

    def _keep(self, data: memoryview) -> None:
        """Let it wait, or drop it."""
        room = 0 if any(self._lost) else self._limit - self._size
        if room > 0:
            # The caller's buffer is used again as soon as we return.
            self._append(bytes(data[:room]))
            data = data[room:]
        if data:
            lines = bytes(data).count(b"\n") or 1
            self.dropped += lines
            self._lost = (self._lost[0] + lines, self._lost[1] + len(data))
        self._start_thread()

    def _start_thread(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._drain, name=f"outlet {self.name}", daemon=True)
            # RuntimeError: the system gives no thread, or Python ends; the next write tries again.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def _append(self, data: bytes) -> None:
        self._waiting.append(memoryview(data))
        self._size += len(data)
        self._whole = data.endswith(b"\n")

    def _confess(self) -> None:
        """Write how much was dropped."""
        lost, self._lost = self._lost, (0, 0)
        if self._tells:
            text = notice(*lost) if self._whole else f"\n{notice(*lost)}"
            self._append(f"{text}\n".encode("utf-8", "replace"))

    # ── in the thread ────────────────────────────────────────────────────────────────────────

    def _drain(self) -> None:
        """Write what waits, until nothing does."""
        while True:
            with self._lock:
                if not self._waiting and any(self._lost):
                    self._confess()
                if not self._waiting:
                    self._thread = None
                    return
                head = self._waiting[0][:_CHUNK]
                try:
                    target = self._aim()
                    rest = head if target.waits else self._offer(target, head)
                except OSError as error:
                    self._break(error)
                    continue
                self._advance(len(head) - len(rest))
            if rest:
                self._write_or_wait(target, rest)

    def _write_or_wait(self, target: _Target, rest: memoryview) -> None:
        """Wait without the lock, so that nobody else does."""
        try:
            if target.waits:
                sent = target.write(rest)
                with self._lock:
                    self._advance(sent)
            else:
                target.wait()
        except OSError as error:
            with self._lock:
                self._break(error)

    def _advance(self, sent: int) -> None:
        self._size -= sent
        rest = self._waiting[0][sent:]
        if rest:
            self._waiting[0] = rest
        else:
            self._waiting.popleft()

    def _break(self, error: OSError) -> None:
        """Remember for the next write that nobody can read what waits."""
        self._broken = error
        self._waiting.clear()
        self._size, self._lost = 0, (0, 0)


_outlets: list[Outlet] = []
_replaced: list[TextIO] = []
"""The streams that were there before: Python would close their descriptors with them."""


def install() -> None:
    """Make the standard streams of this process such streams; twice is once.

    Best done before a program is imported: logging remembers the stream that it finds.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        found = getattr(sys, name)
        if not isinstance(found, io.TextIOWrapper):
            continue
        stream = cast("io.TextIOWrapper[Any]", found)
        raw = getattr(stream.buffer, "raw", stream.buffer)
        if isinstance(raw, Outlet) or _number_of(stream) != number:
            continue
        with suppress(OSError):
            stream.flush()
        opened = opened_like(stream, Outlet(number, name=f"<{name}>"))
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)
        _replaced.append(stream)


def opened_like(stream: io.TextIOWrapper[Any], outlet: Outlet) -> io.TextIOWrapper[Any]:
    """Return a text stream over an outlet that encodes and buffers as another one does."""
    if not _outlets:
        atexit.register(flush)
        os.register_at_fork(after_in_child=_after_fork)
    _outlets.append(outlet)
    unbuffered = isinstance(stream.buffer, io.RawIOBase)
    return io.TextIOWrapper(
        cast("Any", outlet) if unbuffered else io.BufferedWriter(outlet),
        encoding=stream.encoding,
        errors=stream.errors,
        newline="\n",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def dropped() -> int:
    """Count the lines that this process has dropped so far."""
    return sum(outlet.dropped for outlet in _outlets)


def flush(seconds: float = FLUSH) -> None:
    """Write what waits, as far as that is possible within so many seconds."""
    for stream in (sys.stdout, sys.stderr):
        # A handler may have closed it, or its reader has gone.
        with suppress(Exception):
            stream.flush()
    end = runtime.monotonic() + seconds
    for outlet in _outlets:
        outlet.settle(end - runtime.monotonic())


def _number_of(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return -1


def _after_fork() -> None:
    for outlet in _outlets:
        outlet.after_fork()
