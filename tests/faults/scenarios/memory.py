"""The memory of a Redis server is nearly or wholly used up: new jobs wait, all others go on."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from tests.faults.driver import wait_until
from tests.faults.history import read_lines
from tests.faults.places import REDIS, Ground, RedisPlace
from tests.faults.scenarios.outage import Flow, Plan, play
from tests.faults.scenarios.stage import Stage, Verdict

PLAN = Plan(lease=30.0)
SMALL = Plan(lease=30.0, children=1, rate=10.0, drain=60.0)
"""A lease that outlasts the trouble: what runs meanwhile is settled by whoever runs it."""
NEARLY, WHOLLY = 0.9, 1.02
"""Shares of the memory that are in use."""
PLENTY = str(1 << 32)
"""Bytes. Processes look at the memory only where it has a limit when they come."""
TOLD = "MemoryFull"
NOTICE = 3.0
"""Seconds within which everybody knows: processes look once a second."""


def run(
    folder: Path,
    seed: str,
    *,
    seconds: float = 5.0,
    plan: Plan = PLAN,
    ground: Ground = REDIS,
) -> Verdict:
    """Leave little memory, then none, each for ``seconds``, and give it back."""
    place = RedisPlace(folder, options=ground.options, settings={"maxmemory": PLENTY})
    stage = Stage("full memory", folder, ground, place=place)
    spans: list[tuple[str, int, int]] = []

    def harm(flow: Flow) -> None:
        # They run when there is room, and end when there is none.
        for ms in range(1500, 12_000, 700):
            stage.submit("doze", ms=ms)
        clients = {one.name for one in flow.driver.living("client")}
        for what, share in (("nearly", NEARLY), ("wholly", WHOLLY)):
            place.server.configure(maxmemory=str(round(_used(place) / share)))
            begun = _now_ms()
            wait_until(
                lambda begun=begun: _told(stage, begun).keys() >= clients,
                20,
                f"clients told that the memory is {what} used up",
            )
            time.sleep(max(seconds, NOTICE + 1))
            spans.append((what, begun, _now_ms()))
        place.server.configure(maxmemory=PLENTY)
        flow.healed("there was room again")

    verdict = play(stage, seed, plan, harm)
    _judge(verdict, stage, spans)
    return verdict


def _used(place: RedisPlace) -> int:
    """Bytes that count against the limit."""
    with place.server.client() as client:
        said = client.info("memory")
    return said["used_memory"] - said["mem_not_counted_for_evict"]


def _told(stage: Stage, since_ms: int) -> Counter[str]:
    """Count how often each client was told, in so many words."""
    lines = read_lines(stage.driver.journal_path)
    return Counter(
        line["client"]
        for line in lines
        if line["kind"] == "failed" and line["error"] == TOLD and line["now"] >= since_ms
    )


def _judge(verdict: Verdict, stage: Stage, spans: list[tuple[str, int, int]]) -> None:
    told = stage.history()
    verdict.found.setdefault("full", [])
    others = set(told.failures) - {TOLD}
    if others:
        verdict.blame("full", f"clients were told of something else: {sorted(others)}")
    for what, begun, ended in spans:
        stored = sum(begun + NOTICE * 1000 < one.answered_ms < ended for one in told.submissions)
        settled = sum(
            begun < write.now_ms < ended and write.old_state == "running" for write in told.writes
        )
        verdict.figures.append(
            f"memory {what} used up for {(ended - begun) / 1000:.1f} s: {settled} claims settled, "
            f"clients told {_told(stage, begun).total()} times"
        )
        if stored:
            verdict.blame("full", f"{stored} jobs were stored in memory that was {what} used up")
        if not settled:
            verdict.blame("full", f"nothing was settled in memory that was {what} used up")
    unsettled = sum(
        line["kind"] == "event"
        and line["name"] == "service.error"
        and line["fields"].get("service") == "settle"
        for line in read_lines(stage.driver.journal_path)
    )
    if unsettled:
        verdict.blame("full", f"{unsettled} settles found no memory")
    lost = sum(ending.losses for ending in told.endings.values())
    if lost:
        verdict.blame("full", f"{lost} jobs were lost, though their leases had not ended")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
