"""Runs handlers: coroutines on the loop, plain functions in threads.

A start is reported before the handler's first instruction, all starts of one turn together. The
slots are the only bound; what was claimed beyond them waits here and can be given back.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.context import Context
from lamplighter.middleware import Middleware, call_through
from lamplighter.model.outcome import (
    Abandoned,
    Cancelled,
    Failed,
    Outcome,
    Reject,
    Rejected,
    Released,
    Snooze,
    Snoozed,
    Succeeded,
    TimedOut,
)
from lamplighter.model.retry import LONGEST_DELAY
from lamplighter.observability import events
from lamplighter.registry import DoesNotFit, NotJson
from lamplighter.worker import failure
from lamplighter.worker.link import FromSupervisor, Link, Started
from lamplighter.worker.pulse import Pulse
from lamplighter.worker.run import Run, Stop
from lamplighter.worker.threads import Threads

SHORT_TIMEOUT = 2.0
"""Timeouts below this get a timer of their own; the pulse is exact enough for the others."""
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


class Executor:
    """The slots of a child, and the claims that wait for one."""

    def __init__(
        self,
        *,
        settings: Settings,
        slots: int,
        link: Link[FromSupervisor],
        pulse: Pulse,
        on_end: Callable[[Run, Outcome | None], None],
        on_room: Callable[[], None],
        provided: Mapping[object, object] | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        self.slots = slots
        self.running: dict[int, Run] = {}
        self.waiting: deque[Run] = deque()
        self.ended = 0
        """Handlers that have ended so far; the claimer prefetches by it."""
        self.tells = False
        """Whether starts are told as events."""
        self._hard_after = settings.hard_after
        self._link = link
        self._pulse = pulse
        self._on_end = on_end
        self._on_room = on_room
        self._provided = provided or {}
        self._middleware = tuple(middleware)
        self._inside: dict[int, _Inside] = {}
        """Runs in threads whose middleware waits for them on the loop."""
        self._loop = asyncio.get_running_loop()
        self._threads: Threads[tuple[Run, dict[str, Any]], Outcome | Doubt | None] = Threads(
            slots, self._call, self._thread_ended
        )
        self._fill_soon = False
        self._closed = False
        self._idle: asyncio.Future[None] | None = None

    # ── what is claimed comes in ─────────────────────────────────────────────────────────────

    def offer(self, runs: Iterable[Run]) -> None:
        """Take in claimed jobs and start what there is room for."""
        if self._closed:
            for run in runs:
                self._on_end(run, Released())
            return
        self.waiting.extend(runs)
        self.fill()

    def fill(self) -> None:
        """Start what there is room for: report all of it, then run it."""
        self._fill_soon = False
        room = min(self.slots - len(self.running), len(self.waiting))
        if room > 0 and not self._link.congested:
            batch = self._vouched(room)
            if batch:
                self._announce(batch)
        elif room > 0:
            runtime.spawn(self._fill_when_drained(), name="fill")
        self._on_room()

    def _vouched(self, room: int) -> list[Run]:
        """Take runs that no silence of the loop can have cost us; the others are asked about."""
        since = self._pulse.check()
        waiting = self.waiting
        batch: list[Run] = []
        while waiting and len(batch) < room:
            if waiting[0].vouched_at < since:
                self._pulse.ask([run.number for run in waiting])
                break
            batch.append(waiting.popleft())
        return batch

    def _announce(self, batch: list[Run]) -> None:
        now, hard_after, running = runtime.boottime(), self._hard_after, self.running
        starts: list[tuple[int, float]] = []
        for run in batch:
            run.started_at = now
            run.hard_end = now + run.timeout + hard_after
            running[run.number] = run
            starts.append((run.number, run.hard_end))
        self._link.say(Started(starts))
        if self._link.flush():
            self._start(batch)
        else:
            runtime.spawn(self._start_when_drained(batch), name="start")

    async def _fill_when_drained(self) -> None:
        await self._link.drained()
        self.fill()

    async def _start_when_drained(self, batch: list[Run]) -> None:
        await self._link.drained()
        self._start(batch)

    # ── run ──────────────────────────────────────────────────────────────────────────────────

    def _start(self, batch: list[Run]) -> None:
        refused: list[Run] = []
        for run in batch:
            if self.tells:
                _tell_start(run)
            arguments = self._arguments(run)
            if arguments is None:
                continue
            if run.timeout < SHORT_TIMEOUT:
                run.timer = self._loop.call_later(run.timeout, self._stop, run, Stop.TIMEOUT)
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
        """Give what the handler is called with; None: its run has ended before it began."""
        try:
            arguments = run.type.decode(run.claim.job.args)
            if run.type.needs:
                arguments.update(run.type.fill(self._provided))
        except NotJson as error:
            self._end(run, Rejected("arguments are not JSON", failure.plain(error)))
        except DoesNotFit as error:
            self._end(run, Failed(failure.plain(error)))
        except BaseException as error:  # noqa: BLE001 - models validate with foreign code
            self._end(run, Failed(failure.describe(error)))
        else:
            return arguments
        return None

    def _give_back(self, refused: list[Run]) -> None:
        for run in refused:
            self._end(run, None if run.stop is Stop.LOST else Released())

    async def _await(self, run: Run, arguments: dict[str, Any]) -> None:
        """Run a coroutine; every end of it is an outcome."""
        self._end(run, await self._run(run, arguments))

    async def _run(self, run: Run, arguments: dict[str, Any]) -> Outcome | Doubt | None:
        if run.stop is not None:
            return _stopped(run)
        if self._pulse.check() > run.vouched_at:
            return Doubt()
        run.entered = True
        function = cast("Callable[..., Awaitable[object]]", run.type.function)
        try:
            if run.type.wants_context:
                value = await function(Context.of(run.claim, run), **arguments)
            else:
                value = await function(**arguments)
            return _returned(run, value)
        except BaseException as error:  # noqa: BLE001 - no handler may end its process
            return _raised(run, error)

    def _call(self, task: tuple[Run, dict[str, Any]]) -> Outcome | Doubt | None:
        """Run a function in the present thread; every end of it is an outcome."""
        inside = self._inside.get(task[0].number) if self._inside else None
        return (
            self._call_here(task) if inside is None else inside.context.run(self._call_here, task)
        )

    def _call_here(self, task: tuple[Run, dict[str, Any]]) -> Outcome | Doubt | None:
        run, arguments = task
        if run.stop is not None:
            return _stopped(run)
        if self._pulse.check() > run.vouched_at:
            return Doubt()
        run.entered = True
        try:
            if run.type.wants_context:
                value = run.type.function(Context.of(run.claim, run), **arguments)
            else:
                value = run.type.function(**arguments)
            return _returned(run, value)
        except BaseException as error:  # noqa: BLE001 - no handler may end its process
            return _raised(run, error)

    def _thread_ended(
        self, task: tuple[Run, dict[str, Any]], outcome: Outcome | Doubt | None
    ) -> None:
        inside = self._inside.pop(task[0].number, None)
        if inside is None:
            self._end(task[0], outcome)
        else:
            inside.ended.set_result(outcome)

    # ── run with middleware around ───────────────────────────────────────────────────────────

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
            outcome = _stopped(run)
        elif self._pulse.check() > run.vouched_at:
            outcome = Doubt()
        else:
            run.entered = True
            outcome = await call_through(
                self._middleware,
                run.claim,
                handler,
                lambda error: _raised(run, error) or Abandoned(),
            )
            if _is_lost(run):
                outcome = None
            elif doubts:
                # The handler never began, whatever the middleware made of that.
                outcome = doubts[0]
        self._end(run, outcome)

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

    def _end(self, run: Run, outcome: Outcome | Doubt | None) -> None:
        if run.timer is not None:
            run.timer.cancel()
        run.task = run.timer = None
        self.running.pop(run.number, None)
        if not isinstance(outcome, Doubt):
            self.ended += 1
            self._on_end(run, outcome)
        elif self._closed:
            self._on_end(run, Released())
        else:
            # Back to the others that wait, to be asked about.
            self.waiting.appendleft(run)
        if not self._fill_soon:
            self._fill_soon = True
            self._loop.call_soon(self.fill)
        if self._idle is not None and not self.running and not self._idle.done():
            self._idle.set_result(None)

    # ── stop ─────────────────────────────────────────────────────────────────────────────────

    def stop(self, numbers: Iterable[int], why: Stop) -> None:
        """Stop these: what waits is dropped at once, what runs is told."""
        wanted = set(numbers)
        for run in [run for run in self.waiting if run.number in wanted]:
            self.waiting.remove(run)
            run.stop = why
            self._on_end(run, _stopped(run))
        for number in wanted:
            run = self.running.get(number)
            if run is not None:
                self._stop(run, why)

    def confirm(self, asked: Iterable[int], yours: Iterable[int], asked_at: float) -> None:
        """Take the supervisor's word on which waiting claims are still ours."""
        confirmed = set(yours)
        for run in self.waiting:
            if run.number in confirmed:
                run.vouched_at = asked_at
        self.stop(set(asked) - confirmed, Stop.LOST)
        self.fill()

    def stop_overdue(self) -> None:
        """Stop handlers past their timeout. Called by the pulse."""
        now, hard_after = runtime.boottime(), self._hard_after
        overdue = [run for run in self.running.values() if run.hard_end - hard_after <= now]
        for run in overdue:
            self._stop(run, Stop.TIMEOUT)

    def unvouched(self, *, kept_since: float, believed: float, now: float) -> list[int]:
        """Numbers of the claims whose lease nobody can have kept for too long."""
        return [
            run.number
            for run in (*self.running.values(), *self.waiting)
            if max(run.vouched_at, kept_since) + believed <= now
        ]

    def close(self) -> None:
        """Start nothing any more; give back what waits."""
        self._closed = True
        waiting, self.waiting = self.waiting, deque()
        for run in waiting:
            self._on_end(run, Released())

    def stop_all(self) -> None:
        """Stop every handler because the worker ends."""
        for run in list(self.running.values()):
            self._stop(run, Stop.DRAIN)

    async def idle(self) -> None:
        """Wait until no handler runs."""
        while self.running:
            self._idle = self._loop.create_future()
            await self._idle

    def _stop(self, run: Run, why: Stop) -> None:
        if run.number not in self.running or run.stop in {why, Stop.LOST}:
            return
        # A first reason stands, but for the one that forbids to write.
        told, run.stop = run.stop is not None, run.stop or why
        if why is Stop.LOST:
            run.stop = why
        if run.task is not None and run.entered and not told:
            run.task.cancel()


def _is_lost(run: Run) -> bool:
    return run.stop is Stop.LOST


def _returned(run: Run, value: object) -> Outcome | None:
    """The handler came to its end, so its effect happened, even if it had been told to stop."""
    if run.stop is Stop.LOST:
        return None
    result, note = run.type.encode_result(value)
    return Succeeded(result, note)


def _raised(run: Run, error: BaseException) -> Outcome | None:
    if run.stop is Stop.LOST:
        return None
    try:
        return _classified(run, error)
    except BaseException:  # noqa: BLE001 - what a handler raises may be of any make
        return Failed(failure.describe(error))


def _classified(run: Run, error: BaseException) -> Outcome | None:
    if isinstance(error, Reject):
        return Rejected(failure.text_of(error.reason, "reason"))
    if isinstance(error, Snooze) and _is_delay(error.delay):
        return Snoozed(float(error.delay))
    if run.stop is not None:
        return _stopped(run)
    return Failed(failure.describe(error))


def _is_delay(delay: object) -> bool:
    """Users may raise Snooze with anything; what is no delay makes the attempt a failure."""
    return isinstance(delay, (int, float)) and 0 <= delay <= LONGEST_DELAY


def _stopped(run: Run) -> Outcome | None:
    match run.stop:
        case Stop.LOST | None:
            return None
        case Stop.CANCEL:
            return Cancelled()
        case Stop.TIMEOUT:
            return TimedOut(failure.timed_out(run.timeout))
        case Stop.DRAIN:
            return Released(started=run.entered)


def _tell_refused(count: int) -> None:
    events.emit(
        events.SERVICE_ERROR,
        service="threads",
        error=f"no thread can be started; {count} jobs are given back",
        expected=False,
    )


def _tell_start(run: Run) -> None:
    job = run.claim.job
    events.emit(
        events.JOB_STARTED,
        job_id=job.id,
        type=job.type,
        tenant=job.tenant,
        queue=job.queue,
        attempt=job.attempt + 1,
    )
