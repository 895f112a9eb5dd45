"""The server dies for good and its standby takes over.

With an asynchronous standby, what it had not received yet is lost: that is what the setting
promises, and no more than that may be lost. So that the window is not empty, the stream to the
standby is stopped for a moment before the server dies.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.checker import Violation
from tests.faults.driver import wait_until
from tests.faults.history import History
from tests.faults.places import POSTGRES, Ground, LinkedPostgres
from tests.faults.scenarios.forgotten import Forgotten
from tests.faults.scenarios.outage import LARGE, Flow, Plan, play
from tests.faults.scenarios.stage import Stage, Verdict
from tests.servers import postgres

_SENDER = "SELECT pid FROM pg_stat_replication WHERE state = 'streaming'"
_GIVEN_OUT = "SELECT FROM lamplighter.job WHERE state = 'running' AND claimed > %s LIMIT 1"
_SYNCHRONOUS = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"


@dataclass(slots=True)
class Window:
    """What was acknowledged between the two may be lost; milliseconds."""

    begun: int = 0
    """All that was acknowledged before is on the standby."""
    ended: int = 0
    """The death of the server."""

    def has(self, at_ms: int) -> bool:
        # An answer on its way is read, and written down, a little after the server's death.
        return self.begun <= at_ms <= self.ended + 1000


def run_asynchronous(
    folder: Path,
    seed: str,
    *,
    behind: float = 1.5,
    plan: Plan = LARGE,
    ground: Ground = POSTGRES,
) -> Verdict:
    """Fail over to a standby that is ``behind`` by so many seconds: what it lacks is lost."""
    case = _Case("asynchronous failover", behind)
    stage, verdict = _play(case, folder, seed, plan, ground)
    told, window = stage.history(), case.window
    lost = forgive(verdict, told, window)
    ages = [(window.ended - at) / 1000 for at in lost.values()]
    verdict.figures.append(
        f"{len(lost)} acknowledged jobs lost, the oldest {max(ages, default=0.0):.2f} s before the "
        f"server died; the standby was {(window.ended - window.begun) / 1000:.2f} s behind"
    )
    assert case.forgotten is not None
    case.forgotten.judge(verdict, lost=lost)
    return verdict


def run_synchronous(
    folder: Path,
    seed: str,
    *,
    behind: float = 1.5,
    plan: Plan = LARGE,
    ground: Ground = POSTGRES,
) -> Verdict:
    """Fail over to a standby for which every commit has waited: nothing is lost."""
    case = _Case("synchronous failover", behind, synchronous=True)
    _, verdict = _play(case, folder, seed, plan, ground)
    verdict.figures.append("no acknowledged job lost" if not verdict.found["I1"] else "jobs lost")
    return verdict


@dataclass(slots=True)
class _Case:
    name: str
    behind: float
    synchronous: bool = False
    window: Window = field(default_factory=Window)
    forgotten: Forgotten | None = None
    """What is made while the standby gets nothing, unless each commit waits for it."""


def _play(
    case: _Case, folder: Path, seed: str, plan: Plan, ground: Ground
) -> tuple[Stage, Verdict]:
    place = LinkedPostgres(folder)
    try:
        standby = place.stack.enter_context(postgres.standby(place.server))
        if case.synchronous:
            _wait_for_each_commit(place.server)
    except BaseException:
        place.stack.close()
        raise
    stage = Stage(case.name, folder, ground, place=place)
    if not case.synchronous:
        case.forgotten = Forgotten(stage)

    def harm(flow: Flow) -> None:
        time.sleep(2.0)
        if case.forgotten is not None:
            case.forgotten.prepare()
        sender = _caught_up(place.server, case.window)
        os.kill(sender, signal.SIGSTOP)
        end = time.monotonic() + case.behind
        if case.forgotten is not None:
            case.forgotten.make()
        time.sleep(max(0.0, end - time.monotonic()))
        _has_given_out(place.server, case.window)
        flow.driver.journal.write("killed", what="server", pid=place.server.pid)
        place.server.kill9()
        case.window.ended = _now_ms()
        standby.promote()
        place.move(standby)
        flow.healed("the promotion")
        if case.forgotten is not None:
            case.forgotten.settle()

    return stage, play(stage, seed, plan, harm)


def _wait_for_each_commit(server: postgres.Server) -> None:
    with server.connect() as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")
        wait_until(
            lambda: connection.execute(_SYNCHRONOUS).fetchone() is not None,
            20,
            "a synchronous standby",
        )


def _has_given_out(server: postgres.Server, window: Window) -> None:
    """Wait until a job runs under a claim of which the standby knows nothing."""
    with server.connect() as connection:
        wait_until(
            lambda: connection.execute(_GIVEN_OUT, (window.begun,)).fetchone() is not None,
            10,
            "a claim that will be forgotten",
        )


def _caught_up(server: postgres.Server, window: Window) -> int:
    """Note from when on something may be lost; gives the process that feeds the standby."""
    with server.connect() as connection:
        window.begun = _now_ms()
        row = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
        place = row[0] if row is not None else None
        has_it = _SENDER + " AND flush_lsn >= %s::pg_lsn"
        found: list[int] = []

        def arrived() -> bool:
            row = connection.execute(has_it.encode(), (place,)).fetchone()
            found.extend(row or ())
            return row is not None

        wait_until(arrived, 20, "the standby to have all until now")
    return found[0]


# ── what may be lost ─────────────────────────────────────────────────────────────────────────


def forgive(verdict: Verdict, told: History, window: Window) -> dict[str, int]:
    """Take back what the window explains; gives the lost jobs, and when each was acknowledged."""
    lost = {
        call.answered_id: call.answered_ms
        for call in told.submissions
        if call.acknowledged and call.answered_id and call.answered_id not in told.endings
    }
    cancelled = {call.job_id for call in told.cancels if window.has(call.answered_ms)}
    first: dict[str, int] = {}
    for run in told.runs:
        first.setdefault(run.job_id, run.started_ms)
    excused: dict[str, Callable[[Violation], bool]] = {
        "I1": lambda one: one.job_id in lost and window.has(lost[one.job_id]),
        "I10": lambda one: one.job_id in cancelled or one.job_id in lost,
        # The claim under which it started for the first time was forgotten.
        "at most once": lambda one: window.has(first[one.job_id]),
    }
    for name, excuse in excused.items():
        before = verdict.found[name]
        verdict.found[name] = [one for one in before if not excuse(one)]
        if name != "I1" and len(before) > len(verdict.found[name]):
            count = len(before) - len(verdict.found[name])
            verdict.figures.append(f"{count} times {name} was forgotten with the window")
    return lost


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
