"""The clock of the machine jumps under coordinators: forward an hour, back, and to another century.

Coordinators and the server, where there is one, are told another time of day, as when somebody
sets the clock of the machine they run on. Clocks that only measure go on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from lamplighter.connect import connect
from lamplighter.model.recurring import CatchUp
from tests.faults import rota, table
from tests.faults.driver import wait_until
from tests.faults.history import boottime, read_lines
from tests.faults.places import SQLITE, Ground, Place, PostgresPlace, RedisPlace
from tests.faults.rota import Duty
from tests.faults.scenarios.schedules import STARTUP, judged, played
from tests.faults.scenarios.stage import Stage, Verdict
from tests.faults.table import Findings
from tests.servers.warp import Warp

HOUR_MS = 3_600_000
FAR = datetime(2200, 1, 1, tzinfo=UTC)
SOON_MS = 2_000
"""After a step, so soon something is fired, and every loop gets on."""
LOOPS = ("fire", "rescue")
"""Loops that look at the time; the others rest for minutes, by a clock that only measures."""
STILL = 3.0
"""Seconds for which is watched that nothing is fired again."""


def run(folder: Path, *, coordinators: int = 2, ground: Ground = SQLITE) -> Verdict:
    """Set the clock forward by an hour, back again, and to the year 2200."""
    folder.mkdir(parents=True, exist_ok=True)
    warp, place = _warped(folder, ground)
    stage = Stage("schedule clock", folder, ground, place=place)
    stage.driver.environment |= warp.environment
    steps = Steps(stage, warp)

    def play() -> None:
        for _ in range(coordinators):
            stage.driver.start_coordinator()
        wait_until(lambda: _count(stage, "coordinating") == coordinators, STARTUP, "coordinators")
        steps.begin("first")
        steps.forward(HOUR_MS, "an hour forward")
        steps.back(0)
        steps.forward(_now_ms(FAR) - _now_ms(), "to the year 2200")

    found, late = played(stage, play)
    verdict = judged(stage, steps.duties, found)
    steps.judge(verdict)
    if late is not None:
        verdict.blame("late", str(late))
    return verdict


class Steps:
    """Schedules, and a clock that is set under them."""

    def __init__(self, stage: Stage, warp: Warp) -> None:
        self.stage, self.warp = stage, warp
        self.duties: list[Duty] = []
        self._said: list[tuple[str, str]] = []
        self._figures: list[str] = []

    def begin(self, name: str) -> None:
        """Put schedules, and wait until all but the slow ones have been fired."""
        duties = _duties(name)
        self.duties += duties
        asyncio.run(self._put(duties))
        quick = {one.id for one in duties if one.step_ms <= SOON_MS}

        def fired() -> bool:
            time.sleep(0.1)
            found = self.read()
            return all(found.runs[name] for name in quick)

        wait_until(fired, 15, "the first occurrence of each schedule")

    def forward(self, ahead_ms: int, what: str) -> None:
        """Set the clock forward, and measure how soon each schedule is fired."""
        before = self._store_ms()
        self.warp.set_clock(ahead_ms)
        after = self._store_ms()
        self._watch_loops(what, STILL)
        found = self.read()
        delays: list[int] = []
        for duty in self.duties:
            # What was fired before the step has an older time.
            runs = [run for run in found.runs[duty.id] if run.at_ms >= after]
            if duty.first_after(before) > after + SOON_MS:
                continue
            if not runs:
                self._said.append(("clock", f"{what}: {duty.id} was not fired at all"))
                continue
            delays.append(min(run.at_ms for run in runs) - after)
        made = sum(run.at_ms >= after for run in found.all_runs() if run.job_id is not None)
        self._figures.append(
            f"{what}: fired {min(delays)} to {max(delays)} ms after the step, {made} jobs in "
            f"{STILL:g} s"
        )
        if max(delays) > SOON_MS:
            self._said.append(("clock", f"{what}: not fired for {max(delays)} ms"))

    def back(self, ahead_ms: int) -> None:
        """Set the clock back: nothing is fired again, and what is new is fired in time."""
        self.warp.set_clock(ahead_ms)
        # A plan that was made before may still be on its way.
        time.sleep(0.5)
        before = self.read()
        self._watch_loops("back", STILL)
        after = self.read()
        again = [name for name, runs in before.runs.items() if len(runs) != len(after.runs[name])]
        if again:
            self._said.append(("clock", f"back: fired again: {again}"))
        self.begin("second")
        waits = [
            run.at_ms - run.due_ms
            for duty in self.duties
            if duty.id.startswith("second")
            for run in self.read().runs[duty.id]
            if run.job_id is not None
        ]
        self._figures.append(
            f"back: {len(before.runs)} schedules at rest, none fired again; new ones "
            f"{max(waits)} ms late at most"
        )
        if max(waits) > SOON_MS:
            self._said.append(("clock", f"back: a new schedule was fired {max(waits)} ms late"))

    def read(self) -> Findings:
        return self.stage.ask(table.read)

    def judge(self, verdict: Verdict) -> None:
        verdict.found.setdefault("clock", [])
        for name, text in self._said:
            verdict.blame(name, text)
        verdict.figures += self._figures

    def _watch_loops(self, what: str, seconds: float) -> None:
        """See that every loop of every coordinator gets on."""
        since = boottime()
        time.sleep(seconds)
        oldest: dict[str, float] = {}
        for line in read_lines(self.stage.driver.journal_path):
            if line["kind"] == "counted" and line["boot"] >= since:
                for name in LOOPS:
                    oldest[name] = max(oldest.get(name, 0.0), line["ages"][name])
        self._figures.append(
            f"{what}: longest rest of a loop "
            + ", ".join(f"{name} {age:.2f} s" for name, age in oldest.items())
        )
        if set(oldest) != set(LOOPS) or max(oldest.values()) * 1000 > SOON_MS:
            self._said.append(("clock", f"{what}: a loop did not get on: {oldest}"))

    async def _put(self, duties: Sequence[Duty]) -> None:
        """Put schedules, by the clock that a file has from whoever opens it."""
        url = self.stage.driver.url
        clock = self._store_ms if url.startswith("sqlite") else None
        engine = connect(url, clock_ms=clock)
        await engine.open()
        try:
            await rota.put(engine, duties, self._store_ms())
        finally:
            await engine.close()

    def _store_ms(self) -> int:
        return _now_ms() + self.warp.ahead_ms


def _duties(name: str) -> list[Duty]:
    """Give schedules of every mode; what they make up for is bounded by their windows."""
    every = [
        rota.plain(f"{name}-all", 1, catch_up=CatchUp.ALL, window_ms=10_000),
        rota.plain(f"{name}-slow", 60, catch_up=CatchUp.ALL),
        rota.plain(f"{name}-latest", 1, catch_up=CatchUp.LATEST),
        rota.plain(f"{name}-none", 1, catch_up=CatchUp.NONE),
        rota.plain(f"{name}-short", 2, catch_up=CatchUp.NONE, window_ms=1_000),
        rota.plain(f"{name}-hourly", 3600, catch_up=CatchUp.LATEST),
    ]
    cron = replace(rota.plain(f"{name}-cron", 2, catch_up=CatchUp.LATEST), cron=True)
    return [*every, cron]


def _warped(folder: Path, ground: Ground) -> tuple[Warp, Place]:
    """Make a store whose clock can be set."""
    if ground.engine == "postgres":
        place = PostgresPlace(folder)
        # Where its own user may go.
        warp = Warp(place.server.home)
        (place.server.home / "warp").chmod(0o644)
        launcher = place.server.launcher
        words = [f"{name}={value}" for name, value in warp.environment.items()]
        place.server.launcher = replace(launcher, prefix=(*launcher.prefix, "env", *words))
        place.server.restart()
        return warp, place
    warp = Warp(folder)
    if ground.engine == "sqlite":
        return warp, ground.place(folder)
    return warp, RedisPlace(folder, options=ground.options, environment=warp.environment)


def _count(stage: Stage, kind: str) -> int:
    return sum(line["kind"] == kind for line in read_lines(stage.driver.journal_path))


def _now_ms(at: datetime | None = None) -> int:
    return time.time_ns() // 1_000_000 if at is None else round(at.timestamp() * 1000)
