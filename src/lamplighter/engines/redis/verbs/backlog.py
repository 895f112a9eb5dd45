"""queue, queues, tenant, tenants: what waits and runs, turn by turn, over all shards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

import msgspec

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Call
from lamplighter.model.job import Level
from lamplighter.model.stride import DEFAULT_MAX_WAIT_MS, DEFAULT_WEIGHT
from lamplighter.port import texts
from lamplighter.port.rows import tenant_of
from lamplighter.port.values import (
    COUNT_LIMIT,
    LEVEL_LIMIT,
    TENANT_LIMIT,
    QueueInfo,
    TenantInfo,
)

_PAGE = 500
_LEVELS = tuple(Level)
_TURNS = ("line", "asleep", "shut")


@dataclass(frozen=True, slots=True)
class _Lane:
    """A lane of one shard with the number of its turns: awake, asleep, shut."""

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
        await _count(call, shard, lanes, found, most)
        queue_of = {lane.number: lane.queue for lane in lanes}
        for lane, count in (await _running(call, "lane", shard)).items():
            found.setdefault(queue_of.get(lane, ""), _Queue()).running += count
        for name, text in (await _every(call, "handed", shard)).items():
            found.setdefault(name, _Queue()).handouts += int(text)
    settings = await _every(call, "queue", 0)
    infos: list[QueueInfo] = []
    for name in sorted(found.keys() | settings.keys()):
        given = json.loads(settings.get(name, b"{}"))
        info = found.get(name, _Queue()).info(name, given, now, most)
        if info.busy or not given.get("removed"):
            infos.append(info)
    return infos


async def queue(call: Call, name: str) -> QueueInfo | None:
    """Return one queue with what waits and runs in it."""
    if texts.clean(name) != name:
        return None
    there, info = await one_queue(call, name)
    return info if there and (info.busy or not await _is_removed(call, name)) else None


async def _is_removed(call: Call, name: str) -> bool:
    settings = await call.run("inspect_name", ("queue", name), shard=0)
    return bool(json.loads(settings or b"{}").get("removed"))


async def lanes_of(call: Call, shard: int, name: str) -> set[int]:
    """Return the numbers of a queue's lanes in a shard."""
    _, every = await _lanes(call, shard)
    return {lane.number for lane in every if lane.queue == name}


async def one_queue(call: Call, name: str) -> tuple[bool, QueueInfo]:
    """Return whether a queue is there, removed or not, and what waits and runs in it."""
    found, now, there = _Queue(), 0, False
    for shard in range(call.shards):
        now, every = await _lanes(call, shard)
        lanes = [lane for lane in every if lane.queue == name]
        await _count(call, shard, lanes, {name: found}, COUNT_LIMIT)
        numbers = {lane.number for lane in lanes}
        if numbers:
            running = await _running(call, "lane", shard)
            found.running += sum(running[number] for number in numbers)
        handed = await call.run("inspect_name", ("handed", name), shard=shard)
        found.handouts += int(handed or 0)
        there = there or bool(numbers or handed)
    settings = await call.run("inspect_name", ("queue", name), shard=0)
    info = found.info(name, json.loads(settings or b"{}"), now, COUNT_LIMIT)
    return bool(there or settings), info


@dataclass(slots=True)
class _Queue:
    """What is known of a queue so far."""

    ready: int = 0
    scheduled: int = 0
    running: int = 0
    handouts: int = 0
    oldest_due: dict[Level, int] = field(default_factory=dict[Level, int])
    by_level: dict[Level, int] = field(default_factory=lambda: dict.fromkeys(Level, 0))

    def missing(self, most: int) -> tuple[int, int, list[int]]:
        """Say how many more are worth counting: due, not due, of each level."""
        levels = [min(most, LEVEL_LIMIT) - self.by_level[level] for level in _LEVELS]
        return most - self.ready, most - self.scheduled, levels

    def wants(self, level: Level, most: int) -> bool:
        """Tell whether it is worth to count jobs of a level."""
        due, later, levels = self.missing(most)
        return max(due, later, levels[_LEVELS.index(level)]) > 0

    def add(self, level: Level, ready: int, waiting: int) -> None:
        """Add jobs of a level, so many of them due."""
        self.ready += ready
        self.scheduled += waiting - ready
        self.by_level[level] += waiting

    def has_due(self, lane: _Lane) -> None:
        """Learn since when the oldest job of a lane is due."""
        if lane.oldest_due is not None:
            known = self.oldest_due.get(lane.level, lane.oldest_due)
            self.oldest_due[lane.level] = min(lane.oldest_due, known)

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


@dataclass(slots=True)
class _Part:
    """Turns of a lane that are awake, asleep or shut, as far as they have not been looked at."""

    lane: _Lane
    which: str
    count: int
    start: int = 0


async def _count(
    call: Call, shard: int, lanes: list[_Lane], found: dict[str, _Queue], most: int
) -> None:
    """Count the jobs of queues, until there are more than anybody wants to know."""
    parts = [
        _Part(lane, which, count)
        for lane in sorted(lanes, key=lambda lane: lane.queue)
        for which, count in zip(_TURNS, lane.turns, strict=True)
    ]
    for lane in lanes:
        found.setdefault(lane.queue, _Queue()).has_due(lane)
    while parts := [
        part
        for part in parts
        if part.start < part.count and found[part.lane.queue].wants(part.lane.level, most)
    ]:
        asked = [
            (*found[name].missing(most), [_asked(part) for part in group])
            for name, group in groupby(parts, key=lambda part: part.lane.queue)
        ]
        packed = msgspec.msgpack.encode(asked)
        said = msgspec.msgpack.decode(await call.run("inspect_backlog", (packed,), shard=shard))
        for part, (looked, ready, waiting) in zip(parts, said, strict=False):
            found[part.lane.queue].add(part.lane.level, ready, waiting)
            # Turns may have gone meanwhile.
            part.start += looked or part.count


def _asked(part: _Part) -> tuple[int, int, str, int]:
    return part.lane.number, _LEVELS.index(part.lane.level) + 1, part.which, part.start


async def tenants(call: Call) -> list[TenantInfo]:
    """List tenants with settings or jobs, the first by name."""
    settings = await _every(call, "tenant", 0)
    waiting: Counter[str] = Counter()
    running: Counter[str] = Counter()
    for shard in range(call.shards):
        waiting.update(await _first_waiting(call, shard))
        running.update(await _running(call, "tenant", shard))
    infos: list[TenantInfo] = []
    for name in sorted(settings.keys() | waiting.keys() | running.keys())[:TENANT_LIMIT]:
        given = json.loads(settings.get(name, b"{}"))
        infos.append(
            TenantInfo(
                name=name,
                weight=given.get("weight", DEFAULT_WEIGHT),
                held=texts.mark_of(given.get("hold")),
                waiting=min(COUNT_LIMIT, waiting[name]),
                running=running[name],
            )
        )
    return infos


async def tenant(call: Call, name: str) -> TenantInfo | None:
    """Return one tenant with settings or jobs."""
    if texts.clean(name) != name:
        return None
    waiting = running = 0
    for shard in range(call.shards):
        waiting += int(await call.run("inspect_name", ("waits", name), shard=shard) or 0)
        running += (await _running(call, "tenant", shard))[name]
    text = await call.run("inspect_name", ("tenant", name), shard=0)
    given = json.loads(text or b"{}")
    weight = given.get("weight", DEFAULT_WEIGHT) if text else None
    return tenant_of(name, (weight, given.get("hold"), min(COUNT_LIMIT, waiting), running))


async def _first_waiting(call: Call, shard: int) -> dict[str, int]:
    """Read what the first tenants of a shard have waiting; of a million others nothing is kept."""
    found: dict[str, int] = {}
    async for page in names_of(call, "waits", shard):
        found.update((name, int(count)) for name, count in page.items())
        if len(found) > 2 * TENANT_LIMIT:
            found = dict(sorted(found.items())[:TENANT_LIMIT])
    return found


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
            found.append(_Lane(number, queue, level, due, (awake, asleep, shut)))
        if len(page) < _PAGE:
            return now, found


async def _running(call: Call, what: Literal["lane", "tenant"], shard: int) -> Counter[Any]:
    """Count the jobs that run, by the numbers of their lanes or by their tenants."""
    found: dict[str, Any] = {}
    cursor = b"0"
    while True:
        cursor, page = await call.run("inspect_running", (what, cursor), shard=shard)
        rest = msgspec.msgpack.decode(page)
        found.update(zip(rest[::2], rest[1::2], strict=True))
        if cursor == b"0":
            return Counter(found.values())


async def names_of(call: Call, which: str, shard: int) -> AsyncIterator[dict[str, bytes]]:
    """Yield what is kept by name in a hash, some names at a time; one may come twice."""
    cursor = b"0"
    while True:
        cursor, *rest = await call.run("inspect_names", (which, cursor), shard=shard)
        yield {name.decode(): text for name, text in zip(rest[::2], rest[1::2], strict=True)}
        if cursor == b"0":
            return


async def _every(call: Call, which: str, shard: int) -> dict[str, bytes]:
    """Return all of it at once."""
    found: dict[str, bytes] = {}
    async for page in names_of(call, which, shard):
        found.update(page)
    return found
