"""`python -m tests.year --engine sqlite`: let a year pass, and count every bill of it."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence

from benchmarks.engines import ENGINES, fresh_store, working_folder
from tests.year import bills, midnights
from tests.year.ledger import SHOWN
from tests.year.tenants import ZONES, lack_a_midnight

PARTS = ("midnights", "bills")


def main() -> int:
    """Do both parts; 1 if one bill is missing, doubled or at a wrong time."""
    options = _options()
    without = {name: days for name in ZONES if (days := lack_a_midnight(name))}
    print(
        f"{options.tenants:,} tenants in {len(ZONES)} zones, a year from one midnight to the next"
    )
    print("no midnight: " + ", ".join(f"{name} {' '.join(days)}" for name, days in without.items()))
    wrong = False
    for part in options.part or PARTS:
        began = time.monotonic()
        bills_, expected, faults = _midnights(options) if part == "midnights" else _bills(options)
        print(f"{part}: {bills_:,} of {expected:,}, {time.monotonic() - began:.0f} s", flush=True)
        wrong = wrong or bool(faults) or bills_ != expected
        for fault in faults[:SHOWN]:
            print(f"  {fault}")
    print("something is wrong" if wrong else "each exactly once, at its own instant")
    return int(wrong)


def _midnights(options: argparse.Namespace) -> tuple[int, int, Sequence[str]]:
    found = midnights.run(options.tenants, jobs=options.jobs)
    return found.bills, found.expected, found.faults


def _bills(options: argparse.Namespace) -> tuple[int, int, Sequence[str]]:
    with working_folder(options.folder) as folder, fresh_store(options.engine, folder) as store:
        ledger = asyncio.run(bills.run(store.url, options.tenants))
    return ledger.bills, ledger.expected, ledger.faults


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.year", description=__doc__)
    parser.add_argument("--engine", choices=sorted(ENGINES), default="sqlite", help="of the bills")
    parser.add_argument("--tenants", type=int, default=50_000)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part")
    parser.add_argument("--folder", metavar="DIR", help="where the store is made; a real disk")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
