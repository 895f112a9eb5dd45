"""Five coordinators, each of which believes to be alone, are stopped, killed and cut off."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from tests.faults import rota, table
from tests.faults.checker import sound_store
from tests.faults.driver import Late, Process, wait_until
from tests.faults.history import boottime, read_lines
from tests.faults.places import SQLITE, Ground, Place, PostgresPlace, RedisPlace, ServedPlace
from tests.faults.rota import Duty
from tests.faults.scenarios.stage import Stage, Verdict
from tests.faults.table import Findings

TICK = 0.02
STARTUP = 40.0
SLEEPERS = 3
"""Coordinators one write of which comes too late for certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is going on, and how much harm is done."""

    coordinators: int = 5
    schedules: int = 300
    seconds: float = 120.0
    lease_ms: int = 3_000
    """How long what was handed out is left to a coordinator that does not write."""
    pauses: float = 0.5
    """Stops a second, at any moment; each lasts for up to two leases."""
    kills: float = 0.15
    """Kills a second, at any moment."""
    harm: float = 0.2
    """Chance of a stop or a death with every large write, before it or amid it."""
    restarts: int = 8
    """How often a server is killed."""
    outage: float = 33.0
    """Seconds for which nobody is there at all."""
    calm: float = 60.0


LARGE = Plan()
SMALL = Plan(
    schedules=132, seconds=7.0, lease_ms=2_200, pauses=0.2, kills=0.2, harm=0.6, restarts=2,
    outage=0.0, calm=30.0,
)  # fmt: skip


def run(
    folder: Path, seed: str = "schedules", plan: Plan = LARGE, *, ground: Ground = SQLITE
) -> Verdict:
    """Let them fire while harm is done, then undisturbed until nothing is due; judge by the table.

    Schedules end with the harm, so that every one of their occurrences has to be there.
    """
    stage = Stage("schedules", folder, ground, place=durable(folder, ground))
    crowd = Crowd(stage, seed, plan)
    duties: list[Duty] = []

    def play() -> None:
        crowd.fill()
        begun_ms = _now_ms()
        duties.extend(rota.mixed(plan.schedules, begun_ms + round(plan.seconds * 1000)))
        stage.ask(lambda engine: rota.put(engine, duties, begun_ms))
        crowd.hurt()
        crowd.calm()

    found, late = played(stage, play)
    verdict = judged(stage, duties, found)
    verdict.figures += crowd.figures()
    if not crowd.stale:
        verdict.blame("stale", "no plan was stale, so nothing was tested")
    if late is not None:
        verdict.blame("late", str(late))
    return verdict


def run_hunt(folder: Path, _lease: float = 0.0, *, ground: Ground = SQLITE) -> Verdict:
    """Play it as planted bugs are hunted: in small, but for longer."""
    return run(folder, "hunt", replace(SMALL, seconds=24.0), ground=ground)


def durable(folder: Path, ground: Ground) -> Place:
    """Make a store that loses nothing it has confirmed, whatever happens to its server."""
    if not ground.engine.startswith("redis"):
        return ground.place(folder)
    options = {**ground.options, "durability": "fsync"}
    return RedisPlace(folder, options=options, settings={"appendfsync": "always"})


class Crowd:
    """Coordinators, and what is done to them and to their store."""

    def __init__(self, stage: Stage, seed: str, plan: Plan) -> None:
        self.stage, self.driver, self.plan, self.seed = stage, stage.driver, plan, seed
        self.restarts = 0
        self._dice = random.Random(f"{seed}-schedules")
        self._ends = 0.0
        self._resume_at: dict[int, float] = {}
        self._sleepers: set[int] = set()
        self._started = 0

    @property
    def stale(self) -> int:
        lines = read_lines(self.driver.journal_path)
        return sum(line["count"] for line in lines if line["kind"] == "stale")

    def fill(self) -> None:
        """Start as many coordinators as are missing."""
        missing = self.plan.coordinators - len(self.driver.living("coordinator"))
        for _ in range(missing):
            self._started += 1
            sleepy = self._started <= SLEEPERS
            one = self.driver.start_coordinator(
                seed=f"{self.seed}-{self._started}",
                sleepy=int(sleepy),
                harm=self.plan.harm,
                until=self._ends or boottime() + self.plan.seconds,
                lease_ms=self.plan.lease_ms,
            )
            if sleepy:
                self._sleepers.add(one.pid)
        if not self._ends:
            wait_until(self._all_there, STARTUP, "the coordinators")
            self._ends = boottime() + self.plan.seconds

    def hurt(self) -> None:
        """Stop, kill and restart at random, until the time is up."""
        plan, dice = self.plan, self._dice
        outage_at = self._ends - plan.seconds * dice.uniform(0.4, 0.6)
        servers = sorted(
            self._ends - dice.uniform(0.1, 0.95) * plan.seconds for _ in range(plan.restarts)
        )
        if not isinstance(self.stage.place, (PostgresPlace, RedisPlace)):
            servers = []
        while boottime() < self._ends:
            self._resume(boottime())
            if plan.outage and boottime() >= outage_at:
                outage_at = self._ends
                self._all_away(plan.outage)
            if servers and boottime() >= servers[0]:
                del servers[0]
                self._restart_server()
            if dice.random() < plan.pauses * TICK:
                self._with_one(lambda one: self.driver.stop([one.found]))
            if dice.random() < plan.kills * TICK:
                self._with_one(lambda one: self.driver.kill("coordinator", one.found))
            self.fill()
            time.sleep(TICK)

    def calm(self) -> None:
        """Let all run undisturbed until nothing is due any more."""
        self._resume(None)
        self.fill()
        # One that was about to harm itself when the time was up.
        time.sleep(0.5)
        self._resume(None)
        self.fill()
        wait_until(self._all_there, STARTUP, "the coordinators")
        wait_until(self._nothing_due, self.plan.calm, "the end of all that is due")

    def figures(self) -> list[str]:
        told = self.stage.history()
        kills = told.kills.get("coordinator", 0)
        return [
            f"{self._started} coordinators, {self.plan.coordinators} at a time",
            f"{len(told.pauses)} pauses, {kills} kills, {self.restarts} restarts of the server",
            f"{self.stale} stale plans refused",
        ]

    def _all_there(self) -> bool:
        lines = read_lines(self.driver.journal_path)
        there = {line["pid"] for line in lines if line["kind"] == "coordinating"}
        return all(one.pid in there for one in self.driver.living("coordinator"))

    def _with_one(self, harm: Callable[[Process], None]) -> None:
        awake = [
            one
            for one in self.driver.living("coordinator")
            if not _is_stopped(one) and one.pid not in self._sleepers
        ]
        if awake:
            harm(self._dice.choice(awake))

    def _resume(self, now: float | None) -> None:
        """Let those go on whose pause is over, whoever has stopped them; without now, all."""
        longest = 2 * self.plan.lease_ms / 1000
        for one in self.driver.living("coordinator"):
            if not _is_stopped(one):
                continue
            if now is not None:
                length = self._dice.uniform(0.1, longest)
                if one.pid in self._sleepers:
                    length = 0.8 * longest
                if now < self._resume_at.setdefault(one.pid, now + length):
                    continue
            self._resume_at.pop(one.pid, None)
            self._sleepers.discard(one.pid)
            self.driver.resume([one.found])

    def _all_away(self, seconds: float) -> None:
        everybody = [one.found for one in self.driver.living("coordinator")]
        self.driver.stop(everybody)
        time.sleep(seconds)
        self.driver.resume(everybody)

    def _restart_server(self) -> None:
        server = cast("ServedPlace", self.stage.place).server
        self.driver.journal.write("killed", what="server", pid=server.pid)
        server.kill9()
        time.sleep(self._dice.uniform(0.0, 1.0))
        server.restart()
        self.restarts += 1

    def _nothing_due(self) -> bool:
        # One may have stopped itself late, on a slow machine.
        self._resume(None)
        time.sleep(0.2)
        return self.stage.ask(table.at_rest)


def played(stage: Stage, play: Callable[[], None]) -> tuple[Findings, Late | None]:
    """Play, and end everything; gives what the store had at last, and what did not come in time."""
    late: Late | None = None
    try:
        try:
            play()
            _leave(stage)
        except Late as error:
            late = error
        # Whoever is left would change it meanwhile.
        for one in stage.driver.living("coordinator"):
            stage.driver.kill("straggler", one.found)
        return stage.ask(table.read), late
    finally:
        stage.end()


def judged(stage: Stage, duties: list[Duty], found: Findings) -> Verdict:
    """Give the verdict about what is in the store."""
    told = stage.history()
    verdict = Verdict(stage.name, stage.folder, kills=told.kills, jobs=len(told.endings))
    verdict.found = {"occurrence": [], "table": [], "store": []}
    looks = table.looks_of(read_lines(stage.driver.journal_path))
    for one in [*table.judge(duties, found, looks), *table.created_once(told), *sound_store(told)]:
        verdict.found[one.invariant].append(one)
    for one in stage.driver.left:
        verdict.blame("orphans", f"nobody has ended the process {one}")
    due = sum(
        duty.count(record.created_at_ms, record.cursor_ms)
        for duty in duties
        if (record := found.records.get(duty.id)) is not None
    )
    fired = sum(run.job_id is not None for run in found.all_runs())
    skips = ", ".join(f"{reason} {count}" for reason, count in sorted(found.skips().items()))
    verdict.figures.append(
        f"{len(duties)} schedules, {due} occurrences due, {fired} fired; skipped: {skips or 'none'}"
    )
    troubles = Counter(
        line["fields"].get("error", "").partition("(")[0]
        for line in read_lines(stage.driver.journal_path)
        if line["kind"] == "trouble"
    )
    verdict.figures.append(f"steps that failed: {sum(troubles.values())}")
    if unreadable := _unreadable(stage):
        verdict.blame("table", f"{unreadable} schedules could not be planned")
    return verdict


def _leave(stage: Stage) -> None:
    """Ask all coordinators to end, and see that they do so in peace."""
    living = stage.driver.living("coordinator")
    for one in living:
        one.popen.send_signal(signal.SIGTERM)
    try:
        wait_until(
            lambda: not any(one.alive() for one in living), 30, "the end of the coordinators"
        )
    except Late as error:
        stopped = sum(_is_stopped(one) for one in living)
        left = sum(one.alive() for one in living)
        raise Late(f"{error}; {left} are left, {stopped} of them stopped by a signal") from error
    codes = [one.popen.returncode for one in living]
    if any(codes):
        raise Late(f"coordinators ended with {codes}")


def _unreadable(stage: Stage) -> int:
    """Count what could not be planned, as far as coordinators lived to tell."""
    lines = read_lines(stage.driver.journal_path)
    return sum(
        {line["pid"]: line["unreadable"] for line in lines if line["kind"] == "counted"}.values()
    )


def _is_stopped(process: Process) -> bool:
    try:
        text = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return text.rpartition(") ")[2].startswith("T")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
