"""`python -m benchmarks.pages --engine sqlite [--jobs 1000000]`: fill, serve, ask, report."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from benchmarks import cpu
from benchmarks.engines import ENGINES, Store, fresh_store, working_folder
from benchmarks.errors import BenchmarkError
from benchmarks.pages.filling import Filled, fill
from benchmarks.pages.idle import Idle, listen
from benchmarks.pages.visits import Seen, ask, visits
from benchmarks.peers.page import Must, machine
from lamplighter import App

PAGE_MS, SCRAPE_MS, IDLE = 300.0, 50.0, 0.02
_ROOT = Path(__file__).resolve().parent.parent.parent


def main(arguments: list[str]) -> int:
    """Measure, print, and exit with 1 when something that has to be so is not."""
    given = _parser().parse_args(arguments)
    # Ended from outside, the servers still have to go.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    others = cpu.Others()
    try:
        with working_folder(given.folder) as folder, fresh_store(given.engine, folder) as store:
            seen, idle = _measure(store, given)
            size = store.bytes_used()
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    musts = _musts(seen, idle)
    print(f"\n{_head(given, size, others.share())}\n\n{_table(seen)}\n")
    print("\n".join(f"- {must}" for must in musts))
    return int(not all(must.kept for must in musts))


def _measure(store: Store, given: argparse.Namespace) -> tuple[list[Seen], Idle | None]:
    filled = asyncio.run(_fill(store.url, given.jobs))
    store.rest()
    with _serving(store) as (port, pid):
        _tell("asking")
        seen = ask(port, visits(filled), given.rounds)
        if not given.idle:
            return seen, None
        _tell(f"listening for {given.idle:g} s")
        return seen, listen(port, given.idle, lambda: cpu.process_ns(pid), store.server_cpu_ns)


async def _fill(url: str, jobs: int) -> Filled:
    async with App(url) as app:
        return await fill(app, jobs, _tell)


def _tell(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)


@contextlib.contextmanager
def _serving(store: Store) -> Generator[tuple[int, int]]:
    """Start the service, as users do; gives its port and its process."""
    with subprocess.Popen(
        [sys.executable, "-m", "lamplighter", "serve", "--port", "0", "--json"],
        cwd=store.folder,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "LAMPLIGHTER_URL": store.url},
        stdout=subprocess.PIPE,
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout is not None else b""
            if not line:
                raise BenchmarkError("the service does not start")
            yield int(json.loads(line)["url"].rpartition(":")[2]), process.pid
        finally:
            process.terminate()


def _musts(seen: Sequence[Seen], idle: Idle | None) -> list[Must]:
    pages = [each for each in seen if each.visit.page != "scrape"]
    slowest = max(pages, key=lambda each: each.longest_ms)
    scrape = max(each.longest_ms for each in seen if each.visit.page == "scrape")
    made = [
        Must(
            f"the slowest answer to a page, {slowest.visit.path}: {slowest.longest_ms:.0f} ms, at "
            f"most {PAGE_MS:g}",
            slowest.longest_ms <= PAGE_MS,
        ),
        Must(f"a scrape: {scrape:.1f} ms, at most {SCRAPE_MS:g}", scrape <= SCRAPE_MS),
    ]
    if idle is not None:
        told = (
            f"an open console, {idle.seconds:.0f} s: {idle.service:.2%} of a core in the service, "
            f"{idle.store:.2%} in the store's server, {idle.events} events; at most {IDLE:.0%}"
        )
        made.append(Must(told, idle.service + idle.store <= IDLE))
    return made


def _head(given: argparse.Namespace, size: int, others: float | None) -> str:
    busy = "" if others is None else f" Other programs used {others:.0%} of the machine."
    return (
        f"{time.strftime('%Y-%m-%d')}, {machine()}, Python {platform.python_version()}, "
        f"{given.engine}, {given.jobs:,} jobs, {size / 2**20:,.0f} MiB; {given.rounds} times "
        f"each.{busy}"
    )


def _table(seen: Sequence[Seen]) -> str:
    rows = ["| page | request | p50 ms | max ms | items | KiB |", "|---|---|---:|---:|---:|---:|"]
    rows += [
        f"| {each.visit.page} | `{each.visit.path}` | {each.p50_ms:.1f} | {each.longest_ms:.1f} | "
        f"{each.items}{' +' if each.more else ''} | {each.size / 1024:.1f} |"
        for each in seen
    ]
    return "\n".join(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--engine", choices=sorted(ENGINES), default="sqlite")
    parser.add_argument("--jobs", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="of asking everything")
    parser.add_argument("--idle", type=float, default=60.0, metavar="S", help="of listening")
    parser.add_argument("--folder", metavar="DIR", help="where the store is made; a real disk")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
