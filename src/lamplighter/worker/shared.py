"""Runs handlers beside each other in one process: coroutines on the loop, functions in threads."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from lamplighter import runtime
from lamplighter.context import Context
from lamplighter.middleware import Middleware, call_through
from lamplighter.model.counts import counted
from lamplighter.model.outcome import Abandoned, Outcome, Released
from lamplighter.observability import events
from lamplighter.worker import capture, outcomes
from lamplighter.worker.driving import driven
from lamplighter.worker.pulse import Pulse
from lamplighter.worker.run import Run, Stop
from lamplighter.worker.threads import Threads

NO_THREAD_PAUSE = 0.5
"""Jobs for which there is no thread keep their slots for so long before they are given back."""


class Doubt:
    """No outcome: between the claim and the handler's first step the process stood still."""


@dataclass(frozen=True, slots=True)
class _Inside:
    """A run in a thread, as the middleware around it sees it."""

    ended: asyncio.Future[Outcome | Doubt | None]
    context: contextvars.Context
    """What the middleware has set, for the handler to see."""


class Shared:
    """Where handlers run that need no process of their own."""

    def __init__(
        self,
        *,
        threads: int,
        pulse: Pulse,
        on_end: Callable[[Run, Outcome | Doubt | None], None],
        provided: Mapping[object, object],
        middleware: Sequence[Middleware],
    ) -> None:
        self._pulse = pulse
        self._on_end = on_end
        self._provided = provided
        self._middleware = tuple(middleware)
        self._inside: dict[int, _Inside] = {}
        """Runs in threads whose middleware waits for them on the loop."""
        self._loop = asyncio.get_running_loop()
        self._threads: Threads[tuple[Run, dict[str, Any]], Outcome | Doubt | None] = Threads(
            threads, self._call, self._thread_ended
        )

    def start(self, batch: Sequence[Run]) -> None:
        """Run these handlers."""
        refused: list[Run] = []
        for run in batch:
            arguments = self._arguments(run)
            if arguments is None:
                continue
            if self._middleware:
                run.task = self._loop.create_task(self._await_around(run, arguments))
            elif run.type.is_async:
                run.task = self._loop.create_task(self._await(run, arguments))
            elif not self._threads.submit((run, arguments)):
                refused.append(run)
        if refused:
            _tell_refused(len(refused))
            # Not at once: they would come back at once.
            self._loop.call_later(NO_THREAD_PAUSE, self._give_back, refused)

    def _arguments(self, run: Run) -> dict[str, Any] | None:
        """Return what the handler is called with; None: its run has ended before it began."""
        try:
            arguments = run.type.decode(run.claim.job.args)
            if run.type.needs:
                arguments.update(run.type.fill(self._provided))
        except BaseException as error:  # noqa: BLE001 - models validate with foreign code
            self._on_end(run, outcomes.unreadable(run, error))
        else:
            return arguments
        return None

    def _give_back(self, refused: list[Run]) -> None:
        for run in refused:
            self._on_end(run, None if run.stop is Stop.LOST else Released())

    async def _await(self, run: Run, arguments: dict[str, Any]) -> None:
        """Run a coroutine; every end of it is an outcome."""
        self._on_end(run, await self._run(run, arguments))

    async def _run(self, run: Run, arguments: dict[str, Any]) -> Outcome | Doubt | None:
        if run.stop is not None:
            return outcomes.stopped(run)
        if self._pulse.check() > run.vouched_at:
            return Doubt()
        run.entered = True
        before = capture.current.set(run)
        function = cast("Callable[..., Coroutine[Any, Any, object]]", run.type.function)
        try:
            if run.type.wants_context:
                handler = function(Context.of(run.claim, run, run), **arguments)
            else:
                handler = function(**arguments)
            return outcomes.returned(run, await driven(run, handler))
        except BaseException as error:  # noqa: BLE001 - no handler may end its process
            return outcomes.raised(run, error)
        finally:
            capture.current.reset(before)

    def _call(self, task: tuple[Run, dict[str, Any]]) -> Outcome | Doubt | None:
        """Run a function in the present thread; every end of it is an outcome."""
        inside = self._inside.get(task[0].number) if self._inside else None
        return (
            self._call_here(task) if inside is None else inside.context.run(self._call_here, task)
        )

    def _call_here(self, task: tuple[Run, dict[str, Any]]) -> Outcome | Doubt | None:
        run, arguments = task
        if run.stop is not None:
            return outcomes.stopped(run)
        if self._pulse.check() > run.vouched_at:
            return Doubt()
        run.entered = True
        before = capture.current.set(run)
        try:
            if run.type.wants_context:
                value = run.type.function(Context.of(run.claim, run, run), **arguments)
            else:
                value = run.type.function(**arguments)
            return outcomes.returned(run, value)
        except BaseException as error:  # noqa: BLE001 - no handler may end its process
            return outcomes.raised(run, error)
        finally:
            capture.current.reset(before)

    def _thread_ended(
        self, task: tuple[Run, dict[str, Any]], outcome: Outcome | Doubt | None
    ) -> None:
        inside = self._inside.pop(task[0].number, None)
        if inside is None:
            self._on_end(task[0], outcome)
        else:
            inside.ended.set_result(outcome)

    # ── with middleware around ───────────────────────────────────────────────────────────────

    async def _await_around(self, run: Run, arguments: dict[str, Any]) -> None:
        """Run a handler of either kind inside of the middleware."""
        doubts: list[Doubt] = []

        async def handler() -> Outcome:
            run_it = self._run if run.type.is_async else self._run_in_thread
            outcome = await run_it(run, arguments)
            if isinstance(outcome, Doubt):
                doubts.append(outcome)
                return Released()
            return outcome or Abandoned()

        outcome: Outcome | Doubt | None
        if run.stop is not None:
            outcome = outcomes.stopped(run)
        elif self._pulse.check() > run.vouched_at:
            outcome = Doubt()
        else:
            run.entered = True
            with capture.speaking(run):
                outcome = await call_through(
                    self._middleware,
                    run.claim,
                    handler,
                    lambda error: outcomes.raised(run, error) or Abandoned(),
                )
            if _is_lost(run):
                outcome = None
            elif doubts:
                # The handler never began, whatever the middleware made of that.
                outcome = doubts[0]
        self._on_end(run, outcome)

    async def _run_in_thread(self, run: Run, arguments: dict[str, Any]) -> Outcome | Doubt | None:
        if run.number in self._inside:
            raise RuntimeError("call_next() was called again before it had ended")
        inside = _Inside(self._loop.create_future(), contextvars.copy_context())
        self._inside[run.number] = inside
        if not self._threads.submit((run, arguments)):
            del self._inside[run.number]
            _tell_refused(1)
            await runtime.sleep(NO_THREAD_PAUSE)
            return Released()
        while not inside.ended.done():
            # A thread cannot be stopped, only asked; until it has ended, so has nothing else.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(inside.ended)
        return inside.ended.result()


def _is_lost(run: Run) -> bool:
    return run.stop is Stop.LOST


def _tell_refused(count: int) -> None:
    events.emit(
        events.SERVICE_ERROR,
        service="threads",
        error=f"no thread can be started; {counted(count, 'job is', 'jobs are')} given back",
        expected=False,
    )
