"""Who is next: weighted fairness by stride scheduling, said once and exactly.

Each tenant has a virtual time per (queue, level). A hand-out moves it on by a step that is short
for a heavy tenant and long for a light one, and the tenant that is furthest behind goes next. The
clock of a (queue, level) is the largest virtual time at which a turn was taken in line; who was
away comes back at the clock, so that nobody saves up turns while idle.

The order in one (queue, level), over the lanes that were asked for:

1. the turn of the tenant with the smallest virtual time;
2. equal times: the tenant whose name has the smaller UTF-8 bytes;
3. the same tenant in two lanes: the turn whose head is due earlier, then was submitted earlier.

A turn wakes when its head is due: at submit, or with the first claim that hands out anything of
its (queue, level), whichever lanes that claim asked for; held tenants' turns wake when unheld. At
that moment its place is fixed by `awake_at`. While it stays awake, its place is the larger of that
and its tenant's virtual time; a turn that falls asleep or runs empty loses its place.

Levels are strict, critical first, but every tenth hand-out of a queue goes to the asked-for turn
whose head has been due longest, of any level, if that is longer than the queue's ``max_wait``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown

STEP = 1_000_000
MIN_WEIGHT = 1
MAX_WEIGHT = 1_000
DEFAULT_WEIGHT = 1
DEFAULT_MAX_WAIT_MS = 60_000
STARVED_EVERY = 10
WAKE_LIMIT = 64
"""Sleeping turns woken per (queue, level) and claim."""
FOLD_LIMIT = 1_000
"""Arrivals folded into turns per (queue, level) and claim, where an engine keeps arrivals."""
STALE_LIMIT = 500
"""Stale turns rewritten per claim."""


def check_weight(value: object) -> int:
    """Return a valid weight, or say what is wrong with it."""
    if type(value) is int and MIN_WEIGHT <= value <= MAX_WEIGHT:
        return value
    raise InvalidOption(
        f"the weight {shown(value)} is out of range",
        hint=f"give a whole number from {MIN_WEIGHT} to {MAX_WEIGHT}",
        value=value,
    )


def step(cost: int, weight: int) -> int:
    """How far a hand-out of this cost moves a tenant of this weight."""
    return STEP * cost // weight


def awake_at(time: int, clock: int) -> int:
    """Place of a turn that wakes: its tenant's time, but never behind the clock."""
    return max(time, clock)


def hand_out(time: int, clock: int, moved: int, *, out_of_turn: bool = False) -> tuple[int, int]:
    """Return the tenant's new time and the new clock after a hand-out.

    A hand-out to who waited longest is charged but leaves the clock alone: its tenant may be far
    ahead of the others, and each such clock would lift them all to it and wipe out their weights.
    """
    start = max(time, clock)
    return start + moved, clock if out_of_turn else start


def takes_the_longest_waiting(handout: int) -> bool:
    """Tell whether this hand-out of a queue, counted from 1, goes to who waited longest."""
    return handout % STARVED_EVERY == 0


@dataclass(slots=True)
class QueueStride:
    """A claimer's own order over its queues: strict, or by weight.

    ``weights`` None means strict: always in the order given. Otherwise each claim lists the queue
    that is furthest behind first, with a quota of its share of the room.
    """

    queues: tuple[str, ...]
    weights: tuple[int, ...] | None = None
    _times: dict[str, int] = field(default_factory=dict[str, int])

    def ask(self, room: int) -> list[tuple[str, int]]:
        """Return the queues in the order to fill, each with its quota for this claim."""
        if self.weights is None:
            return [(queue, room) for queue in self.queues]
        weight = dict(zip(self.queues, self.weights, strict=True))
        quota = dict.fromkeys(self.queues, 0)
        times = {queue: self._times.get(queue, 0) for queue in self.queues}
        for _ in range(room):
            queue = min(self.queues, key=lambda name: (times[name], name))
            quota[queue] += 1
            times[queue] += step(1, weight[queue])
        order = sorted(self.queues, key=lambda name: (self._times.get(name, 0), name))
        return [(queue, quota[queue]) for queue in order]

    def took(self, queue: str, count: int) -> None:
        """Note what a claim brought from a queue."""
        if self.weights is None or count == 0:
            return
        weight = dict(zip(self.queues, self.weights, strict=True))[queue]
        moved = self._times.get(queue, 0) + step(count, weight)
        self._times[queue] = moved
        # Who brought nothing while another moved on must not save up turns.
        floor = moved - 2 * STEP * max(1, count)
        for name in self.queues:
            self._times[name] = max(self._times.get(name, 0), floor)
