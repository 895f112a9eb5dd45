"""Make jobs of what schedules say, when they say it."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.coordinator.plan import plan
from lamplighter.coordinator.right_of_way import RightOfWay
from lamplighter.coordinator.writing import complain, portions, write
from lamplighter.fleet import Fleet
from lamplighter.model.recurring import Overlap, Template
from lamplighter.model.schedule import tzdata_version
from lamplighter.observability import events
from lamplighter.port import specs
from lamplighter.port.schedules import FireAnswer, Fired, Firing
from lamplighter.port.store import CANCEL_TOPIC, Engine, queue_topic
from lamplighter.service import Service

BATCH, PLANNED = 250, 100
"""Written at once, and planned between two looks at the event loop, which others need too."""
LANES, EMBEDDED_LANES, BATCHES = 6, 2, 2
"""Batches fired at the same time, and one after the other, before others have the rest of the time.
An embedded store has one writer: there, more would only stand in others' way."""
LEASE_MS = 10_000
LONGEST_PAUSE = 1.0
"""The store's time is looked at so often, however far the next occurrence is: clocks are set."""
BEHIND_MS = 5_000
"""Later than this is an overload."""
LONGEST_OF_MANY = 7.0
"""Longer would leave what a dead node had in hand too late, where few nodes fire."""
PER_WORKER, SPREAD = 0.01, 0.0005
"""Seconds by which each worker that there is puts off a look, and one that is for what is due."""
WAY = 2.0
"""Seconds for which others are asked to make way; asked again with every step."""
REST = 0.05
"""Part of the time that is left to others while there is more than can be fired at once."""


@dataclass(slots=True)
class Counts:
    """What has been fired here so far, for health and metrics."""

    fired: int = 0
    queued: int = 0
    skipped: Counter[str] = field(default_factory=Counter[str])
    stale: int = 0
    """Plans that somebody else was quicker with."""
    unreadable: int = 0
    lag_ms: int = 0
    """How long the oldest has been due that was handed out last."""
    resting: bool = False
    """Whether more is due than was fired at once, so that part of the time is left to others."""

    @property
    def behind(self) -> bool:
        """Whether occurrences fall due faster than they are fired."""
        return self.lag_ms > BEHIND_MS


class Firer(Service):
    """Plan what is due, and write the plans.

    Runs on every node, without a leader: the store takes of several plans for one schedule the
    first. A node that dies with schedules in hand leaves them to others ten seconds later.
    """

    name = "fire"
    patience = 120.0

    def __init__(self, engine: Engine, settings: Settings, fleet: Fleet | None = None) -> None:
        super().__init__()
        self._engine = engine
        self._fleet = fleet or Fleet()
        self._batch = min(BATCH, engine.capabilities.max_batch)
        many = engine.capabilities.many_machines
        self._lanes = LANES if many else EMBEDDED_LANES
        self._newest_first = bool(settings.fire_newest_first)
        self._zones = tzdata_version()
        self._due_at: float | None = 0.0
        """When the next is due, as the last look has told; None: there is none."""
        self.counts = Counts()
        self.on_rush: Callable[[float], None] | None = None
        """Asks others to make way for so many seconds, since very much is due; 0: no longer."""
        self._way = RightOfWay(settings.fire_first, WAY, runtime.boottime())
        self._makes_haste = False

    async def step(self) -> float:
        """Fire some batches; the next follow soon while more is due.

        Of very many nodes, one that knows of nothing due leaves it to the others to notice.
        """
        began = runtime.boottime()
        if self._fleet.keeps_watch and (self._due_at is None or began < self._due_at):
            until_ms = None if self._due_at is None else (self._due_at - began) * 1000
            return min(LONGEST_PAUSE, self._pause(until_ms))
        found, poll_after_ms = await self._fire_some()
        now = runtime.boottime()
        self._due_at = None if poll_after_ms is None else now + poll_after_ms / 1000
        self.counts.resting = poll_after_ms == 0
        self._ask_for_way(now, found)
        if self.counts.resting:
            return (now - began) * REST
        return self._pause(poll_after_ms)

    def _ask_for_way(self, now: float, found: int) -> None:
        # One schedule may have something to do again and again: that is no reason.
        rush = self.counts.resting and found >= self._lanes * self._batch
        granted = self._way.ask(now, rush=rush)
        if self.on_rush is not None and (granted or self._makes_haste):
            self.on_rush(WAY if granted else 0.0)
        self._makes_haste = granted

    async def fire_batch(self) -> tuple[int, int | None]:
        """Fire what is due, some of it; gives how many there were, and `poll_after_ms`."""
        batch = await self._fire_one()
        self._note_lag(batch.lag_ms)
        return batch.found, batch.poll_after_ms

    async def _fire_some(self) -> tuple[int, int | None]:
        """Fire some batches: while one is written, another is looked for and planned.

        Gives how many schedules there were, and `poll_after_ms`.
        """
        batches: list[_Batch] = []
        if not self.counts.resting:
            batches.append(await self._fire_one())
        ends = batches
        if not batches or batches[0].poll_after_ms == 0:
            lanes = (self._lane() for _ in range(self._lanes))
            found = await asyncio.gather(*lanes, return_exceptions=True)
            if errors := [one for one in found if isinstance(one, BaseException)]:
                raise errors[0]
            fired = [one for one in found if not isinstance(one, BaseException) and one]
            batches += [batch for lane in fired for batch in lane]
            ends = [lane[-1] for lane in fired] or ends
        self._note_lag(max(batch.lag_ms for batch in batches))
        # What one lane has left to do, no other can know.
        waits = [batch.poll_after_ms for batch in ends if batch.poll_after_ms is not None]
        return sum(batch.found for batch in batches), min(waits, default=None)

    async def _lane(self) -> list[_Batch]:
        batches: list[_Batch] = []
        while len(batches) < BATCHES and (not batches or batches[-1].poll_after_ms == 0):
            batches.append(await self._fire_one())
        return batches

    async def _fire_one(self) -> _Batch:
        batch = await self._plan_batch()
        for some in portions(batch.firings):
            written = await write(self._engine, some, service=self.name)
            self.counts.unreadable += len(some) - len(written)
            self._count(written)
            batch.note_more(written)
            await self._tell(batch, written)
        return batch

    async def _plan_batch(self) -> _Batch:
        due = await self._engine.schedules.due_schedules(
            limit=self._batch,
            lease_ms=LEASE_MS,
            newest_first=self._newest_first and self.counts.behind,
        )
        batch = _Batch(len(due.schedules), due.poll_after_ms, due.now_ms)
        for place, one in enumerate(due.schedules):
            if place and place % PLANNED == 0:
                await runtime.sleep(0)
            try:
                spec = specs.from_text(one.record.spec, one.record.id)
                batch.firings.append(plan(one, spec, due.now_ms, self._zones))
                batch.templates[one.record.tenant, one.record.id] = spec.template
                batch.note_lag(one.record.due_ms)
            except Exception as error:  # noqa: BLE001 - one schedule must not stop the others
                self.counts.unreadable += 1
                complain(self.name, one.record.tenant, one.record.id, error)
        return batch

    def _pause(self, poll_after_ms: float | None) -> float:
        """Wait for the next. Of many nodes each looks less often, and they do not all come at once.

        The first of them comes as soon as one alone would.
        """
        workers = self._fleet.workers
        many = min(workers * PER_WORKER, LONGEST_OF_MANY) * (0.5 + runtime.random())
        longest = max(LONGEST_PAUSE, many)
        if poll_after_ms is None:
            return longest
        return min(longest, poll_after_ms / 1000 + workers * SPREAD * runtime.random())

    def _note_lag(self, lag_ms: int) -> None:
        was_behind = self.counts.behind
        self.counts.lag_ms = lag_ms
        if self.counts.behind != was_behind:
            events.emit(events.SCHEDULES_BEHIND, behind=self.counts.behind, lag_ms=lag_ms)

    def _count(self, written: Sequence[tuple[Firing, Fired]]) -> None:
        counts = self.counts
        for firing, answer in written:
            if answer.answer is FireAnswer.STALE:
                counts.stale += 1
                continue
            counts.fired += len(answer.started)
            counts.queued += answer.queued
            planned = 0
            for skip in firing.skips:
                counts.skipped[skip.reason] += skip.count or 1
                planned += skip.count or 1
            if answer.skipped > planned:
                counts.skipped["overlap"] += answer.skipped - planned
            if firing.hold is not None:
                events.emit(
                    events.SCHEDULE_HELD,
                    tenant=firing.tenant,
                    schedule=firing.id,
                    reason=firing.hold,
                )

    async def _tell(self, batch: _Batch, written: Sequence[tuple[Firing, Fired]]) -> None:
        """Wake workers for the jobs that may run now."""
        jobs: defaultdict[str, Counter[str]] = defaultdict(Counter[str])
        for firing, answer in written:
            if answer.started:
                template = batch.templates[firing.tenant, firing.id]
                jobs[template.queue][template.type] += len(answer.started)
        started = sum(sum(types.values()) for types in jobs.values())
        if started:
            events.emit(events.SCHEDULES_FIRED, count=started)
        for queue, types in jobs.items():
            await self._engine.wakeup.notify(queue_topic(queue), jobs=types)
        if any(answer.started and _cancels(firing) for firing, answer in written):
            await self._engine.wakeup.notify(CANCEL_TOPIC)


def _cancels(firing: Firing) -> bool:
    return any(run.overlap is Overlap.CANCEL_RUNNING for run in firing.runs)


@dataclass(slots=True)
class _Batch:
    """Schedules that were handed out together, and what is planned for them."""

    found: int
    poll_after_ms: int | None
    now_ms: int
    firings: list[Firing] = field(default_factory=list[Firing])
    templates: dict[tuple[str, str], Template] = field(
        default_factory=dict[tuple[str, str], Template]
    )
    """By tenant and id of the schedule."""
    lag_ms: int = 0
    """For how long the oldest has been due. What nobody can read is not ours to catch up."""

    def note_lag(self, due_ms: int | None) -> None:
        if due_ms is not None:
            self.lag_ms = max(self.lag_ms, self.now_ms - due_ms)

    def note_more(self, written: Sequence[tuple[Firing, Fired]]) -> None:
        """Come back at once for plans that left something to do now."""
        dues = [one.due_ms for one, said in written if said.answer is FireAnswer.DONE]
        if any(due_ms is not None and due_ms <= self.now_ms for due_ms in dues):
            self.poll_after_ms = 0
