"""`python -m benchmarks --engine sqlite [--quick] [--json FILE] [--only drain,latency]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.cpu import Others
from benchmarks.engines import ENGINES, working_folder
from benchmarks.errors import BenchmarkError
from benchmarks.parts import (
    burst,
    delayed,
    drain,
    flood,
    floor,
    growth,
    idle,
    instrumented,
    latency,
    leases,
    memory,
    pinned,
    port,
    schedules_due,
    schedules_missed,
    schedules_put,
    schedules_rest,
    shards,
    slow,
    submit,
)
from benchmarks.scale import FULL, QUICK, Bench

PARTS: Mapping[str, Callable[[Bench], Awaitable[dict[str, object]]]] = {
    "submit_bulk": submit.bulk,
    "submit_single": submit.single,
    "claim": port.claim,
    "settle": port.settle,
    "drain": drain.drain,
    "isolated": drain.isolated,
    "said": drain.said,
    "once": drain.once,
    "instrumented": instrumented.instrumented,
    "latency": latency.latency,
    "delayed": delayed.delayed,
    "burst": burst.burst,
    "growth": growth.growth,
    "tenants": growth.tenants,
    "memory": memory.memory,
    "flood": flood.flood,
    "pinned": pinned.pinned,
    "floor": floor.floor,
    "slow": slow.slow,
    "idle": idle.idle,
    "leases": leases.leases,
    "shards": shards.shards,
    "schedules_put": schedules_put.put,
    "schedules_rest": schedules_rest.rest,
    "schedules_due": schedules_due.due,
    "schedules_missed": schedules_missed.missed,
}
LINES: Mapping[str, Callable[[Mapping[str, Any]], list[report.Line]]] = {
    "instrumented": instrumented.lines,
    "burst": burst.lines,
    "pinned": pinned.lines,
    "floor": floor.lines,
    "slow": slow.lines,
    "idle": idle.lines,
    "leases": leases.lines,
    "shards": shards.lines,
    "schedules_put": schedules_put.lines,
    "schedules_rest": schedules_rest.lines,
    "schedules_due": schedules_due.lines,
    "schedules_missed": schedules_missed.lines,
}
"""What is shown of the parts that say so themselves."""
ONLY: Mapping[str, frozenset[str]] = {
    "pinned": frozenset({"postgres", "sqlite"}),
    **dict.fromkeys(("slow", "idle", "leases", "shards"), frozenset({"redis"})),
}
"""Engines of the parts that do not make sense for all."""


def main(arguments: list[str]) -> int:
    """Measure, print, and say by the exit code whether the numbers can be believed."""
    given = _parser().parse_args(arguments)
    chosen = [name for name in PARTS if given.engine in ONLY.get(name, ENGINES)]
    if given.only is not None:
        if missing := sorted(set(given.only) - set(chosen)):
            print(f"error: not for {given.engine}: {', '.join(missing)}", file=sys.stderr)
            return 2
        chosen = given.only
    others = Others()
    with working_folder(given.folder) as folder:
        bench = Bench(engine=given.engine, folder=folder, scale=QUICK if given.quick else FULL)
        try:
            results = asyncio.run(_measure(bench, chosen))
        except BenchmarkError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except (asyncio.CancelledError, KeyboardInterrupt):
            print("stopped", file=sys.stderr)
            return 130
    found = report.document(
        given.engine,
        quick=given.quick,
        results=results,
        cores=os.cpu_count() or 1,
        others=others.share(),
    )
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    made = report.lines(found)
    for name, lines in LINES.items():
        if name in results:
            made += lines(results[name])
    print(f"\n{report.table(made)}")
    if remark := report.remark(found):
        print(f"\n{remark}")
    if given.profile:
        print(f"\n{report.profile(found)}")
    if any(results.get(part, {}).get("early") for part in ("delayed", "burst", "schedules_due")):
        print("error: jobs started before they were due", file=sys.stderr)
        return 1
    return 0


async def _measure(bench: Bench, chosen: list[str]) -> dict[str, dict[str, object]]:
    task = asyncio.current_task()
    if task is not None:
        # Ended from outside, the workers and folders still have to go.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    results: dict[str, dict[str, object]] = {}
    for name, part in PARTS.items():
        if name in chosen:
            print(f"{name} … ", end="", flush=True)
            began = time.monotonic()
            results[name] = await part(bench)
            print(f"{time.monotonic() - began:.1f} s", flush=True)
    return results


def _new_file(name: str) -> Path:
    """Refuse what cannot be written before anything is measured."""
    path = Path(name)
    if not path.parent.is_dir() or path.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent} to write {name} into")
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--engine", choices=sorted(ENGINES), default="sqlite")
    parser.add_argument("--quick", action="store_true", help="smaller numbers, a short run")
    parser.add_argument("--json", type=_new_file, metavar="FILE", help="keep the numbers")
    parser.add_argument("--only", type=_names, metavar="PARTS", help=", ".join(PARTS))
    parser.add_argument("--profile", action="store_true", help="CPU by process")
    parser.add_argument("--folder", metavar="DIR", help="where stores are made; a real disk")
    return parser


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := sorted(set(names) - set(PARTS)):
        raise argparse.ArgumentTypeError(
            f"unknown: {', '.join(unknown)}; known: {', '.join(PARTS)}"
        )
    return names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
