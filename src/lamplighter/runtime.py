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
    from collections.abc import Callable, Coroutine, Generator, Iterator

log = logging.getLogger("lamplighter.runtime")

_DRAW_BITS = 72
"""Random bits of a draw: no id needs more."""
_DRAWS = 256
"""Draws that are made at once."""


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


def _draw() -> list[int]:
    size = _DRAW_BITS // 8
    drawn = os.urandom(_DRAWS * size)
    return [int.from_bytes(drawn[at : at + size], "little") for at in range(0, len(drawn), size)]


class System:
    """The real world."""

    def __init__(self) -> None:
        self._chance = _random.Random()
        self._draws: Iterator[int] = iter(())
        # A forked child must not repeat what its parent draws.
        os.register_at_fork(after_in_child=self._forget_draws)

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
        if bits > _DRAW_BITS:
            return int.from_bytes(os.urandom((bits + 7) // 8), "little") >> -bits % 8
        # One system call serves many ids. An iterator gives each number to one thread only; a
        # number and its place, read and written apart, would be given to two.
        drawn = next(self._draws, None)
        while drawn is None:
            self._draws = iter(_draw())
            drawn = next(self._draws, None)
        return drawn >> (_DRAW_BITS - bits)

    def _forget_draws(self) -> None:
        self._draws = iter(())

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
    """Return a number in [0, 1)."""
    return _current.random()


def random_bits(bits: int) -> int:
    """Return unguessable bits."""
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
