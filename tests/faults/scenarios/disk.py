"""The disk of the server is full for a while: nothing is acknowledged, and nothing is lost."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg

from tests.faults.disks import small_disk
from tests.faults.driver import wait_until
from tests.faults.history import read_lines
from tests.faults.places import POSTGRES, Ground, PostgresPlace
from tests.faults.scenarios.outage import Flow, Plan, play
from tests.faults.scenarios.stage import Stage, Verdict

MEGABYTES = 64
DATABASE = "jobs"
PLAN = Plan(lease=30.0)
SMALL = Plan(lease=30.0, children=1, rate=10.0, drain=60.0)
"""A lease that outlasts the full disk: what runs meanwhile is settled by whoever runs it."""
_FILL = "INSERT INTO filler VALUES (convert_to(repeat('x', %s), 'UTF8'))"
_FILLER = """
CREATE TABLE filler (data bytea);
ALTER TABLE filler ALTER COLUMN data SET STORAGE EXTERNAL;
"""


class SmallPlace(PostgresPlace):
    """A server whose tables are on a small disk; its log of changes is not."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        try:
            disk = self.stack.enter_context(small_disk(self.server, MEGABYTES))
            with self.server.connect() as connection:
                connection.execute(f"CREATE TABLESPACE small LOCATION '{disk}'".encode())
                connection.execute(f"CREATE DATABASE {DATABASE} TABLESPACE small".encode())
        except BaseException:
            self.stack.close()
            raise
        self.url = self.server.url(DATABASE)
        self.auditor.move(self.url)

    def fill(self) -> None:
        """Leave no room for anything more."""
        # Kept until there is room again: a full disk lets nobody in.
        self._filler = self.server.connect(DATABASE)
        self.stack.callback(self._filler.close)
        self._filler.execute(_FILLER)
        for size in (1 << 20, 1 << 13, 1):
            try:
                while True:
                    self._filler.execute(_FILL, (size,))
            except psycopg.errors.DiskFull:
                continue

    def free(self) -> None:
        """Give the room back."""
        self._filler.execute("DROP TABLE filler")


def run(
    folder: Path,
    seed: str,
    *,
    seconds: float = 5.0,
    plan: Plan = PLAN,
    ground: Ground = POSTGRES,
) -> Verdict:
    """Fill the disk, wait until everybody has noticed and ``seconds`` more, and make room."""
    place = SmallPlace(folder)
    stage = Stage("full disk", folder, ground, place=place)
    spans: list[tuple[int, int]] = []

    def harm(flow: Flow) -> None:
        # They run when there is room, and end when there is none.
        for ms in range(1500, 6000, 1000):
            stage.submit("doze", ms=ms)
        place.fill()
        begun = time.time_ns() // 1_000_000
        clients = {one.name for one in flow.driver.living("client")}
        wait_until(lambda: _told(stage) >= clients, 20, "clients told that the disk is full")
        wait_until(lambda: bool(_unsettled(stage)), 20, "a settle that finds no room")
        time.sleep(seconds)
        spans.append((begun, time.time_ns() // 1_000_000))
        place.free()
        flow.healed("there was room again")

    verdict = play(stage, seed, plan, harm)
    _judge(verdict, stage, spans)
    return verdict


def _told(stage: Stage) -> set[str]:
    """Give the clients that were told of the full disk, in so many words."""
    lines = read_lines(stage.driver.journal_path)
    return {
        line["client"]
        for line in lines
        if line["kind"] == "failed" and line["error"] == "StoreFull"
    }


def _unsettled(stage: Stage) -> int:
    """Count the settles that were refused; workers repeat them."""
    return sum(
        line["kind"] == "event"
        and line["name"] == "service.error"
        and line["fields"].get("service") == "settle"
        for line in read_lines(stage.driver.journal_path)
    )


def _judge(verdict: Verdict, stage: Stage, spans: list[tuple[int, int]]) -> None:
    told = stage.history()
    verdict.found.setdefault("full", [])
    found = sum(
        begun < call.answered_ms < ended for call in told.submissions for begun, ended in spans
    )
    verdict.figures.append(f"{found} submissions still found room in pages that were begun")
    others = set(told.failures) - {"StoreFull"}
    if others:
        verdict.blame("full", f"clients were told of something else: {sorted(others)}")
    lost = sum(ending.losses for ending in told.endings.values())
    if lost:
        verdict.blame("full", f"{lost} jobs were lost, though their leases had not ended")
    verdict.figures.append(f"{_unsettled(stage)} settles found no room and were made again")
