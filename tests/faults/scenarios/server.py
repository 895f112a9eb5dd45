"""The server is killed and started again, or the connections to it are ended one by one."""

from __future__ import annotations

import random
import time
from pathlib import Path

from tests.faults.places import POSTGRES, Ground, PostgresPlace, ServedPlace
from tests.faults.scenarios.outage import LARGE, Flow, Plan, play
from tests.faults.scenarios.stage import Stage, Verdict

OURS = "lamplighter"
"""Under this name workers and clients connect."""
_VICTIMS = "SELECT pid FROM pg_stat_activity WHERE application_name = %s ORDER BY pid"


def run_kill(
    folder: Path,
    seed: str,
    *,
    rounds: int = 8,
    longest_down: float = 4.0,
    plan: Plan = LARGE,
    ground: Ground = POSTGRES,
    place: ServedPlace | None = None,
) -> Verdict:
    """Kill the server with -9 at any moment, start it again a little later, several times."""
    place = place or ground.served(folder)
    dice = random.Random(f"{seed}-server")
    stage = Stage("server kill", folder, ground, place=place)

    def harm(flow: Flow) -> None:
        for number in range(rounds):
            time.sleep(dice.uniform(0.2, 2.0))
            flow.driver.journal.write("killed", what="server", pid=place.server.pid)
            place.server.kill9()
            time.sleep(dice.uniform(0.0, longest_down))
            place.server.restart()
            flow.healed(f"restart {number + 1}")

    return play(stage, seed, plan, harm)


def run_terminated(
    folder: Path,
    seed: str,
    *,
    seconds: float = 20.0,
    rate: float = 8.0,
    plan: Plan = LARGE,
    ground: Ground = POSTGRES,
) -> Verdict:
    """End connections at random for some seconds, from the server's side."""
    place = PostgresPlace(folder)
    dice = random.Random(f"{seed}-terminated")
    stage = Stage("terminated backends", folder, ground, place=place)

    def harm(flow: Flow) -> None:
        count = 0
        end = time.monotonic() + seconds
        with place.server.connect() as connection:
            while time.monotonic() < end:
                pids = [row[0] for row in connection.execute(_VICTIMS, (OURS,))]
                for pid in dice.sample(pids, min(len(pids), dice.choice((1, 1, 1, 2, 4)))):
                    connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
                    count += 1
                time.sleep(dice.expovariate(rate))
        flow.figures.append(f"{count} connections ended in {seconds:g} s")
        flow.healed("the last of them")

    return play(stage, seed, plan, harm)
