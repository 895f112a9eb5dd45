"""`python -m benchmarks.peers [--store redis] [--only bullmq,saq] [--jobs 30000] [--write]`.

Measures ours and the peers, store by store: on one server, one at a time, in an empty database
each.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from benchmarks.cpu import Others
from benchmarks.engines import working_folder
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Cost
from benchmarks.pairs import Pair
from benchmarks.peers import page
from benchmarks.peers.adapter import BATCH_SIZE
from benchmarks.peers.arena import Arena
from benchmarks.peers.facts import Facts
from benchmarks.peers.ours import Ours
from benchmarks.peers.postgres_arena import PostgresArena
from benchmarks.peers.redis_arena import RedisArena
from benchmarks.peers.rival import Rival
from benchmarks.peers.roster import ROSTER, STORES

T = TypeVar("T")

BUILD = Path(__file__).resolve().parent.parent.parent / "build"
ARENAS: dict[str, Callable[[Path], Arena]] = {"postgres": PostgresArena, "redis": RedisArena}
PAIRED = "pgqueuer"
"""Who is measured in pairs with ours; it is the first on its store."""

_LEAD = 4.0
"""Seconds between the last submission and the instant at which all jobs are due, or more."""


class Contestant(Protocol):
    """Ours or a peer."""

    facts: Facts

    def submit_bulk(self, jobs: int) -> Cost: ...
    def submit_single(self, jobs: int) -> Cost: ...
    def drain(self, jobs: int) -> Cost: ...
    def latency(self, jobs: int) -> list[float]: ...
    def due(self, jobs: int, ahead: float) -> dict[str, object]: ...
    def memory(self, jobs: int) -> float: ...


def main(arguments: list[str]) -> int:
    """Measure, print, and exit with 1 when something that has to be so is not."""
    given = _parser().parse_args(arguments)
    stores = [store for store in STORES if given.store in (None, store)]
    missing = {name: why for name in given.only if (why := absence(name, given.build))}
    if len(missing) == len(given.only):
        print(
            f"error: none of the peers is installed: {'; '.join(missing.values())}\n"
            "hint: run `make bench-peers`, which installs them, or name the folder by --build",
            file=sys.stderr,
        )
        return 2
    if given.batch is not None:
        os.environ[BATCH_SIZE] = str(given.batch)
    # Ended from outside, the server and the workers still have to go.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        runs = [_measure(store, given, missing) for store in stores]
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    told = page.musts(runs)
    for run in runs:
        print(f"\n{run.server}\n\n{page.table(page.rows(run.found))}\n\n{page.split(run.found)}")
        if run.others is not None:
            print(f"other programs used {run.others:.0%} of this machine's CPU meanwhile")
        if given.write:
            page.write(page.section(run, told if run is runs[-1] else told[:1]), run.store)
    print("\n" + "\n".join(map(str, told)))
    return int(not all(must.kept for must in told))


def absence(peer: str, build: Path) -> str:
    """Say why a peer cannot be measured here; empty if it can."""
    entry = ROSTER[peer]
    if not (build / entry.environment / "bin" / "python").exists():
        return f"{peer}: no Python with it in {build / entry.environment}"
    if entry.node and shutil.which("node") is None:
        return f"{peer}: there is no Node here"
    if entry.node and not (build / entry.node / "node_modules").exists():
        return f"{peer}: it is not in {build / entry.node}"
    return ""


def _measure(store: str, given: argparse.Namespace, missing: dict[str, str]) -> page.Run:
    others = Others()
    names = [name for name in given.only if ROSTER[name].store == store]
    with working_folder(given.folder) as folder:
        arena = ARENAS[store](folder)
        try:
            sides: list[Contestant] = [Ours(arena)]
            for name in names:
                if name in missing:
                    print(f"left out: {missing[name]}", flush=True)
                else:
                    python = given.build / ROSTER[name].environment / "bin" / "python"
                    sides.append(Rival(arena, name, python))
            found = [page.Found(side.facts) for side in sides]
            paired = 2 if PAIRED in names and PAIRED not in missing else 0
            pairs = _pairs(sides[:paired], found, given.pairs, given.jobs)
            for number in range(given.rounds):
                for index in _order(len(sides), number):
                    _one_round(sides[index], found[index], given, paired=index < paired)
            for side, one in zip(sides, found, strict=True):
                _once(side, one, given)
            server = arena.describe()
        finally:
            arena.close()
    return page.Run(
        store=store,
        found=found,
        pairs=pairs,
        pair_with=found[1].facts.name if paired else "",
        server=server,
        others=others.share(),
        absent=[f"left out: {missing[name]}" for name in names if name in missing],
    )


def _pairs(
    sides: Sequence[Contestant], found: Sequence[page.Found], count: int, jobs: int
) -> list[Pair]:
    """Drain with ours and with the peer in turn; who comes first takes turns as well."""
    made: list[Pair] = []
    for number in range(count if sides else 0):
        for index in _order(2, number):
            found[index].drains.append(sides[index].drain(jobs))
        pair = Pair(base=found[1].drains[-1].cpu_us(), here=found[0].drains[-1].cpu_us())
        made.append(pair)
        print(
            f"pair {number + 1}: ours {pair.here:.1f}, {found[1].facts.name} {pair.base:.1f} "
            f"CPU µs per job: {pair.ratio:.3f} ×",
            flush=True,
        )
    return made


def _one_round(
    side: Contestant, found: page.Found, given: argparse.Namespace, *, paired: bool
) -> None:
    """Measure what is measured often."""
    jobs, facts = given.jobs, side.facts
    print(f"{facts.name}:", end="", flush=True)
    bulk, drained = max(100, int(jobs * facts.bulk)), max(100, int(jobs * facts.share))
    found.bulk += _tried(found, "bulk", lambda: side.submit_bulk(bulk))
    found.single += _tried(found, "single", lambda: side.submit_single(max(100, jobs // 15)))
    if not paired:
        found.drains += _tried(found, "drain", lambda: side.drain(drained))
    for samples in _tried(found, "latency", lambda: side.latency(max(50, jobs // 60))):
        found.latency += samples
    print(flush=True)


def _once(side: Contestant, found: page.Found, given: argparse.Namespace) -> None:
    """Measure what takes long, or hardly differs from time to time."""
    facts = side.facts
    print(f"{facts.name}:", end="", flush=True)
    jobs = max(100, int(given.jobs * facts.bulk))
    for used in _tried(found, "memory", lambda: side.memory(jobs)):
        found.memory = used
    due = int(given.due * facts.due)
    rates = [cost.jobs_per_s for cost in (found.bulk or found.single)]
    if due and rates:
        # To submit a job for later takes longer than one for now.
        ahead = _LEAD + 3 * due / min(rates)
        for late in _tried(found, "due", lambda: side.due(due, ahead)):
            found.due = late
    print(flush=True)


def _tried(found: page.Found, what: str, measure: Callable[[], T]) -> list[T]:
    """Measure, or note why that was not possible: the others are measured all the same."""
    began = time.monotonic()
    try:
        made = [measure()]
    except BenchmarkError as error:
        found.failures.append(f"{what}: {error}")
        made = []
    told = f"{time.monotonic() - began:.1f} s" if made else "failed"
    print(f" {what} {told}", end="", flush=True)
    return made


def _order(count: int, number: int) -> Sequence[int]:
    """Forwards and backwards in turn, so that nobody always comes first."""
    return range(count) if number % 2 else range(count - 1, -1, -1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--store", choices=STORES, help="only those on one store")
    parser.add_argument(
        "--only", type=_names, default=list(ROSTER), metavar="PEERS", help=", ".join(ROSTER)
    )
    parser.add_argument("--pairs", type=_count, default=7, metavar="N", help="pairs of drains")
    parser.add_argument("--rounds", type=_count, default=3, metavar="N", help="of all else")
    parser.add_argument("--jobs", type=_count, default=30_000, metavar="N", help="of one drain")
    parser.add_argument("--due", type=_count, default=100_000, metavar="N", help="at one instant")
    parser.add_argument("--batch", type=_count, metavar="N", help="batch_size of pgqueuer")
    parser.add_argument("--write", action="store_true", help="keep the figures in the docs")
    parser.add_argument("--build", type=Path, default=BUILD, help="where the peers are installed")
    parser.add_argument("--folder", metavar="DIR", help="where the server's files are kept")
    return parser


def _names(text: str) -> list[str]:
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if unknown := sorted(set(names) - set(ROSTER)):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {list(ROSTER)}")
    return [name for name in ROSTER if name in names]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"not a number: {text}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
