"""Whether the indexes of a store agree with its records.

Every waiting job stands in exactly its turn, every running one has its lease, every ended one is
where it is found by its end, and the numbers agree. Scripts keep it so; this looks whether they
did. It reads all jobs, a page at a time, and changes nothing. Numbers are compared only at the end:
they agree in a store at rest, while one that is at work may move a job between two pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lamplighter.engines.redis.call import Call

_LANES = 500
_TURNS = 200


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found."""

    jobs: int
    """Records that were looked at."""
    faults: tuple[str, ...]
    """What does not agree, each in words; none in a sound store."""


async def audit(call: Call) -> Audit:
    """Compare all records with all indexes, shard by shard."""
    jobs = 0
    faults: list[str] = []
    for shard in range(call.shards):
        count, found = await _audit_shard(call, shard)
        jobs += count
        faults += [f"shard {shard}: {fault}" for fault in found]
    return Audit(jobs, tuple(faults))


async def _audit_shard(call: Call, shard: int) -> tuple[int, list[str]]:
    first, last, named = await call.run("audit_totals", (), shard=shard)
    indexed = _numbers(named)
    recorded: Counter[str] = Counter()
    faults: list[str] = []
    for page in range(first, last + 1):
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
    return recorded["jobs"], faults


async def _audit_lanes(call: Call, shard: int) -> tuple[int, list[str]]:
    """Look at the turns of all lanes; gives how many jobs stand in them, and what is wrong."""
    jobs, lane = 0, 1
    faults: list[str] = []
    while True:
        _, *page = await call.run("inspect_lanes", (lane,), shard=shard)
        for number, _, _, *turns in page:
            for which, count in zip(("line", "asleep", "shut"), turns, strict=True):
                for start in range(0, count, _TURNS):
                    said = await call.run("audit_turns", (number, which, start), shard=shard)
                    jobs += said[0]
                    faults += _texts(said[1:])
        if len(page) < _LANES:
            return jobs, faults
        lane += _LANES


def _numbers(named: Sequence[bytes | int]) -> Counter[str]:
    """Read names and numbers that follow each other."""
    pairs = zip(named[::2], named[1::2], strict=True)
    return Counter({bytes(name).decode(): int(number) for name, number in pairs})


def _texts(said: Sequence[bytes]) -> list[str]:
    return [text.decode("utf-8", "replace") for text in said]
