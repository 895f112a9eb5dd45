"""Opened stores of one program: one per event loop, opened when first needed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref

from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.port.store import Engine

_CLOSE_SECONDS = 5.0


class _Slot:
    """The store of one event loop."""

    __slots__ = ("engine", "opening", "ours")

    def __init__(self) -> None:
        self.opening = asyncio.Lock()
        self.engine: Engine | None = None
        self.ours = True
        """False for an engine that somebody lent, and will close."""


class Connections:
    """Keeps one engine per event loop, because an engine answers in the loop it lives in."""

    def __init__(self) -> None:
        self._slots: dict[asyncio.AbstractEventLoop, _Slot] = {}
        _every.add(self)

    async def engine(self, settings: Settings) -> Engine:
        """Return the store of the running loop, opened."""
        slot = self._slots.get(asyncio.get_running_loop())
        if slot is not None and slot.engine is not None:
            return slot.engine
        return await self._open(settings)

    def adopt(self, engine: Engine) -> None:
        """Use this opened engine in the running loop; whoever lent it closes it."""
        slot = self._slots.setdefault(asyncio.get_running_loop(), _Slot())
        slot.engine, slot.ours = engine, False

    async def close(self) -> None:
        """Let go of the running loop's store. Using it again opens it again."""
        slot = self._slots.pop(asyncio.get_running_loop(), None)
        if slot is not None and slot.engine is not None and slot.ours:
            await slot.engine.close()
        await self._close_orphans()

    @property
    def used(self) -> bool:
        """Tell whether a store is open."""
        return any(slot.engine is not None for slot in self._slots.values())

    async def _open(self, settings: Settings) -> Engine:
        await self._close_orphans()
        slot = self._slots.setdefault(asyncio.get_running_loop(), _Slot())
        async with slot.opening:
            if slot.engine is None:
                engine = connect(settings.url, deadline=settings.store_deadline)
                await engine.open()
                slot.engine = engine
            return slot.engine

    async def _close_orphans(self) -> None:
        """Close what loops that ended have left open, as two asyncio.run() in a row do."""
        for loop in [loop for loop in self._slots if loop.is_closed()]:
            slot = self._slots.pop(loop)
            if slot.engine is not None and slot.ours:
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(_CLOSE_SECONDS):
                        await slot.engine.close()

    def forget(self) -> None:
        """Drop everything in a forked child, without closing what the parent still uses."""
        _inherited.append(self._slots)
        self._slots = {}


_every: weakref.WeakSet[Connections] = weakref.WeakSet()
_inherited: list[object] = []
"""Kept for ever: finalising a connection that the parent opened could disturb the parent."""


def _forget_all() -> None:
    for connections in tuple(_every):
        connections.forget()


os.register_at_fork(after_in_child=_forget_all)
