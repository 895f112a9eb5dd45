"""Keeps the leases of all children: the one part of a worker that must never be late."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.errors import StoreError
from lamplighter.model.lifecycle import milliseconds
from lamplighter.observability import events
from lamplighter.port.store import Engine
from lamplighter.port.values import Renewal, Renewed
from lamplighter.service import Service
from lamplighter.worker.ledger import Entry
from lamplighter.worker.link import Cancel, Yours
from lamplighter.worker.process import ChildProcess
from lamplighter.worker.run import BATCH

LONGEST_ROUND = 2.0
"""Time between two rounds; a cancel reaches a running handler within it."""
WATCHED_AFTER = 1.0
"""Handlers running for longer are asked about in every round, for the sake of cancels."""


class Keeper(Service):
    """Renews leases in rounds, one in flight, for living children and jobs under their hard end.

    A round that fails says nothing: the leases may have been extended or not. It is repeated
    until too close to the end, counted from the moment the last acknowledged renewal was sent;
    then `Watch` takes the claims away from the child. A child hears of each round as soon as it
    is acknowledged: where a machine is so busy that a round takes long, it would otherwise give
    up leases that are kept, before the next regular word of `Watch`.
    """

    name = "keep leases"

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        children: Callable[[], Iterable[ChildProcess]],
    ) -> None:
        super().__init__()
        self._engine = engine
        self._lease = settings.lease
        self._children = children
        self._limit = min(BATCH, engine.capabilities.max_batch)
        self._round = min(settings.lease / 3, LONGEST_ROUND)
        # A lease that one round finds too young for it is not half over in the next one.
        self._age = min(settings.lease / 3, settings.lease / 2 - self._round)

    async def step(self) -> float:
        """Renew what reaches half of its lease soon, or a third of it; look for cancels."""
        began = runtime.boottime()
        due = [
            (child, entry)
            for child in self._children()
            if not child.dead
            for entry in child.ledger.to_renew(
                began,
                age=self._age,
                watched_after=WATCHED_AFTER,
                # While its neighbours finish, nobody else may run what hangs.
                spared=child.condemned if child.draining else (),
            )
            + child.letting_go(began, self._age)
        ]
        try:
            for start in range(0, len(due), self._limit):
                await self._renew(due[start : start + self._limit])
        except StoreError as error:
            events.emit(events.SERVICE_ERROR, service=self.name, error=error, expected=True)
            return min(0.25, self._lease / 20)
        return max(0.0, began + self._round - runtime.boottime())

    async def confirm(self, child: ChildProcess, numbers: Iterable[int]) -> None:
        """Answer a child whose loop stood still: what the store extends is still its own."""
        async with child.giving_back:
            entries = [e for n in numbers if (e := child.ledger.entries.get(n)) is not None]
            for start in range(0, len(entries), self._limit):
                await self._renew([(child, e) for e in entries[start : start + self._limit]])
            child.say(Yours([e.number for e in entries if e.number in child.ledger.entries]))

    async def _renew(self, due: Sequence[tuple[ChildProcess, Entry]]) -> None:
        sent_at = runtime.boottime()
        renewed = await self._engine.jobs.renew(
            [Renewal(entry.id, entry.fence) for _, entry in due], milliseconds(self._lease)
        )
        lost = 0
        cancelled: dict[ChildProcess, list[int]] = {}
        for (child, entry), answer in zip(due, renewed, strict=True):
            if answer.held:
                entry.kept_at = sent_at
                if answer.cancel_requested and not entry.cancel_told:
                    entry.cancel_told = True
                    cancelled.setdefault(child, []).append(entry.number)
            elif entry.number in child.ledger.entries:
                lost += 1
                child.lose([entry.number], settled=True)
            else:
                child.leave([entry.number])
        for child in dict.fromkeys(child for child, _ in due):
            child.reassure(sent_at)
        for child, numbers in cancelled.items():
            child.say(Cancel(numbers))
        _tell(renewed, lost)


def _tell(renewed: Sequence[Renewed], lost: int) -> None:
    if events.listened():
        events.emit(events.LEASES_RENEWED, count=len(renewed), lost=lost)
