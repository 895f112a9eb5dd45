"""The clock of the server jumps, forward and back, by more than a lease."""

from __future__ import annotations

import time
from bisect import bisect_right
from pathlib import Path

from tests.faults.history import History
from tests.faults.places import REDIS, Ground, RedisPlace
from tests.faults.scenarios.outage import LARGE, Flow, Plan, play
from tests.faults.scenarios.stage import Stage, Verdict
from tests.servers.warp import Warp

BETWEEN_MS = 5_000
"""Longest time between the moment a job is handed out and its start, in a run that goes well."""


class Jumps:
    """How far the server's clock was ahead of ours, and from when on; milliseconds."""

    def __init__(self) -> None:
        self._since: list[int] = [0]
        self._ahead: list[int] = [0]

    def add(self, at_ms: int, ahead_ms: int) -> None:
        self._since.append(at_ms)
        self._ahead.append(ahead_ms)

    def most(self, begun_ms: int, ended_ms: int) -> int:
        """Give how far it was ahead at most between two moments."""
        first = bisect_right(self._since, begun_ms) - 1
        last = bisect_right(self._since, ended_ms)
        return max(self._ahead[max(0, first) : last])

    def adjust(self, told: History) -> None:
        """Bring what processes told by our clock to the store's, never earlier than it was there.

        A run is compared with when it was due; that was decided a little before it started. A
        cancel is compared with hand-outs that may have been at any time before it.
        """
        for run in told.runs:
            run.started_ms += self.most(run.started_ms - BETWEEN_MS, run.started_ms)
        for call in told.cancels:
            call.answered_ms += self.most(0, call.answered_ms)


def run(
    folder: Path,
    seed: str,
    *,
    leases: float = 3.0,
    plan: Plan = LARGE,
    ground: Ground = REDIS,
) -> Verdict:
    """Set the clock forward by some leases, back, back once more, and right again."""
    folder.mkdir(parents=True, exist_ok=True)
    warp, jumps = Warp(folder), Jumps()
    place = RedisPlace(folder, options=ground.options, environment=warp.environment)
    stage = Stage("stepped clock", folder, ground, place=place)
    stage.adjust = jumps.adjust
    step = round(plan.lease * leases * 1000)

    def harm(flow: Flow) -> None:
        for ahead in (step, 0, -step, 0):
            # Long enough to be renewed, and to run when the clock jumps.
            stage.submit("doze", plan.workers, ms=round(plan.lease * 1500))
            time.sleep(plan.lease / 2)
            way = ahead - warp.ahead_ms
            warp.set_clock(ahead)
            jumps.add(time.time_ns() // 1_000_000, ahead)
            flow.healed(f"the clock jumped by {way / 1000:+g} s")

    verdict = play(stage, seed, plan, harm)
    told = stage.history()
    lost = sum(write.abandoned for write in told.writes)
    verdict.figures.append(f"{lost} claims taken from their holders")
    return verdict
