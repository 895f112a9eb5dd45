"""Keeps the leases of all children: the one part of a worker that must never be late."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.errors import StoreError
from lamplighter.model.job import TERMINAL
from lamplighter.model.lifecycle import milliseconds
from lamplighter.observability import events
from lamplighter.port.store import Engine
from lamplighter.port.values import Renewal, RenewAnswer, Renewed
from lamplighter.service import Service
from lamplighter.worker.ledger import Entry
from lamplighter.worker.link import Cancel, Yours
from lamplighter.worker.process import ChildProcess
from lamplighter.worker.run import BATCH, margin, renewal_round

MOST_LOOKED_UP = 50
"""Lost claims of one call whose jobs are looked up: the next renewals must not wait for long."""
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
        self._believed = settings.lease - margin(settings.lease)
        self._limit = min(BATCH, engine.capabilities.max_batch)
        self._round = renewal_round(settings.lease)
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

    async def look_for_cancels(self, child: ChildProcess) -> None:
        """Renew what runs in a child now: the answer tells which of it is to be cancelled."""
        running = child.ledger.to_renew(runtime.boottime(), age=math.inf, watched_after=0.0)
        asked = [(child, entry) for entry in running if not entry.cancel_told]
        try:
            for start in range(0, len(asked), self._limit):
                await self._renew(asked[start : start + self._limit])
        except StoreError as error:
            # The next round asks again.
            events.emit(events.SERVICE_ERROR, service=self.name, error=error, expected=True)

    async def confirm(self, child: ChildProcess, numbers: Iterable[int]) -> None:
        """Answer a child whose loop stood still: what the store extends is still its own."""
        async with child.giving_back:
            entries = [e for n in numbers if (e := child.ledger.entries.get(n)) is not None]
            for start in range(0, len(entries), self._limit):
                await self._renew([(child, e) for e in entries[start : start + self._limit]])
            now = runtime.boottime()
            child.say(
                Yours(
                    [
                        e.number
                        for e in entries
                        if e.number in child.ledger.entries
                        and not (e.unsure and e.kept_at + self._believed <= now)
                    ]
                )
            )

    async def _renew(self, due: Sequence[tuple[ChildProcess, Entry]]) -> None:
        sent_at = runtime.boottime()
        renewed = await self._engine.jobs.renew(
            [Renewal(entry.id, entry.fence) for _, entry in due], milliseconds(self._lease)
        )
        lost: list[tuple[ChildProcess, Entry]] = []
        cancelled: dict[ChildProcess, list[int]] = {}
        for (child, entry), answer in zip(due, renewed, strict=True):
            entry.unsure = answer.answer is RenewAnswer.UNKNOWN
            if entry.unsure:
                # Asked again in the next round, until `Watch` can vouch for it no longer.
                continue
            if answer.held:
                entry.kept_at = sent_at
                if answer.cancel_requested and not entry.cancel_told:
                    entry.cancel_told = True
                    cancelled.setdefault(child, []).append(entry.number)
            elif entry.number in child.ledger.entries:
                child.lose([entry.number], settled=True)
                lost.append((child, entry))
            else:
                child.leave([entry.number])
        for child in dict.fromkeys(child for child, _ in due):
            child.reassure(sent_at)
        for child, numbers in cancelled.items():
            child.say(Cancel(numbers))
        _tell(renewed, len(lost))
        await self._spare(lost)

    async def _spare(self, lost: Sequence[tuple[ChildProcess, Entry]]) -> None:
        """Find claims that were lost because their jobs have ended.

        Often the child has written that itself, and a neighbour keeps its loop from saying so.
        Nobody else runs them, so their handlers need not be out of the way in a hurry.
        """
        for child, entry in lost[:MOST_LOOKED_UP]:
            if entry.number in child.ledger.hanging:
                record = await self._engine.inspector.job(entry.id)
                if record is None or record.state in TERMINAL:
                    child.ledger.ended([entry.number])


def _tell(renewed: Sequence[Renewed], lost: int) -> None:
    if events.listened():
        events.emit(events.LEASES_RENEWED, count=len(renewed), lost=lost)
