"""What is open when the process forks stays the parent's.

A forked child inherits the sockets. One word of it on such a connection, a farewell included,
would end up in the middle of what the parent says. So in a child everything is put aside: never
used, never closed. A child has to open its own store.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol

from lamplighter.model.errors import StoreClosed


class Inherited(Protocol):
    """Something with connections."""

    def forget(self) -> list[object]:
        """Abandon all connections without touching them."""
        ...


_every: weakref.WeakSet[Inherited] = weakref.WeakSet()
_put_aside: list[list[object]] = []
"""Kept for ever: finalising a connection that the parent opened could disturb the parent."""


def watch(owner: Inherited) -> None:
    """See to it that a forked child leaves these connections alone."""
    _every.add(owner)


def refusal(where: str) -> StoreClosed:
    """What a child is told that goes on with its parent's store."""
    return StoreClosed(
        f"the store at {where} was opened before this process was forked",
        hint="open it again in the child; an App does so by itself",
        value=where,
    )


def _after_in_child() -> None:
    _put_aside.extend(owner.forget() for owner in list(_every))


os.register_at_fork(after_in_child=_after_in_child)
