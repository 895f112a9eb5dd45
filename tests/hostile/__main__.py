"""`python -m tests.hostile --seed 7`: ask everything, as everybody, and judge every answer."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.hostile.asking import CALLERS, PROGRAM, QUICK, SHARES, Effort, Verdict, ask
from tests.hostile.scene import Caller


def main() -> int:
    """Let all callers ask; 1 if one answer was not as the document describes it."""
    options = _options()
    if not PROGRAM.exists():
        print(f"error: there is no {PROGRAM}.\nhint: `make hostile` installs it.", file=sys.stderr)
        return 2
    wrong = False
    print(f"seed {options.seed}", flush=True)
    # Who asks for some time would ask less beside others; who asks so often does not.
    at_once = 1 if options.examples is None else os.cpu_count()
    with ThreadPoolExecutor(at_once) as pool:
        for verdict, took in pool.map(lambda one: _ask(options.seed, *one), _chosen(options)):
            wrong = wrong or bool(verdict.fault)
            print(f"{verdict.caller}: {verdict.cases}, {took:.0f} s", flush=True)
            if verdict.fault:
                print(verdict.fault, flush=True)
    print("something is wrong" if wrong else "every answer is one that the document describes")
    return int(wrong)


def _ask(seed: int, caller: Caller, effort: Effort) -> tuple[Verdict, float]:
    """Let one caller ask; gives the seconds too."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lamplighter-hostile-") as folder:
        verdict = ask(Path(folder), caller, seed=seed, effort=effort)
    return verdict, time.monotonic() - began


def _chosen(options: argparse.Namespace) -> Iterator[tuple[Caller, Effort]]:
    """Give who asks, and how much."""
    callers = CALLERS if options.examples is None else QUICK
    chosen = [caller for caller in callers if options.only in {None, caller.name}]
    shares = sum(SHARES.get(caller.name, 1) for caller in chosen)
    for caller in chosen:
        seconds = max(5, round(options.seconds * SHARES.get(caller.name, 1) / shares))
        yield caller, Effort(seconds=seconds, examples=options.examples)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=420, help="of all callers together")
    parser.add_argument(
        "--examples",
        type=int,
        help="ask each route so often, however long that takes, as those who may do nothing or all",
    )
    parser.add_argument("--only", choices=[caller.name for caller in CALLERS], help="this caller")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
