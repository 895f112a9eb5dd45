"""`python -m tests.faults --engine sqlite --minutes 2 --seed 7`: hurt, wait, judge, report."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.faults import mutants
from tests.faults.driver import Late
from tests.faults.report import summary
from tests.faults.scenarios import (
    busy,
    exhaustion,
    group,
    load,
    poison,
    rescue,
    sigterm,
    stopped,
    throughput,
)
from tests.faults.scenarios.stage import Verdict

ENGINES = ("sqlite",)
LEASE = 3.0
SCENARIOS = (
    "stopped child",
    "stopped worker",
    "stopped supervisor",
    "stopped alone",
    "stopped group",
    "stopped and hanging",
    "rescue",
    "busy",
    "double sigterm",
    "pool exhaustion",
    "poison",
    "poison throughput",
    "load",
)


def main() -> int:
    chosen = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="lamplighter-faults-"))
    if chosen.mutants:
        survivors = mutants.hunt(folder, processes=True, say=print)
        shutil.rmtree(folder)
        return 1 if survivors else 0
    seed = chosen.seed if chosen.seed is not None else str(time.time_ns())
    print(f"engine {chosen.engine}, seed {seed}, files in {folder}", flush=True)
    verdicts = [_play(name, folder, seed, chosen) for name in chosen.only or SCENARIOS]
    print("\n" + summary(verdicts))
    if any(verdict.violations for verdict in verdicts):
        print(f"\nfailed: seed {seed}, the files are kept in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


def _play(name: str, folder: Path, seed: str, chosen: argparse.Namespace) -> Verdict:
    place = folder / name.replace(" ", "-")
    plan = load.Plan(lease=LEASE, seconds=chosen.minutes * 60, kills=chosen.kills)
    venom = poison.Plan(lease=LEASE, seconds=chosen.minutes * 60)
    many = throughput.Plan(jobs=chosen.jobs)
    scenes: dict[str, Callable[[], Verdict]] = {
        "stopped child": lambda: stopped.run_child(place, LEASE),
        "stopped worker": lambda: stopped.run_worker(place, LEASE),
        "stopped supervisor": lambda: stopped.run_supervisor(place, LEASE),
        "stopped alone": lambda: stopped.run_alone(place, LEASE),
        "stopped group": lambda: group.run(place, LEASE),
        "stopped and hanging": lambda: group.run_hanging(place, LEASE),
        "rescue": lambda: rescue.run(place, LEASE, rounds=3),
        "busy": lambda: busy.run(place, LEASE),
        "double sigterm": lambda: sigterm.run(place, LEASE, seed),
        "pool exhaustion": lambda: exhaustion.run(place, LEASE),
        "poison": lambda: poison.run(place, seed, venom),
        "poison throughput": lambda: throughput.run(place, seed, many),
        "load": lambda: load.run(place, seed, plan),
    }
    print(f"playing: {name}", flush=True)
    try:
        return scenes[name]()
    except Exception as error:  # noqa: BLE001 - the others are played all the same
        verdict = Verdict(name, place)
        if isinstance(error, Late):
            verdict.blame("late", str(error))
        else:
            verdict.blame("error", "".join(traceback.format_exception(error)))
        return verdict


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, default="sqlite")
    parser.add_argument("--minutes", type=float, default=2.0, help="length of load and of poison")
    parser.add_argument("--kills", type=int, help="run it until so many kills instead")
    parser.add_argument(
        "--jobs", type=int, default=throughput.JOBS, help="good jobs in each run of the throughput"
    )
    parser.add_argument("--seed", help="repeats the random choices of an earlier run")
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="play only this")
    parser.add_argument("--mutants", action="store_true", help="plant known bugs; all are caught")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
