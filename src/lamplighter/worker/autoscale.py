"""How many children a worker should have, from what they do and from what waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.counts import counted
from lamplighter.model.errors import InvalidOption, InvalidSettings
from lamplighter.model.names import shown
from lamplighter.observability import events
from lamplighter.port.store import Engine
from lamplighter.service import Service
from lamplighter.worker.process import ChildProcess

HIGH = 0.8
"""Part of the slots from which on more children would help."""
LOW = 0.3
"""Part of the slots of one child fewer, below which that many would do."""
CLEAR = 3.0
"""A backlog that is gone within so many seconds needs nobody more."""
LARGE = 4
"""So many times the slots there are: such a backlog doubles the children."""
STEP_UP = 2.0
"""Seconds of pressure before each growth."""
STEP_DOWN = 15.0
"""Seconds of idleness before each child that goes."""
LOOK = 1.0

_FORM = "write the fewest and the most child processes, as in `1..8`"


class Autoscale:
    """Decides by itself alone: it keeps the time of what it has seen, and asks no clock.

    It grows while the slots are nearly full *and* a due backlog does not shrink fast enough, one
    child at a time or twice as many for a large backlog. It shrinks by one when there was little
    to do for a while. Between the two thresholds lies enough room that one never causes the other:
    after a growth the children are at least 40 % busy, after a departure at most 30 %.
    """

    def __init__(self, lowest: int, highest: int) -> None:
        self.reason = ""
        """Why the last answer differed from the size."""
        self._lowest = lowest
        self._highest = highest
        self._pressed: tuple[float, int] | None = None
        """Since when there is pressure, and how much waited then."""
        self._idle_since: float | None = None

    def decide(self, now: float, size: int, busy: int, slots: int, backlog: int) -> int:
        """Return the number of children there should be.

        ``size`` children of ``slots`` slots each are wanted now, ``busy`` handlers run, and
        ``backlog`` jobs are due and wait.
        """
        if size < self._lowest or size > self._highest:
            return self._changed(min(max(size, self._lowest), self._highest), "out of its bounds")
        if busy > HIGH * size * slots and backlog:
            self._idle_since = None
            return self._pressure(now, size, slots, backlog)
        self._pressed = None
        # The backlog does not count here: it may be held, or be of types we do not know.
        if size > self._lowest and busy < LOW * (size - 1) * slots:
            return self._idleness(now, size, busy, slots)
        self._idle_since = None
        return size

    def _pressure(self, now: float, size: int, slots: int, backlog: int) -> int:
        if self._pressed is None:
            self._pressed = (now, backlog)
        since, before = self._pressed
        lasted = now - since
        if size == self._highest or lasted < STEP_UP:
            return size
        cleared_a_second = (before - backlog) / lasted
        self._pressed = (now, backlog)
        if cleared_a_second * CLEAR >= backlog:
            return size
        more = size if backlog > LARGE * size * slots else 1
        return self._changed(
            min(size + more, self._highest), counted(backlog, "due job waits", "due jobs wait")
        )

    def _idleness(self, now: float, size: int, busy: int, slots: int) -> int:
        if self._idle_since is None:
            self._idle_since = now
        if now - self._idle_since < STEP_DOWN:
            return size
        self._idle_since = now
        return self._changed(size - 1, f"{busy} of {counted(size * slots, 'slot')} in use")

    def _changed(self, size: int, reason: str) -> int:
        self.reason = reason
        return size


class Resizable(Protocol):
    """A worker as its scaler sees it."""

    @property
    def id(self) -> str:
        """Its name in the store."""
        ...

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues it serves; none before its first child is ready."""
        ...

    @property
    def children(self) -> Sequence[ChildProcess]:
        """Its living children."""
        ...

    @property
    def size(self) -> int:
        """How many children it wants."""
        ...

    @property
    def draining(self) -> bool:
        """Whether it comes to an end."""
        ...

    def resize(self, count: int) -> None:
        """Want another number of children."""
        ...


class Scaler(Service):
    """Looks once a second and changes the number of children within the bounds.

    The lowest number is the one the worker starts with, the highest is ``children_most``.
    """

    name = "scale"
    patience = 120.0

    def __init__(self, engine: Engine, settings: Settings, worker: Resizable) -> None:
        super().__init__()
        self._engine = engine
        self._worker = worker
        self._slots = settings.slots
        if settings.children_most < worker.size:
            raise InvalidSettings(
                f"the worker begins with {worker.size} children, more than the setting "
                f"`children_most`, which is {settings.children_most}",
                hint="set `children` to the fewest and `children_most` to the most, or leave the "
                "latter at 0",
                value=settings.children_most,
            )
        self._autoscale = Autoscale(worker.size, settings.children_most)

    async def step(self) -> float:
        """Look at what runs and what waits, and decide."""
        worker = self._worker
        if worker.queues and not worker.draining:
            backlog = await self._backlog(worker.queues)
            before = worker.size
            wanted = self._autoscale.decide(
                runtime.monotonic(), before, self._busy(), self._slots, backlog
            )
            # The store may have taken a while to answer.
            if wanted != before == worker.size and not worker.draining:
                worker.resize(wanted)
                events.emit(
                    events.WORKER_SCALED,
                    worker=worker.id,
                    size=wanted,
                    before=before,
                    reason=self._autoscale.reason,
                )
        return LOOK

    def _busy(self) -> int:
        # Those that retire give no room to anybody any more; jobs that run alone are not ours.
        return sum(
            child.ledger.running()
            for child in self._worker.children
            if not child.draining and not child.alone
        )

    async def _backlog(self, queues: Sequence[str]) -> int:
        served = frozenset(queues)
        found = await self._engine.inspector.queues()
        return sum(queue.ready for queue in found if queue.name in served and queue.held is None)


def parse(text: str) -> tuple[int, int]:
    """Read `1..8`: the fewest and the most."""
    first, dots, second = (part.strip() for part in text.partition(".."))
    if not dots and _is_count(first):
        raise InvalidOption(
            f"the range {shown(text)} is one number",
            hint=f"write `1..{first}`, or --processes {first} if their number should stay",
            value=text,
        )
    if not _is_count(first) or not _is_count(second):
        raise InvalidOption(
            f"the range {shown(text)} is not two whole numbers", hint=_FORM, value=text
        )
    lowest, highest = int(first), int(second)
    if lowest < 1:
        raise InvalidOption(
            f"the range {shown(text)} begins at {lowest}, but a worker without a child process "
            "would never see that there is work",
            hint=f"write `1..{max(1, highest)}`",
            value=text,
        )
    if highest < lowest:
        raise InvalidOption(
            f"the range {shown(text)} ends below its beginning",
            hint=f"write `{highest}..{lowest}`" if highest else _FORM,
            value=text,
        )
    return lowest, highest


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
