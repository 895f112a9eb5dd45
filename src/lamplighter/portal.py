"""The way from plain code into an event loop: a private loop in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from lamplighter.model.errors import StoreClosed, SyncInsideLoop

T = TypeVar("T")
log = logging.getLogger("lamplighter.portal")

Work = Callable[[], Coroutine[Any, Any, T]]


class Portal:
    """Runs coroutines for callers that have no event loop. Its thread starts at the first call."""

    def __init__(self, last: Work[None]) -> None:
        self._last = last
        """What runs in the loop before it ends."""
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        _every.add(self)

    def run(self, work: Work[T], *, instead: str) -> T:
        """Run ``work()`` to its end; ``instead`` names the awaitable twin of the caller."""
        refuse_inside_loop(instead)
        with self._starting:
            future = asyncio.run_coroutine_threadsafe(work(), self._running_loop())
        try:
            return future.result()
        except CancelledError:
            raise StoreClosed(
                "the app was closed by another thread while this call was waiting",
                hint=f"close the app when nobody uses it any more, or use `await {instead}`",
            ) from None
        except BaseException:
            # Ctrl-C while waiting: the work must not go on behind the caller's back.
            future.cancel()
            raise

    def close(self) -> None:
        """End the thread. The next call starts another."""
        with self._starting:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def forget(self) -> None:
        """Start anew in a forked child, where the thread of the parent does not exist."""
        _inherited.append(self._loop)
        self._starting = threading.Lock()
        self._loop = self._thread = None

    @property
    def started(self) -> bool:
        """Tell whether the thread runs."""
        return self._loop is not None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(
                target=_run, args=(loop, self._last), name="lamplighter-portal", daemon=True
            )
            thread.start()
            self._loop, self._thread = loop, thread
        return self._loop


def _run(loop: asyncio.AbstractEventLoop, last: Work[None]) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        # Calls that other threads still wait for must end too, or those threads would hang.
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(last())
        loop.run_until_complete(loop.shutdown_asyncgens())
    except Exception as error:
        # While the interpreter ends, threads can no longer be started, and so not be waited for.
        if not (_exiting.is_set() and isinstance(error, RuntimeError)):
            log.exception("the store was not closed properly")
    finally:
        loop.close()


def refuse_inside_loop(instead: str) -> None:
    """Raise if this thread runs an event loop, which a waiting call would stop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise SyncInsideLoop(
        "a call that waits was made inside a running event loop, which it would stop",
        hint=f"use `await {instead}` here",
        value=instead,
    )


_every: weakref.WeakSet[Portal] = weakref.WeakSet()
_inherited: list[object] = []
"""Kept for ever: finalising the parent's loop would close descriptors the child may reuse."""


def _forget_all() -> None:
    for portal in tuple(_every):
        portal.forget()


_exiting = threading.Event()


def _close_all() -> None:
    _exiting.set()
    for portal in tuple(_every):
        portal.close()


os.register_at_fork(after_in_child=_forget_all)
atexit.register(_close_all)
