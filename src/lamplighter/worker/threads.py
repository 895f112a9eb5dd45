"""Threads for handlers that are plain functions."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Threads(Generic[Task, Result]):
    """Runs calls in threads, and hands their results to the loop, many per wake-up.

    Threads are made when needed, at most ``limit``, and are daemons: a handler that never
    returns must not keep its process from ending.
    """

    def __init__(
        self,
        limit: int,
        call: Callable[[Task], Result],
        on_result: Callable[[Task, Result], None],
    ) -> None:
        self._limit = limit
        self._call = call
        self._on_result = on_result
        self._loop = asyncio.get_running_loop()
        self._tasks: SimpleQueue[Task] = SimpleQueue()
        self._results: deque[tuple[Task, Result]] = deque()
        self._collecting = False
        self._count = 0
        self._busy = 0

    def submit(self, task: Task) -> bool:
        """Run a task in a thread; ``call`` must not raise.

        When the system gives no further thread, the task waits for one there is; False: there is
        none, and the task is not taken.
        """
        if self._busy >= self._count and self._count < self._limit:
            self._grow()
        if not self._count:
            return False
        self._busy += 1
        self._tasks.put(task)
        return True

    def _grow(self) -> None:
        name = f"job-{self._count + 1}"
        # Out of threads or of memory: RuntimeError says "can't start new thread".
        with contextlib.suppress(RuntimeError, MemoryError):
            threading.Thread(target=self._work, name=name, daemon=True).start()
            self._count += 1

    def _work(self) -> None:
        while True:
            task = self._tasks.get()
            result = self._call(task)
            self._results.append((task, result))
            if not self._collecting:
                self._collecting = True
                # The loop is closed when the process is about to end: nobody waits any more.
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        # First the flag: a result that comes after it was cleared calls for another collection.
        self._collecting = False
        while self._results:
            task, result = self._results.popleft()
            self._busy -= 1
            self._on_result(task, result)
