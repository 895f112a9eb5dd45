"""join, beat, leave, lead, workers, types: who is alive, and what they can run.

All of it lives in shard 0.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

from lamplighter.engines.redis.call import Argument, Call
from lamplighter.model.versions import Seat
from lamplighter.port import texts
from lamplighter.port.health import DEAD_MS, at_work, health
from lamplighter.port.values import Beat, NewWorker, TypeInfo, TypeRow, WorkerInfo


async def join(call: Call, worker: NewWorker) -> Beat:
    """Enter a worker and publish its types."""
    info = {
        "host": texts.clean(worker.host),
        "pid": worker.pid,
        "queues": worker.queues,
        "slots": worker.slots,
        "version_slot": worker.version_slot,
    }
    types = [part for known in worker.types for part in _version(known)]
    version, workers = await call.run(
        "join", (texts.clean(worker.id), json.dumps(info), DEAD_MS, *types)
    )
    return Beat(known=True, settings_version=version, workers=workers)


def _version(known: TypeInfo) -> tuple[Argument, Argument]:
    """Return the name of a version of a type, and what is told about it."""
    told = {
        "queue": known.queue,
        "schema": texts.clean(known.schema),
        "options": dict(known.options),
    }
    return f"{known.name}\0{known.hash}", json.dumps(told)


async def beat(call: Call, worker: str, running: int, unstarted: Sequence[str]) -> Beat:
    """Note a sign of life."""
    known, version, workers, quiet = await call.run(
        "beat",
        (texts.clean(worker), running, DEAD_MS, int(call.shards == 1), " ".join(unstarted)),
        urgent=True,
    )
    return Beat(known=known == 1, settings_version=version, workers=workers, overdue=quiet != 1)


async def leave(call: Call, worker: str) -> None:
    """Take a worker out."""
    await call.run("leave", (texts.clean(worker),))


async def lead(call: Call, role: str, holder: str, term_ms: int) -> bool:
    """Take or keep a role."""
    return await call.run("lead", (role, texts.clean(holder), term_ms)) == 1


# ── reads ────────────────────────────────────────────────────────────────────────────────────


async def workers(call: Call) -> list[WorkerInfo]:
    """List workers with their state of health, oldest first."""
    found = {row[0]: _worker(row, now) async for now, row in _workers(call)}
    return sorted(found.values(), key=lambda one: (one.joined_at_ms, one.id))


def _worker(row: Sequence[Any], now: int) -> WorkerInfo:
    worker, beat, joined, running, info, types_ = row
    told = json.loads(info)
    return WorkerInfo(
        id=worker.decode(),
        host=told["host"],
        pid=told["pid"],
        queues=tuple(told["queues"]),
        types=tuple(version.split("\0")[0] for version in _versions(types_)),
        slots=told["slots"],
        running=at_work(int(running), now - int(beat)),
        joined_at_ms=int(joined),
        beat_at_ms=int(beat),
        state=health(now - int(beat)),
        version_slot=told.get("version_slot", 0),
    )


async def types(call: Call) -> list[TypeRow]:
    """List published types, the version that was seen last first."""
    known = {row[0]: (_seat(row), _known(row, now)) async for now, row in _workers(call)}
    seats: dict[str, Counter[tuple[int, tuple[str, ...]]]] = {}
    for seat, versions in known.values():
        for version in versions:
            seats.setdefault(version, Counter())[seat] += 1
    found = {row[0]: row async for row in _types(call)}
    rows = sorted(found.values(), key=_place)
    return [_type(row, seats.get(row[0].decode(), Counter())) for row in rows]


def _seat(row: Sequence[Any]) -> tuple[int, tuple[str, ...]]:
    told = json.loads(row[4])
    return told.get("version_slot", 0), tuple(told["queues"])


def _known(row: Sequence[Any], now: int) -> list[str]:
    """Return the versions that a worker knows, unless it is dead."""
    return _versions(row[5]) if now - int(row[1]) < DEAD_MS else []


def _versions(text: bytes) -> list[str]:
    return text.decode().split("\n") if text else []


def _place(row: Sequence[bytes]) -> tuple[str, int, str]:
    name, digest = row[0].decode().split("\0")
    return name, -int(row[1]), digest


def _type(row: Sequence[bytes], seats: Counter[tuple[int, tuple[str, ...]]]) -> TypeRow:
    name, digest = row[0].decode().split("\0")
    told, settings = json.loads(row[2]), json.loads(row[3] or b"{}")
    return TypeRow(
        name=name,
        queue=told["queue"],
        schema=told["schema"],
        hash=digest,
        options=told["options"],
        held=texts.mark_of(settings.get("hold")),
        live_workers=seats.total(),
        seats=tuple(
            Seat(slot=slot, queues=queues, workers=number)
            for (slot, queues), number in seats.items()
        ),
    )


# ── what the store is asked for ──────────────────────────────────────────────────────────────


async def _workers(call: Call) -> AsyncIterator[tuple[int, Sequence[Any]]]:
    """Read all workers with the time of the look; one that gives a sign of life may come twice."""
    place: tuple[Argument, Argument] = ("-inf", 0)
    while True:
        now, since, skipped, *page = await call.run("inspect_workers", place)
        for row in page:
            if row[4] is not None:
                yield now, row
        if not page:
            return
        place = (since, skipped)


async def _types(call: Call) -> AsyncIterator[Sequence[bytes]]:
    """Read all versions of types; one that is seen meanwhile may come twice."""
    place: tuple[Argument, Argument] = ("-inf", 0)
    while True:
        since, skipped, *page = await call.run("inspect_types", place)
        for row in page:
            if row[2]:
                yield row
        if not page:
            return
        place = (since, skipped)
