"""How the verbs of an engine are called: telemetry, bounds and the closed state, once for all.

An engine brings a table of its verbs by name, the *parts* of the port (`JobStore`, `Inspector` and
so on) call them from there. When nobody listens or counts, a call costs two looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from lamplighter import runtime
from lamplighter.model.errors import StoreClosed
from lamplighter.observability import calls, events
from lamplighter.port.guards import bounded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    Verb = Callable[..., Awaitable[Any]]

T = TypeVar("T")


class Verbs:
    """Calls the verbs of one engine, which are there only while its store is open."""

    def __init__(self, where: str, most: int) -> None:
        self._where = where
        self._most = most
        self._table: Mapping[str, Verb] = {}

    def open(self, table: Mapping[str, Verb]) -> None:
        """Call these from now on."""
        self._table = table

    def close(self) -> None:
        """Refuse every call from now on."""
        self._table = {}

    def __call__(self, verb: str, *args: object) -> Awaitable[Any]:
        """Call a verb by its name."""
        call = self._table.get(verb)
        if call is None:
            self.refuse()
        watching = calls.watching()
        if watching is None and not events.listened():
            return call(*args)
        return _told(verb, call(*args), watching)

    def refuse(self) -> NoReturn:
        """Say that the store is not open."""
        raise StoreClosed(
            f"the store `{self._where}` is not open", hint="call `await engine.open()` first"
        )

    def bounded(self, items: Sequence[T]) -> Sequence[T]:
        """Return these items, if one call may carry so many."""
        return bounded(items, self._most)


class Part:
    """Some verbs of an engine that belong together."""

    def __init__(self, call: Verbs) -> None:
        self._call = call


async def _told(verb: str, answer: Awaitable[T], watching: calls.Calls | None) -> T:
    """Wait for the answer, and tell what it took or what went wrong."""
    began = runtime.monotonic()
    try:
        found = await answer
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
    return found
