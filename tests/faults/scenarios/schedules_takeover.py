"""A coordinator is killed with schedules in hand: another one fires them soon."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from lamplighter.model.recurring import CatchUp
from tests.faults import rota, table
from tests.faults.coordinator import ARMED
from tests.faults.driver import wait_until
from tests.faults.history import read_lines
from tests.faults.places import SQLITE, Ground
from tests.faults.rota import Duty
from tests.faults.scenarios.schedules import STARTUP, judged, played
from tests.faults.scenarios.stage import Stage, Verdict
from tests.faults.table import Findings

LATEST_MS = 12_000
"""So late may an occurrence be that a killed coordinator had in hand."""
SCHEDULES = 60
IN_HAND = 10
"""With so many at least it dies."""
MANY = 1_000
"""Workers of a large fleet, in which each looks less often."""


def run(folder: Path, workers: int = 1, *, ground: Ground = SQLITE) -> Verdict:
    """Kill one of two between its look and its write; both believe in so many ``workers``."""
    name = "schedule takeover" if workers == 1 else "takeover among many"
    stage = Stage(name, folder, ground)
    duties = _duties()
    lost: dict[str, int] = {}

    def play() -> None:
        stage.ask(lambda engine: rota.put(engine, duties, time.time_ns() // 1_000_000))
        victim = stage.driver.start_coordinator(workers=workers, dies_with=IN_HAND)
        stage.driver.start_coordinator(workers=workers)
        wait_until(lambda: len(_lines(stage, "coordinating")) == 2, STARTUP, "the coordinators")
        wait_until(lambda: _all_fired(stage), 40, "the first occurrence of each schedule")
        (folder / ARMED).touch()
        wait_until(lambda: not victim.alive(), 40, "the death of a coordinator")
        lost.update(_in_hand(stage, victim.pid))
        wait_until(lambda: _resolved(stage, lost), 20, "the schedules that it had in hand")

    found, late = played(stage, play)
    verdict = judged(stage, duties, found)
    if late is not None:
        verdict.blame("late", str(late))
        return verdict
    _judge_lateness(verdict, found, lost)
    calm = [bool(line["calm"]) for line in _lines(stage, "counted")]
    verdict.figures.append(
        f"{workers} workers, as they believed; in {sum(calm)} of {len(calm)} moments one left it "
        "to others to look"
    )
    return verdict


def run_many(folder: Path, *, ground: Ground = SQLITE) -> Verdict:
    """The same with two that believe in a large fleet, and leave it to the others to look."""
    return run(folder, MANY, ground=ground)


def _duties() -> list[Duty]:
    """Give schedules of three phases, so that every second some are due."""
    modes = (CatchUp.ALL, CatchUp.LATEST, CatchUp.NONE)
    return [
        rota.plain(
            f"duty-{number:03}",
            3,
            phase_ms=number % 3 * 1000,
            catch_up=modes[number // 3 % 3],
        )
        for number in range(SCHEDULES)
    ]


def _judge_lateness(verdict: Verdict, found: Findings, lost: dict[str, int]) -> None:
    """What the dead one had in hand was fired by the other, in time."""
    verdict.found["takeover"] = []
    waits: list[int] = []
    for name, cursor_ms in lost.items():
        # Of those that are made up for by the latest one, the first was skipped with it.
        after = [run for run in found.runs[name] if run.due_ms > cursor_ms]
        waits.append(after[0].at_ms - (after[0].first_ms or after[0].due_ms))
    for run in found.all_runs():
        late = run.at_ms - (run.first_ms or run.due_ms)
        if late > LATEST_MS:
            verdict.blame("takeover", f"{run.schedule} {run.due_ms} came {late / 1000:.2f} s late")
    if not waits or max(waits) < 5_000:
        verdict.blame("takeover", "it had nothing in hand, so nothing was tested")
        return
    verdict.figures.append(
        f"{len(lost)} schedules in hand of the dead, fired {min(waits) / 1000:.2f} to "
        f"{max(waits) / 1000:.2f} s after they were due"
    )


def _in_hand(stage: Stage, pid: int) -> dict[str, int]:
    """Give what a dead coordinator was handed out last, with the cursors."""
    looks = [line for line in _lines(stage, "look") if line["pid"] == pid]
    return dict(looks[-1]["due"])


def _all_fired(stage: Stage) -> bool:
    time.sleep(0.2)
    return all(record.last_due_ms for record in stage.ask(table.read).records.values())


def _resolved(stage: Stage, lost: dict[str, int]) -> bool:
    time.sleep(0.2)
    records = stage.ask(table.read).records
    return all(records[name].cursor_ms > cursor_ms for name, cursor_ms in lost.items())


def _lines(stage: Stage, kind: str) -> list[dict[str, Any]]:
    return [one for one in read_lines(stage.driver.journal_path) if one["kind"] == kind]
