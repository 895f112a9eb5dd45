"""Awaits a handler's coroutine so that the end of its time is told apart from a cancellation."""

from __future__ import annotations

import types
from asyncio import CancelledError
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from lamplighter.context import TimedOut
from lamplighter.worker.run import Run

R = TypeVar("R")


@types.coroutine
def driven(run: Run, handler: Coroutine[Any, Any, R]) -> Generator[Any, Any, R]:
    """Await ``handler``; when its time is over it sees TimedOut where it waits.

    A task can only be cancelled, and a cancelled handler does not know why. So what its task
    throws in passes through here, and the first cancellation after a timeout is renamed.
    """
    told = False
    try:
        waited = handler.send(None)
        while True:
            try:
                value = yield waited
            except CancelledError as error:
                if run.timed_out and not told:
                    told = True
                    waited = handler.throw(TimedOut(run.claim.job.id))
                else:
                    waited = handler.throw(error)
            except GeneratorExit:
                handler.close()
                raise
            except BaseException as error:  # noqa: BLE001 - it is the handler's to judge
                waited = handler.throw(error)
            else:
                waited = handler.send(value)
    except StopIteration as end:
        return end.value
