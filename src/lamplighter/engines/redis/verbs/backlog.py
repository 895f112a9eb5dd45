"""queue, queues, tenant, tenants: what waits and runs, turn by turn, over all shards."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Call
from lamplighter.model.job import Level
from lamplighter.model.stride import DEFAULT_MAX_WAIT_MS, DEFAULT_WEIGHT
from lamplighter.port import texts
from lamplighter.port.rows import tenant_of
from lamplighter.port.values import COUNT_LIMIT, LEVEL_LIMIT, QueueInfo, TenantInfo

_PAGE = 500
_AT_ONCE = 4
"""Queues or lanes that are asked about at once: the server is at work while answers are read, and
nobody else waits for more than that."""
_TENANT_LIMIT = 1_000
_TURNS = ("line", "asleep", "shut")


@dataclass(frozen=True, slots=True)
class _Lane:
    """A lane of one shard with the number of its turns: awake, asleep, shut."""

    shard: int
    number: int
    queue: str
    level: Level
    oldest_due: int | None
    turns: tuple[int, int, int]


async def queues(call: Call, most: int) -> list[QueueInfo]:
    """List queues with what waits and runs in them."""
    found: dict[str, _Queue] = {}
    now = 0
    for shard in range(call.shards):
        now, lanes = await _lanes(call, shard)
        await _count(call, lanes, found, most)
        queue_of = {lane.number: lane.queue for lane in lanes}
        async for lane_number, _ in _running(call, shard):
            found.setdefault(queue_of.get(lane_number, ""), _Queue()).running += 1
        for name, text in (await _named(call, "handed", shard)).items():
            found.setdefault(name, _Queue()).handouts += int(text)
    settings = await _named(call, "queue", 0)
    return [
        found.get(name, _Queue()).info(name, json.loads(settings.get(name, b"{}")), now, most)
        for name in sorted(found.keys() | settings.keys())
    ]


async def queue(call: Call, name: str) -> QueueInfo | None:
    """Give one queue with what waits and runs in it."""
    if texts.clean(name) != name:
        return None
    found, now, there = _Queue(), 0, False
    for shard in range(call.shards):
        now, every = await _lanes(call, shard)
        lanes = [lane for lane in every if lane.queue == name]
        await _add_lanes(call, found, lanes, COUNT_LIMIT)
        numbers = {lane.number for lane in lanes}
        if numbers:
            async for lane_number, _ in _running(call, shard):
                found.running += lane_number in numbers
        handed = await call.run("inspect_name", ("handed", name), shard=shard)
        found.handouts += int(handed or 0)
        there = there or bool(numbers or handed)
    settings = await call.run("inspect_name", ("queue", name), shard=0)
    if not there and not settings:
        return None
    return found.info(name, json.loads(settings or b"{}"), now, COUNT_LIMIT)


@dataclass(slots=True)
class _Queue:
    """What is known of a queue so far."""

    ready: int = 0
    scheduled: int = 0
    running: int = 0
    handouts: int = 0
    oldest_due: dict[Level, int] = field(default_factory=dict[Level, int])
    by_level: dict[Level, int] = field(default_factory=lambda: dict.fromkeys(Level, 0))

    def missing(self, level: Level, most: int) -> tuple[int, int, int] | None:
        """Say how many more are worth counting: due, not due, of this level; None: no more."""
        level_rest = min(most, LEVEL_LIMIT) - self.by_level[level]
        rest = (most - self.ready, most - self.scheduled, level_rest)
        return rest if max(rest) > 0 else None

    def info(self, name: str, settings: dict[str, Any], now: int, most: int) -> QueueInfo:
        oldest = {level: now - since for level, since in self.oldest_due.items() if since <= now}
        return QueueInfo(
            name=name,
            ready=min(most, self.ready),
            scheduled=min(most, self.scheduled),
            running=self.running,
            held=texts.mark_of(settings.get("hold")),
            max_wait_ms=settings.get("max_wait", DEFAULT_MAX_WAIT_MS),
            oldest_due_ms=max(oldest.values(), default=None),
            handouts=self.handouts,
            by_level={level: min(most, count) for level, count in self.by_level.items()},
            oldest_by_level=oldest,
        )


async def _count(call: Call, lanes: list[_Lane], found: dict[str, _Queue], most: int) -> None:
    """Count what waits in lanes, several queues at once and the lanes of each in turn."""
    by_queue: dict[str, list[_Lane]] = {}
    for lane in lanes:
        by_queue.setdefault(lane.queue, []).append(lane)
    names = list(by_queue)
    for start in range(0, len(names), _AT_ONCE):
        await asyncio.gather(
            *(
                _add_lanes(call, found.setdefault(name, _Queue()), by_queue[name], most)
                for name in names[start : start + _AT_ONCE]
            )
        )


async def _add_lanes(call: Call, queue: _Queue, lanes: list[_Lane], most: int) -> None:
    """Count the jobs of a queue, until there are more than anybody wants to know."""
    for lane in lanes:
        for which, count in zip(_TURNS, lane.turns, strict=True):
            start = 0
            while start < count and (missing := queue.missing(lane.level, most)) is not None:
                asked = (lane.number, which, start, *missing)
                looked, ready, waiting = await call.run("inspect_backlog", asked, shard=lane.shard)
                queue.ready += ready
                queue.scheduled += waiting - ready
                queue.by_level[lane.level] += waiting
                # Turns may have gone meanwhile.
                start += looked or count
        if lane.oldest_due is not None:
            known = queue.oldest_due.get(lane.level, lane.oldest_due)
            queue.oldest_due[lane.level] = min(lane.oldest_due, known)


async def tenants(call: Call) -> list[TenantInfo]:
    """List tenants with settings or jobs, the first by name."""
    settings = await _named(call, "tenant", 0)
    found = _Tenants()
    found.add_waiting(dict.fromkeys(settings, 0))
    for shard in range(call.shards):
        lanes = (await _lanes(call, shard))[1]
        for start in range(0, len(lanes), _AT_ONCE):
            some = lanes[start : start + _AT_ONCE]
            await asyncio.gather(*(_add_tenants(call, lane, found) for lane in some))
        async for _, tenant in _running(call, shard):
            found.add_running(tenant)
    infos: list[TenantInfo] = []
    for name, (waiting, running) in found.first().items():
        given = json.loads(settings.get(name, b"{}"))
        infos.append(
            TenantInfo(
                name=name,
                weight=given.get("weight", DEFAULT_WEIGHT),
                held=texts.mark_of(given.get("hold")),
                waiting=min(COUNT_LIMIT, waiting),
                running=running,
            )
        )
    return infos


async def tenant(call: Call, name: str) -> TenantInfo | None:
    """Give one tenant with settings or jobs."""
    if texts.clean(name) != name:
        return None
    waiting = running = 0
    for shard in range(call.shards):
        looked, page = 0, _PAGE
        while page == _PAGE:
            asked = (name, looked + 1)
            page, count = await call.run("inspect_tenant", asked, shard=shard)
            looked, waiting = looked + page, waiting + count
        async for _, whose in _running(call, shard):
            running += whose == name
    text = await call.run("inspect_name", ("tenant", name), shard=0)
    given = json.loads(text or b"{}")
    weight = given.get("weight", DEFAULT_WEIGHT) if text else None
    return tenant_of(name, (weight, given.get("hold"), min(COUNT_LIMIT, waiting), running))


async def _add_tenants(call: Call, lane: _Lane, found: _Tenants) -> None:
    found.add_waiting(await _turns(call, lane))


class _Tenants:
    """Counts of the first tenants by name; of a million others nothing is kept."""

    def __init__(self) -> None:
        self._waiting: dict[str, int] = {}
        self._running: Counter[str] = Counter()
        self._last: str | None = None

    def add_waiting(self, counts: Mapping[str, int]) -> None:
        known, last = self._waiting, self._last
        for name, waiting in counts.items():
            if last is None or name <= last:
                known[name] = known.get(name, 0) + waiting
        self._forget()

    def add_running(self, name: str) -> None:
        if self._last is None or name <= self._last:
            self._running[name] += 1
            self._waiting.setdefault(name, 0)
            self._forget()

    def first(self) -> dict[str, tuple[int, int]]:
        """Give what the first have waiting and running."""
        names = sorted(self._waiting)[:_TENANT_LIMIT]
        return {name: (self._waiting[name], self._running[name]) for name in names}

    def _forget(self) -> None:
        if len(self._waiting) > 2 * _TENANT_LIMIT:
            self._waiting = {name: self._waiting[name] for name in self.first()}
            self._last = max(self._waiting)


# ── what the store is asked for ──────────────────────────────────────────────────────────────


async def _lanes(call: Call, shard: int) -> tuple[int, list[_Lane]]:
    """Read the clock and all lanes of a shard; they are numbered from 1."""
    found: list[_Lane] = []
    while True:
        now, *page = await call.run("inspect_lanes", (len(found) + 1,), shard=shard)
        for number, text, oldest, *turns in page:
            queue, level, _, _ = records.lane_of(text)
            awake, asleep, shut = turns
            due = None if oldest == b"" else int(oldest)
            found.append(_Lane(shard, number, queue, level, due, (awake, asleep, shut)))
        if len(page) < _PAGE:
            return now, found


async def _turns(call: Call, lane: _Lane) -> dict[str, int]:
    """Read tenants of a lane and what they have waiting; one that moves meanwhile counts once."""
    found: dict[str, int] = {}
    for which, count in zip(_TURNS, lane.turns, strict=True):
        for start in range(0, count, _PAGE):
            page = await call.run("inspect_turns", (lane.number, which, start), shard=lane.shard)
            pairs = msgspec.msgpack.decode(page)
            found = dict(zip(pairs[::2], pairs[1::2], strict=True)) | found
    return found


async def _running(call: Call, shard: int) -> AsyncIterator[tuple[int, str]]:
    """Read lane and tenant of each job that runs."""
    known: set[str] = set()
    cursor = b"0"
    while True:
        cursor, page = await call.run("inspect_running", (cursor,), shard=shard)
        rest = msgspec.msgpack.decode(page)
        for job_id, lane, tenant in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
            if job_id not in known:
                known.add(job_id)
                yield lane, tenant
        if cursor == b"0":
            return


async def _named(call: Call, which: str, shard: int) -> dict[str, bytes]:
    """Read a hash that is kept by name."""
    found: dict[str, bytes] = {}
    cursor = b"0"
    while True:
        cursor, *rest = await call.run("inspect_names", (which, cursor), shard=shard)
        found.update(
            (name.decode(), text) for name, text in zip(rest[::2], rest[1::2], strict=True)
        )
        if cursor == b"0":
            return found
