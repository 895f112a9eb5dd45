"""A Redis server does not answer for a while, forgets our scripts, or dies beside a slow disk."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tests.faults.driver import wait_until
from tests.faults.places import REDIS, Ground, RedisPlace
from tests.faults.scenarios import server
from tests.faults.scenarios.failover import Window, forgive
from tests.faults.scenarios.outage import LARGE, Flow, Plan, play
from tests.faults.scenarios.stage import Stage, Verdict
from tests.servers.warp import Warp

MEMORY = Path("/dev/shm")
POSTPONED = 2.0
"""Seconds for which a server keeps changes to itself while the disk is busy, and answers."""
HELD_BACK = 20_000
"""Bytes of changes; some submissions are among so many."""
_DEBUG = {"enable-debug-command": "local"}


def run_kill(
    folder: Path,
    seed: str,
    *,
    rounds: int = 8,
    longest_down: float = 4.0,
    plan: Plan = LARGE,
    ground: Ground = REDIS,
) -> Verdict:
    """Kill the server with -9 at any moment: what it had acknowledged is still there.

    Its data are in memory that outlives it. On a disk, a kill in the very moment of a flush would
    lose what was acknowledged since the flush began: see `run_slow_disk`.
    """
    disk = MEMORY if MEMORY.is_dir() else None
    place = RedisPlace(folder, options=ground.options, disk=disk)
    return server.run_kill(
        folder,
        seed,
        rounds=rounds,
        longest_down=longest_down,
        plan=plan,
        ground=ground,
        place=place,
    )


def run_slow_disk(
    folder: Path,
    seed: str,
    *,
    seconds: float = 1.5,
    plan: Plan = LARGE,
    ground: Ground = REDIS,
) -> Verdict:
    """Kill the server while its disk takes ``seconds`` for a flush.

    With `appendfsync everysec` a server goes on answering during a flush, but writes nothing to
    its log meanwhile, for two seconds at most: that much is lost with its process, though the
    machine lives.
    """
    folder.mkdir(parents=True, exist_ok=True)
    warp = Warp(folder)
    place = RedisPlace(folder, options=ground.options, environment=warp.environment)
    stage = Stage("slow disk", folder, ground, place=place)
    window = Window()

    def harm(flow: Flow) -> None:
        warp.slow_disk(seconds)
        wait_until(lambda: _held_back(place) > HELD_BACK, 30, "changes that are held back")
        flow.driver.journal.write("killed", what="server", pid=place.server.pid)
        place.server.kill9()
        window.ended = _now_ms()
        window.begun = window.ended - round(POSTPONED * 1000)
        warp.slow_disk(0)
        place.server.restart()
        flow.healed("the restart")

    verdict = play(stage, seed, plan, harm)
    lost = forgive(verdict, stage.history(), window)
    ages = [(window.ended - at) / 1000 for at in lost.values()]
    verdict.figures.append(
        f"{len(lost)} acknowledged jobs lost, the oldest {max(ages, default=0.0):.2f} s before the "
        f"server died; a flush took {seconds:g} s"
    )
    verdict.figures.append(f"{verdict.refused} settles under a forgotten claim refused")
    if not lost:
        verdict.blame("stale", "nothing was lost, so nothing was tested")
    return verdict


def run_pause(
    folder: Path,
    seed: str,
    *,
    lengths: Sequence[float] = (2.0, 6.0, 9.0),
    plan: Plan = LARGE,
    ground: Ground = REDIS,
) -> Verdict:
    """Let the server put off all commands for some seconds, also for longer than a lease."""
    place = RedisPlace(folder, options=ground.options)
    stage = Stage("paused server", folder, ground, place=place)

    def harm(flow: Flow) -> None:
        for length in lengths:
            time.sleep(1.0)
            with place.server.client() as client:
                client.client_pause(round(length * 1000), all=True)
            time.sleep(length)
            flow.healed(f"a pause of {length:g} s")

    verdict = play(stage, seed, plan, harm)
    _count_losses(verdict, stage)
    return verdict


def run_busy(
    folder: Path,
    seed: str,
    *,
    lengths: Sequence[float] = (2.0, 6.0, 9.0),
    plan: Plan = LARGE,
    ground: Ground = REDIS,
) -> Verdict:
    """Keep the server busy with one command, also for longer than a lease."""
    place = RedisPlace(folder, options=ground.options, settings=_DEBUG)
    stage = Stage("busy server", folder, ground, place=place)

    def harm(flow: Flow) -> None:
        for length in lengths:
            time.sleep(1.0)
            with place.server.client(socket_timeout=length + 30) as client:
                client.execute_command("DEBUG", "SLEEP", length)
            flow.healed(f"a command of {length:g} s")

    verdict = play(stage, seed, plan, harm)
    _count_losses(verdict, stage)
    return verdict


def run_forgetting(
    folder: Path,
    seed: str,
    *,
    seconds: float = 20.0,
    interval: float = 0.01,
    plan: Plan = LARGE,
    ground: Ground = REDIS,
) -> Verdict:
    """Let the server forget all scripts, again and again."""
    place = RedisPlace(folder, options=ground.options)
    stage = Stage("forgotten scripts", folder, ground, place=place)
    met: list[int] = []

    def harm(flow: Flow) -> None:
        count = 0
        end = time.monotonic() + seconds
        with place.server.client() as client:
            while time.monotonic() < end:
                client.script_flush("SYNC")
                count += 1
                time.sleep(interval)
            missed = client.info("errorstats").get("errorstat_NOSCRIPT", {}).get("count", 0)
        flow.figures.append(f"scripts forgotten {count} times, {missed} calls met that")
        met.append(missed)
        flow.healed("the last time")

    verdict = play(stage, seed, plan, harm)
    if not any(met):
        verdict.blame("resume", "no call met a forgotten script, so nothing was tested")
    if any(stage.history().failures.values()):
        verdict.blame("resume", "calls of clients failed, though the server was there")
    return verdict


def _held_back(place: RedisPlace) -> int:
    """Bytes of changes that the server has acknowledged, and not written to its log yet."""
    with place.server.client() as client:
        said = client.info("persistence")
    return said["aof_buffer_length"] if said["aof_pending_bio_fsync"] else 0


def _count_losses(verdict: Verdict, stage: Stage) -> None:
    lost = sum(write.abandoned for write in stage.history().writes)
    verdict.figures.append(f"{lost} claims taken from their holders")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
