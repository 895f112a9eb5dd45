"""`python -m tests.hostile --seed 7`: ask everything, as everybody, and judge every answer."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.hostile.asking import CALLERS, PROGRAM, SHARES, ask


def main() -> int:
    """Let all callers ask; 1 if one answer was not as the document describes it."""
    options = _options()
    if not PROGRAM.exists():
        print(f"error: there is no {PROGRAM}.\nhint: `make hostile` installs it.", file=sys.stderr)
        return 2
    chosen = [caller for caller in CALLERS if options.only in {None, caller.name}]
    shares = sum(SHARES.get(caller.name, 1) for caller in chosen)
    wrong = False
    print(f"seed {options.seed}", flush=True)
    for caller in chosen:
        began = time.monotonic()
        seconds = max(5, round(options.seconds * SHARES.get(caller.name, 1) / shares))
        with tempfile.TemporaryDirectory(prefix="lamplighter-hostile-") as folder:
            verdict = ask(Path(folder), caller, seed=options.seed, seconds=seconds)
        wrong = wrong or bool(verdict.fault)
        took = time.monotonic() - began
        print(f"{caller.name}: {verdict.cases}, {took:.0f} s", flush=True)
        if verdict.fault:
            print(verdict.fault, flush=True)
    print("something is wrong" if wrong else "every answer is one that the document describes")
    return int(wrong)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=180, help="of all callers together")
    parser.add_argument("--only", choices=[caller.name for caller in CALLERS], help="this caller")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
