"""A Redis server dies for good, or is made a replica, while its replica is behind and takes over.

What the replica had not received is lost: that is what the setting promises, and no more than that
may be lost. So that the window is not empty, the way between the two hangs for a moment before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lamplighter.model.errors import StoreError
from lamplighter.port.conformance.builders import request
from lamplighter.port.store import Engine
from lamplighter.port.values import Recording
from tests.faults.driver import wait_until
from tests.faults.places import REDIS, Ground, LinkedRedis
from tests.faults.scenarios.failover import Window, forgive
from tests.faults.scenarios.forgotten import Forgotten
from tests.faults.scenarios.outage import LARGE, Flow, Plan, play
from tests.faults.scenarios.stage import Stage, Verdict
from tests.proxies.link import Link
from tests.servers import valkey

_MARK = "faults"
"""A key of our own: what was written before it has arrived when it has."""
_PATIENCE = 20.0
SOLE = 40
"""Jobs that may start once."""
LONE = "lone"
"""A queue that no worker asks for."""


@dataclass(slots=True)
class Case:
    """One failover: what is done, and what is seen of it."""

    name: str
    fall: Callable[[Case, Flow, LinkedRedis, valkey.Server], None]
    """What becomes of the server."""
    behind: float
    """Seconds for which the replica gets nothing before the server is gone."""
    options: dict[str, str] = field(default_factory=dict[str, str])
    window: Window = field(default_factory=Window)
    readonly: int = 0
    """Calls that met a server which only reads."""
    begun: str = ""
    """A job that may start once, and whose start was marked while the replica got nothing."""
    forgotten: Forgotten | None = None
    """What is made while the replica gets nothing, unless each write waits for it."""


def run_asynchronous(
    folder: Path,
    seed: str,
    *,
    behind: float = 1.5,
    plan: Plan = LARGE,
    ground: Ground = REDIS,
) -> Verdict:
    """Kill the server for good; clients meet the replica before it is promoted."""
    case = Case("asynchronous failover", _die, behind, ground.options)
    stage, verdict = _play(case, folder, seed, plan, ground)
    _judge_loss(case, stage, verdict)
    return verdict


def run_demoted(
    folder: Path,
    seed: str,
    *,
    behind: float = 1.5,
    plan: Plan = LARGE,
    ground: Ground = REDIS,
) -> Verdict:
    """Promote the replica and make the server a replica of it: connections to it live on."""
    case = Case("demoted server", _demote, behind, ground.options)
    stage, verdict = _play(case, folder, seed, plan, ground)
    _judge_loss(case, stage, verdict)
    return verdict


def run_replicated(
    folder: Path,
    seed: str,
    *,
    behind: float = 1.5,
    plan: Plan = LARGE,
    ground: Ground = REDIS,
) -> Verdict:
    """Do the same where each acknowledged write has waited for the replica: nothing is lost."""
    options = {**ground.options, "durability": "replicated"}
    case = Case("replicated failover", _die_and_return, behind, options)
    stage, verdict = _play(case, folder, seed, plan, ground)
    told = stage.history()
    lost = forgive(verdict, told, Window())
    if case.begun:
        text = "begun though the replica had not confirmed its mark: a failover hands it out again"
        verdict.blame("at most once", text, case.begun)
    late = sum(case.window.has(call.answered_ms) for call in told.submissions if call.acknowledged)
    verdict.figures.append(
        f"{len(lost)} acknowledged jobs lost; {late} were acknowledged while the replica was behind"
    )
    return verdict


def _play(
    case: Case,
    folder: Path,
    seed: str,
    plan: Plan,
    ground: Ground,
) -> tuple[Stage, Verdict]:
    place = LinkedRedis(folder, options=case.options)
    try:
        way = place.stack.enter_context(Link(("127.0.0.1", place.server.port)))
        standby = place.stack.enter_context(
            valkey.replica(place.server, folder, way=(way.host, way.port))
        )
    except BaseException:
        place.stack.close()
        raise
    stage = Stage(case.name, folder, ground, place=place)
    if "durability" not in case.options:
        case.forgotten = Forgotten(stage)

    def harm(flow: Flow) -> None:
        time.sleep(2.0)
        # More than fit at once: some are claimed while the replica gets nothing.
        stage.submit("sole", SOLE, ms=round(case.behind * 500))
        (lone,) = stage.submit("sole", queue=LONE, ms=1)
        if case.forgotten is not None:
            case.forgotten.prepare()
        case.window.begun = _caught_up(place.server)
        way.hang()
        end = time.monotonic() + case.behind
        if stage.ask(lambda engine: _begun(engine, case.behind)):
            case.begun = lone
        if case.forgotten is not None:
            case.forgotten.make()
        time.sleep(max(0.0, end - time.monotonic()))
        case.fall(case, flow, place, standby)
        flow.healed("the promotion")
        if case.forgotten is not None:
            case.forgotten.settle()
        # The claim was forgotten: it waits again, and nobody else asks for it.
        stage.ask(lambda engine: engine.jobs.cancel([lone], by="faults", reason="over"))
        flow.figures.append(f"{case.readonly} calls met a server that only reads")

    verdict = play(stage, seed, plan, harm)
    if not case.readonly:
        verdict.blame("failover", "no call met a server that only reads: that was not tested")
    return stage, verdict


async def _begun(engine: Engine, seconds: float) -> bool:
    """Tell whether the handler of the one job that only we ask for may be called in time."""
    asked = request(LONE, types=("sole",), worker="faults")
    try:
        async with asyncio.timeout(seconds):
            (taken,) = (await engine.jobs.claim(asked)).claims
            mark = Recording(taken.job.id, taken.fence, started=True)
            return (await engine.jobs.record([mark]))[0].held
    except (StoreError, TimeoutError):
        return False


def _die(case: Case, flow: Flow, place: LinkedRedis, standby: valkey.Server) -> None:
    flow.driver.journal.write("killed", what="server", pid=place.server.pid)
    place.server.kill9()
    case.window.ended = _now_ms()
    place.lead_to(standby)
    wait_until(lambda: _refusals(standby) > 0, _PATIENCE, "a call that meets the replica")
    standby.promote()
    place.move(standby)
    case.readonly = _refusals(standby)


def _die_and_return(case: Case, flow: Flow, place: LinkedRedis, standby: valkey.Server) -> None:
    """Let the server come back as the replica without which nothing would be acknowledged."""
    old = place.server
    _die(case, flow, place, standby)
    old.settings["replicaof"] = f"127.0.0.1 {standby.port}"
    old.run()
    wait_until(lambda: valkey.follows(old), _PATIENCE, "a new replica")


def _demote(case: Case, flow: Flow, place: LinkedRedis, standby: valkey.Server) -> None:
    old = place.server
    flow.driver.journal.write("demoted", pid=old.pid)
    standby.promote()
    place.lead_to(standby)
    old.follow("127.0.0.1", standby.port)
    case.window.ended = _now_ms()
    place.move(standby)
    wait_until(lambda: _refusals(old) > 0, _PATIENCE, "a call that meets the old server")
    case.readonly = _refusals(old)


def _caught_up(server: valkey.Server) -> int:
    """Give a moment of which all that was acknowledged before is on the replica; milliseconds."""
    begun = _now_ms()
    with server.client() as client:
        client.set(_MARK, begun)
        assert client.wait(1, round(_PATIENCE * 1000)) == 1, "the replica does not follow"
    return begun


def _refusals(server: valkey.Server) -> int:
    """Count the calls that a server has refused because it is a replica."""
    with server.client() as client:
        said = client.info("errorstats")
    names = ("errorstat_READONLY", "errorstat_UNBLOCKED")
    return sum(said.get(name, {}).get("count", 0) for name in names)


def _judge_loss(case: Case, stage: Stage, verdict: Verdict) -> None:
    window = case.window
    lost = forgive(verdict, stage.history(), window)
    ages = [(window.ended - at) / 1000 for at in lost.values()]
    verdict.figures.append(
        f"{len(lost)} acknowledged jobs lost, the oldest {max(ages, default=0.0):.2f} s before the "
        f"server was gone; the replica was {(window.ended - window.begun) / 1000:.2f} s behind"
    )
    assert case.forgotten is not None
    case.forgotten.judge(verdict, lost=lost)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
