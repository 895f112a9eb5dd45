"""The seam to time, chance and tasks. Nothing else in the package touches them directly.

Simulation and tests replace the whole of it with ``install``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random as _random
import socket
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

log = logging.getLogger("lamplighter.runtime")


class Runtime(Protocol):
    """What a program needs from the world beside its data."""

    def now_ms(self) -> int:
        """Wall clock in milliseconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, not counting suspended time."""
        ...

    def boottime(self) -> float:
        """Seconds that only grow and count suspended time too, where such a clock is."""
        ...

    def random(self) -> float:
        """A number in [0, 1)."""
        ...

    def random_bits(self, bits: int) -> int:
        """That many random bits from the system's generator."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class System:
    """The real world."""

    def __init__(self) -> None:
        self._chance = _random.Random()
        self._pool = 0
        self._pool_bits = 0
        self._pool_pid = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def boottime(self) -> float:
        if sys.platform == "linux":
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()

    def random(self) -> float:
        return self._chance.random()

    def random_bits(self, bits: int) -> int:
        # One system call serves many ids; a forked child must not repeat its parent's pool.
        if self._pool_bits < bits or self._pool_pid != os.getpid():
            self._pool = int.from_bytes(os.urandom(512), "little")
            self._pool_bits = 4096
            self._pool_pid = os.getpid()
        value = self._pool & ((1 << bits) - 1)
        self._pool >>= bits
        self._pool_bits -= bits
        return value

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_current: Runtime = System()


@contextlib.contextmanager
def install(runtime: Runtime) -> Generator[None]:
    """Use another runtime for the time of a ``with`` block."""
    global _current  # noqa: PLW0603 - this is the seam
    previous, _current = _current, runtime
    try:
        yield
    finally:
        _current = previous


def now_ms() -> int:
    """Wall clock in milliseconds since 1970."""
    return _current.now_ms()


def monotonic() -> float:
    """Seconds that only grow."""
    return _current.monotonic()


def boottime() -> float:
    """Seconds that only grow, suspended time included."""
    return _current.boottime()


def random() -> float:
    """Give a number in [0, 1)."""
    return _current.random()


def random_bits(bits: int) -> int:
    """Give unguessable bits."""
    return _current.random_bits(bits)


def nonce() -> str:
    """64 unguessable bits as 16 hex digits: a claim's request id and half of its fence."""
    return f"{_current.random_bits(64):016x}"


async def sleep(seconds: float) -> None:
    """Wait."""
    await _current.sleep(seconds)


def boot_id() -> str:
    """Tell this boot of the machine from others, as far as the system can say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip()[:8]
    except OSError:
        return "noboot"


def incarnation() -> str:
    """Make a worker id that no other process ever had: host, boot, pid and chance."""
    host = socket.gethostname()[:24] or "host"
    return f"{host}-{boot_id()}-{os.getpid()}-{_current.random_bits(32):08x}"


_tasks: set[asyncio.Task[Any]] = set()


def spawn(
    work: Coroutine[Any, Any, Any],
    *,
    name: str,
    on_crash: Callable[[BaseException], None] | None = None,
) -> asyncio.Task[Any]:
    """Start a task that cannot be garbage-collected and cannot die unseen.

    asyncio keeps only weak references to tasks, and an exception in one nobody awaits is silent.
    """
    task = asyncio.get_running_loop().create_task(work, name=name)
    _tasks.add(task)

    def done(finished: asyncio.Task[Any]) -> None:
        _tasks.discard(finished)
        if finished.cancelled():
            return
        error = finished.exception()
        if error is None:
            return
        if on_crash is not None:
            on_crash(error)
        else:
            log.error("task %s died", name, exc_info=error)

    task.add_done_callback(done)
    return task
