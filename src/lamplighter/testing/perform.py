"""Runs one claim in the process of the test, with the worker's own executor."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from lamplighter.config import Settings
from lamplighter.middleware import Middleware
from lamplighter.model.job import Claim
from lamplighter.model.journal import Journal
from lamplighter.model.outcome import Outcome
from lamplighter.registry import JobType, Registry
from lamplighter.worker.executor import Executor
from lamplighter.worker.link import FromSupervisor, Link, Message
from lamplighter.worker.pulse import Pulse
from lamplighter.worker.run import Run, Stop

LOOK = 0.05
"""Seconds between two looks whether a handler that takes its time should stop."""

Look = Callable[[], Awaitable[Stop | None]]


@dataclass(frozen=True, slots=True)
class Performed:
    """What came of a handler."""

    outcome: Outcome | None
    """None: the claim was lost meanwhile."""
    exception: BaseException | None
    """What the handler raised, itself."""
    journal: Journal | None
    """What it has said of itself: its progress."""


@dataclass(frozen=True, slots=True)
class _Around:
    provided: Mapping[object, object]
    middleware: Sequence[Middleware]


async def perform(
    claim: Claim, registry: Registry, settings: Settings, look: Look | None = None
) -> Performed:
    """Run the handler of a claim to its end; ``look`` says whether it should stop.

    What the handler needs is made before and closed afterwards, so that tests share nothing.
    """
    job_type = registry.get(claim.job.type)
    registry.providers.check(job_type.name, job_type.needs)
    async with registry.providers.opened(job_type.needs.values()) as provided:
        return await _perform(
            claim, job_type, settings, _Around(provided, registry.middleware), look
        )


async def _perform(
    claim: Claim,
    job_type: JobType,
    settings: Settings,
    around: _Around,
    look: Look | None,
) -> Performed:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Outcome | None] = loop.create_future()
    raised: list[BaseException] = []
    link = _NoSupervisor()
    executor = Executor(
        settings=settings,
        slots=1,
        link=link,
        pulse=_Steady(link),
        on_end=lambda _, outcome: None if ended.done() else ended.set_result(outcome),
        on_room=lambda: None,
        provided=around.provided,
        middleware=around.middleware,
    )
    timeout = claim.job.extras.timeout or job_type.timeout or settings.timeout
    run = Run(0, claim, _watched(job_type, raised), timeout, 0.0)
    executor.offer([run])
    try:
        while not ended.done():
            await asyncio.wait({ended}, timeout=LOOK)
            if not ended.done():
                executor.tick()
                why = None if look is None else await look()
                if why is not None:
                    executor.stop([run.number], why)
    finally:
        executor.close()
        executor.stop_all()
    journal = None if run.notes is None else run.notes.take(last=True)
    return Performed(ended.result(), raised[0] if raised else None, journal)


def _watched(job_type: JobType, raised: list[BaseException]) -> JobType:
    """Return the type with a handler that runs on the loop and remembers what it raised."""
    function, is_async = job_type.function, job_type.is_async

    async def handler(*args: Any, **kwargs: Any) -> object:
        try:
            if is_async:
                return await cast("Awaitable[object]", function(*args, **kwargs))
            return await _in_thread(function, args, kwargs)
        except BaseException as error:
            raised.append(error)
            raise

    watched = copy.copy(job_type)
    watched.function, watched.is_async = handler, True
    return watched


async def _in_thread(
    function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> object:
    """Run a plain function where it may wait; the loop's own threads end with the loop."""

    def call() -> tuple[object, BaseException | None]:
        try:
            return function(*args, **kwargs), None
        except BaseException as error:  # noqa: BLE001 - raised again below, without foreign frames
            return None, error

    thread = asyncio.ensure_future(asyncio.to_thread(call))
    while not thread.done():
        try:
            await asyncio.shield(thread)
        except asyncio.CancelledError:
            # As in a worker: a thread cannot be stopped, only asked by `ctx.cancel_requested`.
            continue
    value, error = thread.result()
    if error is not None:
        raise error
    return value


class _NoSupervisor(Link[FromSupervisor]):
    """The line of a child that has no supervisor: what is said is heard by nobody."""

    def __init__(self) -> None:
        pass

    @property
    def congested(self) -> bool:
        return False

    def say(self, message: Message) -> None:
        pass

    def flush(self) -> bool:
        return True

    async def drained(self) -> None:
        pass


class _Steady(Pulse):
    """The pulse of a child that nobody suspects: a test may stop in a debugger."""

    def check(self) -> float:
        return 0.0
