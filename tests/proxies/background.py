"""An event loop in a thread of its own, told what to do from other threads."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 20.0


class Background:
    """Runs while it is started; what is asked of it has happened when the call returns."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; the thread never keeps a process alive."""
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=loop.run_forever, name=self._name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for its end."""
        if self._loop is None:
            coroutine.close()
            raise RuntimeError(f"the proxy {self._name} is not running: call start() first")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function there and wait for what it gives."""

        async def wrapped() -> T:
            return function()

        return self.run(wrapped())

    def stop(self) -> None:
        """End everything that runs there. Without a start, do nothing."""
        if self._loop is None or self._thread is None:
            return
        self.run(_end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()
        self._loop = self._thread = None


async def _end_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()
    # Closed connections are let go of in the next round of the loop.
    await asyncio.sleep(0)
