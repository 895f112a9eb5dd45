"""`python -m tests.calendar --seed 7`: hold the calendar against the oracle, report, judge."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime
from importlib import resources
from pathlib import Path

from tests.calendar import zones
from tests.calendar.comparison import Case, Difference
from tests.calendar.sweep import PARTS, Result, again, run, tasks

ROOT = Path(__file__).parents[2]
SHOWN = 10


def main() -> int:
    """Sweep, here or with other Pythons; 1 if anything differs."""
    options = _options()
    if options.expression:
        return _once(options)
    if options.python:
        return max(_elsewhere(python, options) for python in options.python)
    started = time.monotonic()
    differences: list[Difference] = []
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"calendar against oracle: seed {options.seed}, Python {version}")
    print(f"zones: {len(zones.names())} names, {len(zones.representatives())} tables since 2010")
    for part in options.part or PARTS:
        result = _sweep(part, options)
        differences += result.differences
    print(f"took {time.monotonic() - started:.0f} s")
    return _judge(differences, options.seed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.calendar", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="for what is drawn (default: 1)")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part")
    parser.add_argument("--count", type=int, help="only so many tasks of each part, drawn")
    parser.add_argument("--python", action="append", help="run with this Python (repeatable)")
    one = parser.add_argument_group("one case, as a difference shows it")
    one.add_argument("--expression")
    one.add_argument("--zone", default="UTC")
    one.add_argument("--gap", default="next_valid")
    one.add_argument("--overlap", default="first")
    one.add_argument("--after", type=datetime.fromisoformat)
    one.add_argument("--until", type=datetime.fromisoformat)
    one.add_argument("--by-seconds", action="store_true")
    one.add_argument("--hash-seed", default="")
    return parser.parse_args()


def _sweep(part: str, options: argparse.Namespace) -> Result:
    started = time.monotonic()
    work = tasks(options.seed, part, count=options.count)

    def progress(done: int, every: int) -> None:
        # A terminal shows each step, a log each tenth.
        if sys.stderr.isatty():
            print(f"\r{part}: {done} of {every}", end="", file=sys.stderr, flush=True)
        elif done * 10 // every != (done - 1) * 10 // every:
            print(f"{part}: {done} of {every}", file=sys.stderr, flush=True)

    result = run(work, options.jobs, progress)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    print(
        f"{part:11} {result.changes:5} changes of clocks, {result.cases:6} cases,"
        f" {result.instants:9} instants, {len(result.differences):5} differences,"
        f" {time.monotonic() - started:4.0f} s",
        flush=True,
    )
    return result


def _judge(differences: list[Difference], seed: int) -> int:
    if not differences:
        print("no difference")
        return 0
    by_expression = Counter(one.case.expression for one in differences)
    print(f"\n{len(differences)} differences in {len(by_expression)} expressions, seed {seed}")
    for expression, count in by_expression.most_common(SHOWN):
        print(f"  {count:6} {expression}")
    # One of each expression first: a single fault must not hide the others.
    firsts = {one.case.expression: one for one in reversed(differences)}
    for one in [*reversed(firsts.values())][:SHOWN]:
        print(f"\n{one}")
    return 1


def _once(options: argparse.Namespace) -> int:
    case = Case(
        expression=options.expression,
        zone=options.zone,
        gap=options.gap,
        overlap=options.overlap,
        after=options.after,
        until=options.until,
        by_seconds=options.by_seconds,
        seed=options.hash_seed,
    )
    return _judge(again(case), options.seed)


def _elsewhere(python: str, options: argparse.Namespace) -> int:
    """Run the same with another Python, which is lent this one's tzdata."""
    program = shutil.which(python)
    if program is None:
        print(f"no {python} here. hint: give a path, or the name of a program on PATH")
        return 1
    arguments = ["--seed", str(options.seed), "--jobs", str(options.jobs)]
    arguments += [word for part in options.part or () for word in ("--part", part)]
    arguments += ["--count", str(options.count)] if options.count else []
    with tempfile.TemporaryDirectory() as folder:
        with resources.as_file(resources.files("tzdata")) as package:
            for found in package.parent.glob("tzdata*"):
                (Path(folder) / found.name).symlink_to(found)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), folder])}
        command = [program, "-m", "tests.calendar", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
