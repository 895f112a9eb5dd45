"""Whether the indexes of a store agree with its records.

Every waiting job stands in exactly its turn, every running one has its lease, every ended one is
where it is found by its end, every schedule that is due some day is where it is found then, and the
numbers agree. Scripts keep it so; this looks whether they did. It reads all jobs and schedules, a
page at a time, and changes nothing. Numbers are compared only at the end:
they agree in a store at rest, while one that is at work may move a job between two pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import msgspec

from lamplighter import runtime
from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.verbs.backlog import names_of

_LANES = 500
_TURNS = 200
_LOOKS = 4
"""How often the same has to be found in a store at work."""
_SUSPECTS = 100
"""Tenants whose numbers are looked at once more."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found."""

    jobs: int
    """Records that were looked at."""
    faults: tuple[str, ...]
    """What does not agree, each in words; none in a sound store."""
    whole: bool = True
    """All jobs were looked at; otherwise the time was over before."""


async def audit(call: Call) -> Audit:
    """Compare all records with all indexes, shard by shard."""
    return await _audit(call, inf)


async def audit_at_work(call: Call, seconds: float) -> Audit:
    """Do the same in a store that may be at work, and for so long at most each time.

    What is wrong with a job or a turn is seen in one moment, and so is certain. Numbers may seem
    wrong because jobs moved meanwhile: what is wrong is told only if each look finds the same.
    """
    found = await _audit(call, runtime.monotonic() + seconds)
    for _ in range(_LOOKS - 1):
        if not found.faults:
            break
        again = await _audit(call, runtime.monotonic() + seconds)
        same = tuple(fault for fault in again.faults if fault in found.faults)
        found = Audit(again.jobs, same, found.whole and again.whole)
    return found


async def _audit(call: Call, end: float) -> Audit:
    jobs, whole = 0, True
    faults: list[str] = []
    for shard in range(call.shards):
        found = await _audit_shard(call, shard, end)
        jobs += found.jobs
        whole = whole and found.whole
        faults += [f"shard {shard}: {fault}" for fault in found.faults]
    return Audit(jobs, tuple(faults), whole)


async def _audit_shard(call: Call, shard: int, end: float) -> Audit:
    first, last, totals = await call.run("inspect_counts", (), shard=shard)
    indexed = _numbers(totals)
    recorded: Counter[str] = Counter()
    faults: list[str] = []
    for page in range(first, last + 1):
        if runtime.monotonic() > end:
            return Audit(recorded["jobs"], tuple(faults), whole=False)
        counts, wrong = await call.run("audit_jobs", (page,), shard=shard)
        recorded.update(_numbers(counts))
        faults += _texts(wrong)
    recorded["leases"] = recorded["running"]
    indexed["in_turn"], wrong_turns = await _audit_lanes(call, shard)
    faults += wrong_turns
    recorded.pop("held", None)
    faults += [
        f"{recorded[name]} jobs are recorded as `{name}`, but {indexed[name]} are indexed"
        for name in sorted(recorded.keys() | indexed.keys())
        if recorded[name] != indexed[name]
    ]
    wrong_schedules, whole = await _audit_schedules(call, shard, end)
    return Audit(recorded["jobs"], (*faults, *wrong_schedules), whole)


async def _audit_schedules(call: Call, shard: int, end: float) -> tuple[list[str], bool]:
    """Look at all schedules; gives what is wrong, and whether there was time for all."""
    found: Counter[str] = Counter()
    faults: list[str] = []
    place = b"-"
    while True:
        last, counts, indexed, wrong = await call.run("audit_schedules", (place,), shard=shard)
        found.update(_numbers(counts))
        faults += _texts(wrong)
        if not last:
            break
        if runtime.monotonic() > end:
            return faults, False
        place = b"(" + last
    return faults + [
        f"{found[name]} `{name}` of schedules were found, but {number} are indexed"
        for name, number in sorted(_numbers(indexed).items())
        if found[name] != number
    ], True


async def _audit_lanes(call: Call, shard: int) -> tuple[int, list[str]]:
    """Look at the turns of all lanes; gives how many jobs stand in them, and what is wrong."""
    jobs: Counter[str] = Counter()
    lane = 1
    faults: list[str] = []
    while True:
        _, *page = await call.run("inspect_lanes", (lane,), shard=shard)
        for number, _, _, *turns in page:
            for which, count in zip(("line", "asleep", "shut"), turns, strict=True):
                for start in range(0, count, _TURNS):
                    said = await call.run("audit_turns", (number, which, start), shard=shard)
                    counts = msgspec.msgpack.decode(said[0])
                    for tenant, waiting in zip(counts[::2], counts[1::2], strict=True):
                        jobs[tenant] += waiting
                    faults += _texts(said[1:])
        if len(page) < _LANES:
            return jobs.total(), faults + await _audit_waits(call, shard, jobs)
        lane += _LANES


async def _audit_waits(call: Call, shard: int, jobs: Counter[str]) -> list[str]:
    """Compare what is counted for each tenant with what stands in its turns.

    Both were read bit by bit, while jobs may have moved: those that seem to differ are looked at
    once more, each in one moment.
    """
    counted: Counter[str] = Counter()
    async for page in names_of(call, "waits", shard):
        counted |= Counter({name: int(text) for name, text in page.items()})
    differ = [name for name in jobs.keys() | counted.keys() if jobs[name] != counted[name]]
    faults: list[str] = []
    for tenant in sorted(differ)[:_SUSPECTS]:
        match await call.run("audit_tenant", (tenant,), shard=shard):
            case [standing, waits] if standing != waits:
                faults.append(
                    f"{standing} jobs of tenant {tenant} stand in turns, but {waits} are counted"
                )
            case _:
                continue
    return faults


def _numbers(said: Sequence[bytes | int]) -> Counter[str]:
    """Read names and numbers that follow each other."""
    pairs = zip(said[::2], said[1::2], strict=True)
    return Counter({bytes(name).decode(): int(number) for name, number in pairs})


def _texts(said: Sequence[bytes]) -> list[str]:
    return [text.decode("utf-8", "replace") for text in said]
