"""Whose turn it is, found by looking at every job each time: `model/stride.py` taken literally.

A turn is (lane, tenant). It is awake from the moment its head is due, at a place that is never
behind the clock of its (queue, level), until its head is not due any more. Whoever looks is a
claim of that (queue, level), or the verb that brought the job: the clock stands still between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lamplighter.model import stride
from lamplighter.model.job import Level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lamplighter.port.conformance.reference_row import Row
    from lamplighter.port.values import ClaimRequest


class LaneKey(NamedTuple):
    """Jobs that are interchangeable for a worker."""

    queue: str
    level: Level
    type: str
    requirement: str


class TurnKey(NamedTuple):
    """A tenant in a lane."""

    queue: str
    level: Level
    type: str
    requirement: str
    tenant: str

    @property
    def lane(self) -> LaneKey:
        """Its lane."""
        return LaneKey(*self[:4])


Band = tuple[str, Level]


class Lines:
    """Virtual times, clocks, holds, and who stands where."""

    def __init__(self) -> None:
        self.known: set[LaneKey] = set()
        self.places: dict[TurnKey, int] = {}
        """Awake turns, each with the place at which it woke."""
        self.times: dict[tuple[Band, str], int] = {}
        self.clocks: dict[Band, int] = {}
        self.handouts: dict[str, int] = {}
        self.weights: dict[str, int] = {}
        self.max_wait_ms: dict[str, int] = {}
        self.held_queues: set[str] = set()
        self.held_types: set[str] = set()
        self.held_tenants: set[str] = set()

    def is_asked(self, turn: TurnKey | LaneKey, request: ClaimRequest) -> bool:
        """Whether a request may take from this lane."""
        return (
            turn.queue not in self.held_queues
            and turn.type in request.types
            and turn.type not in self.held_types
            and turn.requirement in request.requirements
        )

    # ── awake and asleep ─────────────────────────────────────────────────────────────────────

    def wake(self, queue: str, request: ClaimRequest, rows: Iterable[Row], now: int) -> None:
        """Wake what is due in each (queue, level) that a claim looks at."""
        looked_at = {
            lane.level
            for lane in self.known
            if lane.queue == queue and self.is_asked(lane, request)
        }
        for turn, head in _heads(rows).items():
            if turn.queue == queue and turn.level in looked_at and head.due_at_ms <= now:
                self._wake_one(turn)

    def came(self, row: Row, rows: Iterable[Row], now: int) -> None:
        """A job came into its turn."""
        if _heads(rows).get(row.turn) is row and row.due_at_ms <= now:
            self._wake_one(row.turn)

    def went(self, turn: TurnKey, rows: Iterable[Row], now: int) -> None:
        """A job left its turn."""
        head = _heads(rows).get(turn)
        if head is None or head.due_at_ms > now:
            self.places.pop(turn, None)

    def hold_tenant(self, tenant: str, rows: Iterable[Row], now: int, *, held: bool) -> None:
        """Take a tenant's turns out of line, or let them come back at the clock."""
        if held:
            self.held_tenants.add(tenant)
            for turn in [turn for turn in self.places if turn.tenant == tenant]:
                del self.places[turn]
        elif tenant in self.held_tenants:
            self.held_tenants.remove(tenant)
            for turn, head in _heads(rows).items():
                if turn.tenant == tenant and head.due_at_ms <= now:
                    self._wake_one(turn)

    def _wake_one(self, turn: TurnKey) -> None:
        if turn not in self.places and turn.tenant not in self.held_tenants:
            band = (turn.queue, turn.level)
            time = self.times.get((band, turn.tenant), 0)
            self.places[turn] = stride.awake_at(time, self.clocks.get(band, 0))

    # ── who is next ──────────────────────────────────────────────────────────────────────────

    def next(
        self, queue: str, request: ClaimRequest, rows: Iterable[Row], now: int
    ) -> tuple[Row, bool] | None:
        """Return the job that is next in a queue, and whether it goes out of turn."""
        heads = {
            turn: head
            for turn, head in _heads(rows).items()
            if turn.queue == queue and turn in self.places and self.is_asked(turn, request)
        }
        if stride.takes_the_longest_waiting(self.handouts.get(queue, 0) + 1):
            before = now - self.max_wait_ms.get(queue, stride.DEFAULT_MAX_WAIT_MS)
            waiting = [head for head in heads.values() if head.due_at_ms < before]
            if waiting:
                return min(waiting, key=_age), True
        for turn in sorted(heads, key=lambda turn: self._place(turn, heads[turn])):
            if heads[turn].due_at_ms <= now:
                return heads[turn], False
            # The clock went back: whoever is met first in line and not due goes back to sleep.
            del self.places[turn]
        return None

    def _place(self, turn: TurnKey, head: Row) -> tuple[Level, int, bytes, tuple[int, int]]:
        time = self.times.get(((turn.queue, turn.level), turn.tenant), 0)
        # Another lane may have moved the tenant on since this turn woke.
        place = max(self.places[turn], time)
        return (turn.level, place, turn.tenant.encode(), _age(head))

    def move_on(self, row: Row, *, out_of_turn: bool) -> int:
        """Charge a hand-out to its tenant; gives its number in the queue."""
        turn = row.turn
        band = (turn.queue, turn.level)
        moved = stride.step(row.new.cost, self.weights.get(turn.tenant, stride.DEFAULT_WEIGHT))
        time, clock = self.times.get((band, turn.tenant), 0), self.clocks.get(band, 0)
        # Written out again on purpose: this is the independent word on the rule.
        start = max(time, clock)
        self.times[band, turn.tenant] = start + moved
        if not out_of_turn:
            self.clocks[band] = start
        self.handouts[turn.queue] = self.handouts.get(turn.queue, 0) + 1
        return self.handouts[turn.queue]


def _heads(rows: Iterable[Row]) -> dict[TurnKey, Row]:
    """The first waiting job of every turn."""
    heads: dict[TurnKey, Row] = {}
    for row in rows:
        if row.in_turn() and (row.turn not in heads or _age(row) < _age(heads[row.turn])):
            heads[row.turn] = row
    return heads


def _age(row: Row) -> tuple[int, int]:
    return (row.due_at_ms, row.sequence)
