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
from tests.faults.places import ENGINES, SHARDED, Ground
from tests.faults.report import summary
from tests.faults.scenarios import (
    busy,
    clock,
    disk,
    exhaustion,
    failover,
    group,
    load,
    memory,
    network,
    poison,
    redis_failover,
    redis_server,
    rescue,
    schedules,
    schedules_clock,
    schedules_takeover,
    server,
    sigterm,
    stopped,
    throughput,
)
from tests.faults.scenarios.stage import Verdict

LEASE = 3.0
SCENARIOS = (
    "stopped child",
    "stopped worker",
    "stopped supervisor",
    "stopped alone",
    "killed at the start",
    "stopped group",
    "stopped and hanging",
    "rescue",
    "busy",
    "double sigterm",
    "pool exhaustion",
    "poison",
    "poison throughput",
    "load",
    "schedules",
    "schedule takeover",
    "takeover among many",
    "schedule clock",
)
OF_POSTGRES = (
    "server kill",
    "terminated backends",
    "cut replies",
    "hanging server",
    "asynchronous failover",
    "synchronous failover",
    "full disk",
)
OF_REDIS = (
    "sharded load",
    "server kill",
    "slow disk",
    "paused server",
    "busy server",
    "forgotten scripts",
    "cut replies",
    "hanging server",
    "asynchronous failover",
    "demoted server",
    "replicated failover",
    "full memory",
    "stepped clock",
)
OF_ENGINE = {
    "sqlite": SCENARIOS,
    "postgres": SCENARIOS + OF_POSTGRES,
    "redis": SCENARIOS + OF_REDIS,
    "redis-sharded": SCENARIOS + OF_REDIS[1:],
}


def main() -> int:
    chosen = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="lamplighter-faults-"))
    if chosen.mutants:
        survivors = mutants.hunt(folder, engine=chosen.engine, processes=True, say=print)
        shutil.rmtree(folder)
        return 1 if survivors else 0
    seed = chosen.seed if chosen.seed is not None else str(time.time_ns())
    names = chosen.only or OF_ENGINE[chosen.engine]
    print(f"engine {chosen.engine}, seed {seed}, files in {folder}", flush=True)
    verdicts = [_play(name, folder, seed, chosen) for name in names]
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
    brains = schedules.Plan(seconds=chosen.minutes * 60)
    ground = Ground(chosen.engine)
    scenes: dict[str, Callable[[], Verdict]] = {
        "stopped child": lambda: stopped.run_child(place, LEASE, ground=ground),
        "stopped worker": lambda: stopped.run_worker(place, LEASE, ground=ground),
        "stopped supervisor": lambda: stopped.run_supervisor(place, LEASE, ground=ground),
        "stopped alone": lambda: stopped.run_alone(place, LEASE, ground=ground),
        "killed at the start": lambda: stopped.run_killers(place, LEASE, ground=ground),
        "stopped group": lambda: group.run(place, LEASE, ground=ground),
        "stopped and hanging": lambda: group.run_hanging(place, LEASE, ground=ground),
        "rescue": lambda: rescue.run(place, LEASE, rounds=3, ground=ground),
        "busy": lambda: busy.run(place, LEASE, ground=ground),
        "double sigterm": lambda: sigterm.run(place, LEASE, seed, ground=ground),
        "pool exhaustion": lambda: exhaustion.run(place, LEASE, ground=ground),
        "poison": lambda: poison.run(place, seed, venom, ground=ground),
        "poison throughput": lambda: throughput.run(place, seed, many, ground=ground),
        "load": lambda: load.run(place, seed, plan, ground=ground),
        "schedules": lambda: schedules.run(place, seed, brains, ground=ground),
        "schedule takeover": lambda: schedules_takeover.run(place, ground=ground),
        "takeover among many": lambda: schedules_takeover.run_many(place, ground=ground),
        "schedule clock": lambda: schedules_clock.run(place, ground=ground),
    }
    of_servers: dict[str, Callable[[], Verdict]] = {
        "cut replies": lambda: network.run_cut(place, seed, ground=ground),
        "hanging server": lambda: network.run_hang(place, seed, seconds=chosen.hang, ground=ground),
    }
    of_postgres: dict[str, Callable[[], Verdict]] = {
        "server kill": lambda: server.run_kill(place, seed, ground=ground),
        "terminated backends": lambda: server.run_terminated(place, seed, ground=ground),
        "asynchronous failover": lambda: failover.run_asynchronous(place, seed, ground=ground),
        "synchronous failover": lambda: failover.run_synchronous(place, seed, ground=ground),
        "full disk": lambda: disk.run(place, seed, ground=ground),
    }
    of_redis: dict[str, Callable[[], Verdict]] = {
        "sharded load": lambda: load.run(place, seed, plan, ground=SHARDED),
        "server kill": lambda: redis_server.run_kill(place, seed, ground=ground),
        "slow disk": lambda: redis_server.run_slow_disk(place, seed, ground=ground),
        "paused server": lambda: redis_server.run_pause(place, seed, ground=ground),
        "busy server": lambda: redis_server.run_busy(place, seed, ground=ground),
        "forgotten scripts": lambda: redis_server.run_forgetting(place, seed, ground=ground),
        "asynchronous failover": lambda: redis_failover.run_asynchronous(
            place, seed, ground=ground
        ),
        "demoted server": lambda: redis_failover.run_demoted(place, seed, ground=ground),
        "replicated failover": lambda: redis_failover.run_replicated(place, seed, ground=ground),
        "full memory": lambda: memory.run(place, seed, ground=ground),
        "stepped clock": lambda: clock.run(place, seed, ground=ground),
    }
    scenes |= of_servers | (of_postgres if chosen.engine == "postgres" else of_redis)
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
    parser.add_argument(
        "--minutes", type=float, default=2.0, help="length of load, poison, schedules"
    )
    parser.add_argument("--kills", type=int, help="run it until so many kills instead")
    parser.add_argument(
        "--jobs", type=int, default=throughput.JOBS, help="good jobs in each run of the throughput"
    )
    parser.add_argument(
        "--hang", type=float, default=60.0, help="seconds for which the server hangs"
    )
    parser.add_argument("--seed", help="repeats the random choices of an earlier run")
    every = sorted({name for names in OF_ENGINE.values() for name in names})
    parser.add_argument("--only", action="append", choices=every, help="play only this")
    parser.add_argument("--mutants", action="store_true", help="plant known bugs; all are caught")
    chosen = parser.parse_args()
    for name in chosen.only or ():
        if name not in OF_ENGINE[chosen.engine]:
            parser.error(f"`{name}` is not played on {chosen.engine}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
