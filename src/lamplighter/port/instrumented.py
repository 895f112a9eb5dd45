"""Tells of every call of a verb from outside, so that engines hold no telemetry.

When nobody listens or counts, a call costs two looks.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from lamplighter import runtime
from lamplighter.observability import calls, events
from lamplighter.port.access import Access
from lamplighter.port.activity import Activity
from lamplighter.port.schedules import ScheduleStore
from lamplighter.port.store import DEFAULT_LEASE_MS, Inspector, JobStore, Membership, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from lamplighter.port.capabilities import Capabilities
    from lamplighter.port.checkup import Checkup
    from lamplighter.port.store import Engine, Wakeup

P = ParamSpec("P")
R = TypeVar("R")
Part = TypeVar("Part")


def _verbs() -> tuple[str, ...]:
    parts = (JobStore, ScheduleStore, Membership, Settings, Access, Activity, Inspector)
    return tuple(sorted({name for part in parts for name in vars(part) if name[0] != "_"}))


VERBS = _verbs()
"""The names of all calls that are told."""


class Instrumented:
    """An engine whose verbs tell what they took and what went wrong."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._bind()

    @property
    def capabilities(self) -> Capabilities:
        return self._engine.capabilities

    @property
    def jobs(self) -> JobStore:
        return self._jobs

    @property
    def schedules(self) -> ScheduleStore:
        return self._schedules

    @property
    def membership(self) -> Membership:
        return self._membership

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def access(self) -> Access:
        return self._access

    @property
    def wakeup(self) -> Wakeup:
        return self._engine.wakeup

    @property
    def activity(self) -> Activity:
        return self._activity

    @property
    def inspector(self) -> Inspector:
        return self._inspector

    async def open(self, *, create: bool = True) -> None:
        await self._engine.open(create=create)
        self._bind()

    async def close(self) -> None:
        await self._engine.close()

    async def migrate(
        self, *, run: Sequence[str] = (), read: Sequence[str] = ()
    ) -> tuple[int, int]:
        return await self._engine.migrate(run=run, read=read)

    async def grant(self, *, run: Sequence[str] = (), read: Sequence[str] = ()) -> None:
        await self._engine.grant(run=run, read=read)

    async def check_up(self, *, lease_ms: int = DEFAULT_LEASE_MS) -> Checkup:
        return await self._engine.check_up(lease_ms=lease_ms)

    def _bind(self) -> None:
        engine = self._engine
        self._jobs: JobStore = told(engine.jobs)
        self._schedules: ScheduleStore = told(engine.schedules)
        self._membership: Membership = told(engine.membership)
        self._settings: Settings = told(engine.settings)
        self._activity: Activity = told(engine.activity)
        self._access: Access = told(engine.access)
        self._inspector: Inspector = told(engine.inspector)


class _Told:
    """Holds the wrapped verbs of one part as plain attributes."""


def told(part: Part) -> Part:
    """Give the same part with each verb wrapped."""
    wrapped = _Told()
    names = [name for name in dir(type(part)) if not name.startswith("_")]
    if not names:
        return part  # an engine that is not open yet: its parts only refuse
    for name in names:
        setattr(wrapped, name, _telling(name, getattr(part, name)))
    return cast("Part", wrapped)


def _telling(
    verb: str, call: Callable[P, Coroutine[Any, Any, R]]
) -> Callable[P, Coroutine[Any, Any, R]]:
    @wraps(call)
    async def tell(*args: P.args, **kwargs: P.kwargs) -> R:
        watching = calls.watching()
        if watching is None and not events.listened():
            return await call(*args, **kwargs)
        began = runtime.monotonic()
        try:
            answer = await call(*args, **kwargs)
        except Exception as error:
            seconds = runtime.monotonic() - began
            if watching is not None:
                watching.failed(verb)
            events.emit(events.STORE_ERROR, verb=verb, seconds=seconds, error=error)
            raise
        seconds = runtime.monotonic() - began
        if watching is not None:
            watching.answered(verb, seconds)
        events.emit(events.STORE_CALL, verb=verb, seconds=seconds)
        return answer

    return tell
