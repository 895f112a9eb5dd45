"""Deadlines of requests: one timer for all, because all of them have the same time."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any

from lamplighter import runtime


class Deadlines:
    """Ends what takes longer than a number of seconds.

    ``asyncio.timeout`` does the same and sets a timer each time, which at thousands of requests per
    second is a good part of what a request costs. Here whoever began first is due first.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.running: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self) -> Deadline:
        """Return the deadline of one block, ``with deadlines(): …``, which raises TimeoutError."""
        return Deadline(self)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """See to it that somebody looks when the first is due."""
        if self._timer is None:
            self._timer = loop.call_later(self.seconds, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel who is late, and come again when the next is due."""
        self._timer = None
        now = runtime.monotonic()
        for each in tuple(self.running):
            if each.end > now:
                self._timer = loop.call_later(each.end - now, self._look, loop)
                return
            each.expire()


class Deadline:
    """One block of one task that has its time."""

    __slots__ = ("_cancelling", "_deadlines", "_expired", "_task", "end")

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline needs a task")
        loop = task.get_loop()
        self._task: asyncio.Task[Any] = task
        self._cancelling = task.cancelling()
        self.end = runtime.monotonic() + self._deadlines.seconds
        self._deadlines.running[self] = None
        self._deadlines.watch(loop)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._deadlines.running.pop(self, None)
        # Somebody else may have cancelled the task too: then it has to end.
        if (
            self._expired
            and self._task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError from error

    def expire(self) -> None:
        """End the block."""
        self._expired = True
        self._deadlines.running.pop(self, None)
        self._task.cancel()
