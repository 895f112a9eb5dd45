"""The queues that there are, remembered, so that nobody makes up any number of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from lamplighter import runtime
from lamplighter.client import Client
from lamplighter.model.counts import counted
from lamplighter.model.names import DEFAULT_QUEUE, shown
from lamplighter.port.values import QueueSettings
from lamplighter.server.catalog import Catalog
from lamplighter.server.errors import TooManyQueues

FRESH = 1.0
"""Seconds for which what was read is good enough, however many new names come meanwhile."""


class QueueNames:
    """Lets callers name new queues, until the store has as many as it may have.

    A queue that is known costs nothing. The store is read only when an unknown one comes, and then
    not more often than every second: several processes, each of which knows what it has let in
    itself, may together let in some more than they should. Queues of published types, and those
    that an operator has made, may always be used.
    """

    def __init__(self, client: Client, catalog: Catalog) -> None:
        self._client = client
        self._catalog = catalog
        self._most = client.settings.http_queues
        self._most_each = client.settings.http_tenant_queues
        self._patience = client.settings.http_timeout
        self._known: set[str] = set()
        self._let_in: dict[str, float] = {}
        """Those that were let in, and when: their first jobs may be on their way to the store."""
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self._admitting = asyncio.Lock()

    async def check(self, names: Iterable[str]) -> list[str]:
        """Return those that are new, or refuse the first for which there is no room."""
        new = self._unknown(names)
        if not new:
            return new
        if self._is_stale():
            # Whoever comes while one reads waits for that, and does not read again.
            async with self._reading:
                if self._is_stale():
                    await self._read()
        served = await self._served()
        # Nothing is waited for from here on: nobody else takes the room meanwhile.
        new = self._unknown(new)
        room = max(0, self._most - len(self._known.union(self._let_in)))
        strange = [name for name in new if name not in served]
        if len(strange) > room:
            raise _too_many(strange[room], self._most)
        return new

    async def admit(self, names: Iterable[str], tenant: str | None = None) -> None:
        """Let in the queues of what is about to be stored, all of them or none.

        ``tenant`` is that of the token that brings them: each may bring so many names that are not
        served and that no operator has made.
        """
        names = self._unknown(names)
        if not names:
            return
        # One after the other: the store is told of a name before it takes room here.
        async with self._admitting:
            new = await self.check(names)
            if tenant is not None and new:
                served = await self._served()
                await self._enter([name for name in new if name not in served], tenant)
            for name in new:
                self._let_in[name] = runtime.monotonic()

    async def _enter(self, names: list[str], tenant: str) -> None:
        if not names:
            return
        most = self._most_each
        engine = await self._client.engine()
        if len(names) > most or not await self._client.repeatable(
            lambda: engine.settings.enter_queues(names, tenant=tenant, most=most)
        ):
            raise TooManyQueues(
                f"there is no queue {shown(names[0])}, and the tenant {shown(tenant)} may bring "
                f"{counted(most, 'new name')} of queues, used up by now",
                hint="use a queue that there is, or have an operator remove empty ones with DELETE "
                "/v1/queues/{name}; the setting `http_tenant_queues` has the limit",
                value=names[0],
            )

    def forget(self, name: str) -> None:
        """Note that a queue was removed."""
        self._known.discard(name)
        self._let_in.pop(name, None)

    async def enter(self, name: str, *, by: str) -> None:
        """Make a queue known to the store, as its first job would."""
        if name not in self._known:
            engine = await self._client.engine()
            nothing = QueueSettings()
            await self._client.repeatable(
                lambda: engine.settings.put_queue(name, nothing, by=by, reason="")
            )
            self.learn(name)

    def learn(self, name: str) -> None:
        """Note a queue that is in the store by now."""
        self._known.add(name)
        # A read that is under way may have been made before.
        self._let_in[name] = runtime.monotonic()

    def _unknown(self, names: Iterable[str]) -> list[str]:
        known, let_in = self._known, self._let_in
        return list(dict.fromkeys(n for n in names if n not in known and n not in let_in))

    def _is_stale(self) -> bool:
        return runtime.monotonic() - self._read_at > FRESH

    async def _read(self) -> None:
        engine = await self._client.engine()
        found = await self._client.repeatable(lambda: engine.inspector.queues(most=0))
        self._known = {queue.name for queue in found}
        now = self._read_at = runtime.monotonic()
        # What was let in longer ago than a request may take is stored by now, or never will be.
        self._let_in = {name: at for name, at in self._let_in.items() if now - at <= self._patience}

    async def _served(self) -> set[str]:
        """Return the queues that programs and workers have named for their types."""
        own = (info.queue for info in self._client.registry.infos())
        return {DEFAULT_QUEUE, *own, *await self._catalog.queues()}


def _too_many(name: str, most: int) -> TooManyQueues:
    return TooManyQueues(
        f"there is no queue {shown(name)}, and the store has {most:,} queues or more, so that no "
        "new one is made for it",
        hint="use a queue that there is, or have an operator make this one with PUT "
        "/v1/queues/{name}; the setting `http_queues` says how many there may be",
        value=name,
    )
