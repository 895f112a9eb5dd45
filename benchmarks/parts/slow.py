"""Does any script keep a Redis server from all others for long, with very many jobs in it?

The server itself keeps count: of all scripts it ran, and of those above a limit. Between them it is
given scripts that only count, about as long as ours take: those that are slow, the machine has made
so. They have no part in the figures of ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.engines import RedisStore, fresh_redis
from benchmarks.errors import BenchmarkError
from benchmarks.figures import rounded
from benchmarks.fleet import QUEUE, fill, opened
from benchmarks.jobs import Program
from benchmarks.report import Line
from benchmarks.scale import Bench
from lamplighter import runtime
from lamplighter.engines.redis import scripts
from lamplighter.model.filters import Filter
from lamplighter.model.lifecycle import settle_all
from lamplighter.model.outcome import Released, Succeeded
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest, Renewal, Retention

LIMIT_MS = 10
"""What takes longer than this is slow."""
SHARE = 1 / 10_000
"""Part of all scripts that may be slow."""

_KEPT = 100_000
_COUNT = "local n = 0 for i = 1, tonumber(ARGV[1]) do n = n + i % 7 end return n"
_COUNTING = "EVAL_RO"
_COUNTS_A_ROUND = 130
"""About as many as a round has scripts of ours."""
_TENANTS = 100
_LEASE_MS = 30_000


async def slow(bench: Bench) -> dict[str, object]:
    """Fill the store, then ask it for everything it can do, in batches as large as it takes.

    One process asks, one thing after the other: what is measured is how long a script takes, not
    how long the server waits for a core that others use.
    """
    scale = bench.scale
    with fresh_redis(bench.folder) as store:
        async with opened(store) as program:
            await fill(program, scale.slow_jobs, tenants=_TENANTS)
            engine = await program.app.engine()
            steps = _steps_of_a_millisecond(store)
            watch(store)
            for _ in range(scale.slow_rounds):
                await _round(program, engine)
                for _ in range(_COUNTS_A_ROUND):
                    store.command(_COUNTING, _COUNT, 0, steps)
            return seen(store) | {"jobs": scale.slow_jobs}


def _steps_of_a_millisecond(store: RedisStore) -> int:
    """Find out how far this server counts in a millisecond."""
    tries, steps = 50, 10_000
    store.command("CONFIG RESETSTAT")
    for _ in range(tries):
        store.command(_COUNTING, _COUNT, 0, steps)
    spent_us = store.info("commandstats")["cmdstat_eval_ro"]["usec"]
    return round(steps * tries * 1000 / max(1, spent_us))


async def _round(program: Program, engine: Engine) -> None:
    """Do everything once: move jobs, operate on them, look at them, tidy up."""
    size = engine.capabilities.max_batch
    await fill(program, size, tenants=_TENANTS)
    jobs, look = engine.jobs, engine.inspector
    request = ClaimRequest(
        nonce=runtime.nonce(),
        worker="bench",
        queues=((QUEUE, size),),
        types=("count",),
        limit=size,
        lease_ms=_LEASE_MS,
    )
    claims = (await jobs.claim(request)).claims
    await jobs.renew([Renewal(claim.job.id, claim.fence) for claim in claims], _LEASE_MS)
    half = len(claims) // 2
    await jobs.settle(settle_all(claims[:half], Succeeded()))
    await jobs.settle(settle_all(claims[half:], Released()))
    page = await look.jobs(Filter(), limit=size)
    ids = [record.job.id for record in page.jobs]
    for operate in (jobs.hold, jobs.unhold, jobs.retry):
        await operate(ids, by="bench", reason="to measure")
    await jobs.cancel(ids[:1], by="bench", reason="to measure")
    await jobs.rescue(size)
    await jobs.prune(Retention(), size)
    await look.job(ids[0])
    await look.explain(ids[0])
    await look.jobs(Filter(tenants=("tenant-1",)), limit=size)
    for overview in (look.counts, look.queues, look.tenants, look.types, look.workers):
        await overview()


def watch(store: RedisStore) -> None:
    """Let the server forget what was, and remember what is slow from now on."""
    store.command("CONFIG SET", "slowlog-log-slower-than", LIMIT_MS * 1000)
    store.command("CONFIG SET", "slowlog-max-len", _KEPT)
    store.command("SLOWLOG RESET")
    store.command("CONFIG RESETSTAT")


def seen(store: RedisStore) -> dict[str, object]:
    """Ask the server what it has seen since."""
    stats = store.info("commandstats")
    ran = [stats[name] for name in ("cmdstat_evalsha", "cmdstat_eval") if name in stats]
    calls, spent_us = sum(one["calls"] for one in ran), sum(one["usec"] for one in ran)
    entries: list[dict[str, Any]] = store.command("SLOWLOG GET", _KEPT)
    slow_ones = [(_command(one), one["duration"] / 1000) for one in entries]
    counted = stats.get("cmdstat_eval_ro", {"calls": 0, "usec": 0})
    return told(calls, slow_ones) | {
        "mean_ms": rounded(spent_us / 1000 / calls),
        "counts": counted["calls"],
        "counts_slow": sum(command.startswith(_COUNTING) for command, _ in slow_ones),
        "counts_mean_ms": rounded(counted["usec"] / 1000 / max(1, counted["calls"])),
    }


def told(calls: int, slow_ones: Sequence[tuple[str, float]]) -> dict[str, object]:
    """Count those that ran a script; each is a command and its milliseconds."""
    if not calls:
        raise BenchmarkError("the server ran no script at all")
    found = [(names, ms) for command, ms in slow_ones if (names := script_of(command))]
    return {
        "scripts": calls,
        "slow": len(found),
        "share": len(found) / calls,
        "slowest_ms": rounded(max((ms for _, ms in found), default=0.0)),
        "by_script": dict(Counter(name for name, _ in found)),
        "limit_ms": LIMIT_MS,
    }


def script_of(command: str) -> str:
    """Name the script that a command runs; empty if it runs none."""
    verb, _, rest = command.partition(" ")
    if verb.upper() not in ("EVALSHA", "EVAL"):
        return ""
    sha = rest.partition(" ")[0]
    return _names().get(sha, "another")


def lines(part: Mapping[str, Any]) -> list[Line]:
    """Give what is shown of it."""
    title = f"scripts over {part['limit_ms']} ms, {part['jobs']:,} jobs in store"
    which = ", ".join(f"{name} {count}" for name, count in part["by_script"].items())
    return [
        Line(title, f"{part['slow']:,} of {part['scripts']:,}"),
        Line("  in 10,000", f"{part['share'] * 1e4:.3g}", part["share"] * 1e4, SHARE * 1e4),
        Line("  slowest", f"{part['slowest_ms']:.3g} ms" + (f" ({which})" if which else "")),
        *_control(part),
    ]


def _control(part: Mapping[str, Any]) -> list[Line]:
    if not part.get("counts"):
        return []
    share = part["counts_slow"] / part["counts"]
    title = (
        f"  of {part['counts']:,} that only count for {part['counts_mean_ms']:.2g} ms, in 10,000"
    )
    return [Line(title, f"{share * 1e4:.3g}")]


def _command(entry: Mapping[str, Any]) -> str:
    said = entry["command"]
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _names() -> dict[str, str]:
    return {scripts.script(name).sha.decode(): name for name in scripts.names()}
