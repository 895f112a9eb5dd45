"""``app.tenants``, ``app.queues``, ``app.types``, ``app.workers``: what operators see and set."""

from __future__ import annotations

from builtins import list as List  # noqa: N812 - `list` is a method here
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from lamplighter.client import Client, wake_workers
from lamplighter.inspection.views import QueueView, TenantView, TypeView, WorkerView
from lamplighter.model.errors import InvalidOption
from lamplighter.model.lifecycle import milliseconds
from lamplighter.model.names import check_name
from lamplighter.model.stride import check_weight
from lamplighter.options import positive_seconds
from lamplighter.port.access import About, entries_of
from lamplighter.port.store import Engine
from lamplighter.port.values import QueueSettings, TenantInfo, TenantSettings, TypeSettings
from lamplighter.portal import Work

T = TypeVar("T")

_BY = "app"


class _Settings:
    """What the four have in common: how a change is written, and the way from plain code."""

    _name: str

    def __init__(self, client: Client) -> None:
        self._client = client

    async def _put(
        self,
        put: Callable[[Engine], Awaitable[None]],
        about: About,
        *,
        by: str,
        reason: str,
    ) -> None:
        """Write a change, note it in the audit log and wake the workers that it concerns."""
        engine = await self._client.engine()
        await self._client.repeatable(lambda: put(engine))
        entries = entries_of([about], by=by, action=f"{self._name}.put", reason=reason)
        await self._client.repeatable(lambda: engine.access.note_audit(entries))
        await wake_workers(engine)

    def _run(self, work: Work[T], call: str) -> T:
        return self._client.portal.run(work, instead=f"app.{self._name}.{call}")


class Tenants(_Settings):
    """``app.tenants``: who shares the workers, and in which proportion."""

    _name = "tenants"

    async def list(self) -> List[TenantView]:
        """Return tenants that have settings, waiting or running jobs, by name; at most 1,000."""
        engine = await self._client.engine()
        found = await self._client.repeatable(engine.inspector.tenants)
        return [TenantView.of(one) for one in found]

    async def get(self, name: str) -> TenantView:
        """Return one tenant; one that has nothing in the store has the default weight."""
        check_name("tenant", name)
        engine = await self._client.engine()
        found = await self._client.repeatable(lambda: engine.inspector.tenant(name))
        return TenantView.of(found or TenantInfo(name=name))

    async def set(
        self,
        name: str,
        *,
        weight: int | None = None,
        held: bool | None = None,
        by: str = _BY,
        reason: str = "",
    ) -> TenantView:
        """Set a tenant's weight (1 to 1,000), hold it, or let it go on; None leaves it as it is."""
        check_name("tenant", name)
        _check_something(weight=weight, held=held)
        if weight is not None:
            check_weight(weight)
        settings = TenantSettings(weight=weight, held=held)
        await self._put(
            lambda engine: engine.settings.put_tenant(name, settings, by=by, reason=reason),
            About(name, name),
            by=by,
            reason=reason,
        )
        return await self.get(name)

    def list_sync(self) -> List[TenantView]:
        """``list`` for code without an event loop."""
        return self._run(self.list, "list()")

    def get_sync(self, name: str) -> TenantView:
        """``get`` for code without an event loop."""
        return self._run(lambda: self.get(name), "get(…)")

    def set_sync(
        self,
        name: str,
        *,
        weight: int | None = None,
        held: bool | None = None,
        by: str = _BY,
        reason: str = "",
    ) -> TenantView:
        """``set`` for code without an event loop."""
        return self._run(
            lambda: self.set(name, weight=weight, held=held, by=by, reason=reason), "set(…)"
        )


class Queues(_Settings):
    """``app.queues``: what waits where, and which queues are held."""

    _name = "queues"

    async def list(self) -> List[QueueView]:
        """Return the queues by name."""
        engine = await self._client.engine()
        found = await self._client.repeatable(engine.inspector.queues)
        return [QueueView.of(one) for one in found]

    async def get(self, name: str) -> QueueView | None:
        """Return one queue, or None; a queue is there from its first job or setting on."""
        check_name("queue", name)
        engine = await self._client.engine()
        found = await self._client.repeatable(lambda: engine.inspector.queue(name))
        return None if found is None else QueueView.of(found)

    async def set(
        self,
        name: str,
        *,
        max_wait: float | timedelta | None = None,
        held: bool | None = None,
        by: str = _BY,
        reason: str = "",
    ) -> None:
        """Set how long a job may wait before it goes first, hold the queue, or let it go on."""
        check_name("queue", name)
        _check_something(max_wait=max_wait, held=held)
        wait = None if max_wait is None else milliseconds(positive_seconds("max_wait", max_wait))
        settings = QueueSettings(max_wait_ms=wait, held=held)
        await self._put(
            lambda engine: engine.settings.put_queue(name, settings, by=by, reason=reason),
            About(name),
            by=by,
            reason=reason,
        )

    def list_sync(self) -> List[QueueView]:
        """``list`` for code without an event loop."""
        return self._run(self.list, "list()")

    def get_sync(self, name: str) -> QueueView | None:
        """``get`` for code without an event loop."""
        return self._run(lambda: self.get(name), "get(…)")

    def set_sync(
        self,
        name: str,
        *,
        max_wait: float | timedelta | None = None,
        held: bool | None = None,
        by: str = _BY,
        reason: str = "",
    ) -> None:
        """``set`` for code without an event loop."""
        self._run(
            lambda: self.set(name, max_wait=max_wait, held=held, by=by, reason=reason), "set(…)"
        )


class Types(_Settings):
    """``app.types``: job types as live workers have published them."""

    _name = "types"

    async def list(self) -> List[TypeView]:
        """Return the published versions of all types, by name."""
        engine = await self._client.engine()
        found = await self._client.repeatable(engine.inspector.types)
        return [TypeView.of(one) for one in found]

    async def hold(self, name: str, *, by: str = _BY, reason: str = "") -> None:
        """Keep jobs of a type from being handed out, whether it is published yet or not."""
        await self._set(name, held=True, by=by, reason=reason)

    async def unhold(self, name: str, *, by: str = _BY, reason: str = "") -> None:
        """Let jobs of a held type go on."""
        await self._set(name, held=False, by=by, reason=reason)

    async def _set(self, name: str, *, held: bool, by: str, reason: str) -> None:
        check_name("job type", name)
        settings = TypeSettings(held=held)
        await self._put(
            lambda engine: engine.settings.put_type(name, settings, by=by, reason=reason),
            About(name),
            by=by,
            reason=reason,
        )

    def list_sync(self) -> List[TypeView]:
        """``list`` for code without an event loop."""
        return self._run(self.list, "list()")

    def hold_sync(self, name: str, *, by: str = _BY, reason: str = "") -> None:
        """``hold`` for code without an event loop."""
        self._run(lambda: self.hold(name, by=by, reason=reason), "hold(…)")

    def unhold_sync(self, name: str, *, by: str = _BY, reason: str = "") -> None:
        """``unhold`` for code without an event loop."""
        self._run(lambda: self.unhold(name, by=by, reason=reason), "unhold(…)")


class Workers:
    """``app.workers``: the processes that have joined."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self) -> List[WorkerView]:
        """Return the workers, oldest first."""
        engine = await self._client.engine()
        found = await self._client.repeatable(engine.inspector.workers)
        return [WorkerView.of(one) for one in found]

    def list_sync(self) -> List[WorkerView]:
        """``list`` for code without an event loop."""
        return self._client.portal.run(self.list, instead="app.workers.list()")


def _check_something(**given: object) -> None:
    if all(value is None for value in given.values()):
        raise InvalidOption("nothing is set", hint=f"give {' or '.join(f'`{n}`' for n in given)}")
