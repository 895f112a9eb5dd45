"""`python -m benchmarks.peers [--pairs 7] [--jobs 30000] [--write]`.

Measures ours and the peers on one PostgreSQL server, one at a time, in an empty database each.
"""

from __future__ import annotations

import argparse
import os
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
from benchmarks.peers.rival import Rival
from benchmarks.peers.side import PEERS

T = TypeVar("T")

PYTHON = Path(__file__).resolve().parent.parent.parent / "build" / "peers" / "bin" / "python"
ROUNDS = 3
"""How often is measured what is not measured in pairs."""


class Contestant(Protocol):
    """Ours or a peer."""

    facts: Facts

    def submit_bulk(self, jobs: int) -> Cost: ...
    def submit_single(self, jobs: int) -> Cost: ...
    def drain(self, jobs: int) -> Cost: ...
    def latency(self, jobs: int) -> list[float]: ...


def main(arguments: list[str]) -> int:
    """Measure, print, and exit with 1 when a job of ours costs as much as one of the first peer."""
    given = _parser().parse_args(arguments)
    if not given.python.exists():
        print(
            f"error: no Python with the peers at {given.python}\n"
            "hint: run `make bench-peers`, which makes that environment, or name one by --python",
            file=sys.stderr,
        )
        return 2
    if given.batch is not None:
        os.environ[BATCH_SIZE] = str(given.batch)
    # Ended from outside, the server and the workers still have to go.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run = _measure(given)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    print(f"\n{run.server}\n\n{page.table(page.rows(run.found))}\n")
    print(f"{page.split(run.found)}\n\n{page.verdict(run)}")
    if run.others is not None:
        print(f"other programs used {run.others:.0%} of this machine's CPU meanwhile")
    if given.write:
        page.write(page.section(run))
    return int(page.median_ratio(run.pairs) >= 1)


def _measure(given: argparse.Namespace) -> page.Run:
    others = Others()
    with working_folder(given.folder) as folder:
        arena = Arena(folder)
        try:
            sides: list[Contestant] = [Ours(arena)]
            sides += [Rival(arena, peer, given.python) for peer in PEERS]
            found = [page.Found(side.facts) for side in sides]
            pairs = _pairs(sides[:2], found, given.pairs, given.jobs)
            for number in range(ROUNDS):
                for index in _order(len(sides), number):
                    _one_round(sides[index], found[index], given.jobs, paired=index < 2)
            server = f"PostgreSQL {arena.version}, " + ", ".join(
                f"{name}={arena.setting(name)}"
                for name in ("fsync", "synchronous_commit", "shared_buffers")
            )
        finally:
            arena.close()
    return page.Run(
        found=found,
        pairs=pairs,
        pair_with=found[1].facts.name,
        server=server,
        others=others.share(),
    )


def _pairs(
    sides: Sequence[Contestant], found: Sequence[page.Found], count: int, jobs: int
) -> list[Pair]:
    """Drain with ours and with the peer in turn; who comes first takes turns as well."""
    made: list[Pair] = []
    for number in range(count):
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


def _one_round(side: Contestant, found: page.Found, jobs: int, *, paired: bool) -> None:
    print(f"{side.facts.name}:", end="", flush=True)
    found.bulk.append(_timed("bulk", lambda: side.submit_bulk(jobs)))
    found.single.append(_timed("single", lambda: side.submit_single(max(100, jobs // 15))))
    if not paired:
        fewer = max(100, int(jobs * side.facts.share))
        found.drains.append(_timed("drain", lambda: side.drain(fewer)))
    found.latency.extend(_timed("latency", lambda: side.latency(max(50, jobs // 60))))
    print(flush=True)


def _timed(what: str, measure: Callable[[], T]) -> T:
    began = time.monotonic()
    found = measure()
    print(f" {what} {time.monotonic() - began:.1f} s", end="", flush=True)
    return found


def _order(count: int, number: int) -> Sequence[int]:
    """Forwards and backwards in turn, so that nobody always comes first."""
    return range(count) if number % 2 else range(count - 1, -1, -1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--pairs", type=_count, default=7, metavar="N", help="pairs of drains")
    parser.add_argument("--jobs", type=_count, default=30_000, metavar="N", help="of one drain")
    parser.add_argument("--batch", type=_count, metavar="N", help="batch_size of pgqueuer")
    parser.add_argument("--write", action="store_true", help="keep the figures in the docs")
    parser.add_argument("--python", type=Path, default=PYTHON, help="where the peers are installed")
    parser.add_argument("--folder", metavar="DIR", help="where the server's log is kept")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"not a number: {text}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
