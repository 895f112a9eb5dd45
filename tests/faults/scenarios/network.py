"""The way to the server breaks: answers get lost, or nothing moves at all."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from functools import cache
from pathlib import Path

from tests.faults.driver import wait_until
from tests.faults.places import POSTGRES, Ground
from tests.faults.scenarios.outage import LARGE, Flow, Plan, play
from tests.faults.scenarios.stage import Stage, Verdict

CHANCE = 0.15
NEEDED = {"submit", "claim", "settle", "renew"}
"""Verbs of which an answer has to be lost, else little was tested."""
PATIENCE = 20.0
_VERB = re.compile(rb'"lamplighter"\."(\w+)"|^-- (\w+): ', re.MULTILINE)
"""How a statement names its verb, and how the text of a script begins."""
_SCRIPT = re.compile(rb"\bEVALSHA\r\n\$40\r\n([0-9a-f]{40})\r\n")


def run_cut(
    folder: Path,
    seed: str,
    *,
    seconds: float = 30.0,
    chance: float = CHANCE,
    plan: Plan = LARGE,
    ground: Ground = POSTGRES,
) -> Verdict:
    """Cut connections after the server has committed and before its answer arrives."""
    place = ground.linked(folder)
    stage = Stage("cut replies", folder, ground, place=place)

    def cuts() -> Counter[str]:
        return Counter(_verb_of(cut.request) for cut in place.link.cuts)

    def harm(flow: Flow) -> None:
        # Long enough to be renewed now and then.
        stage.submit("doze", plan.workers, ms=int(seconds * 1000))
        place.link.cut_replies(chance=chance, seed=random.Random(seed).getrandbits(32))
        end = time.monotonic() + seconds
        wait_until(
            lambda: time.monotonic() > end and not NEEDED - cuts().keys(),
            seconds + PATIENCE,
            f"lost answers to {sorted(NEEDED)}",
        )
        place.link.heal()
        flow.healed("the last cut")

    verdict = play(stage, seed, plan, harm)
    told = ", ".join(f"{verb} {count}" for verb, count in cuts().most_common())
    verdict.figures.append(f"{cuts().total()} answers lost: {told}")
    return verdict


def run_hang(
    folder: Path,
    seed: str,
    *,
    seconds: float = 60.0,
    plan: Plan = LARGE,
    ground: Ground = POSTGRES,
) -> Verdict:
    """Accept connections and say nothing for a long time.

    The first time what hung goes on where it was, however late; the second time it is closed.
    """
    place = ground.linked(folder)
    stage = Stage("hanging server", folder, ground, place=place)

    def harm(flow: Flow) -> None:
        for close, length in ((False, seconds), (True, seconds / 3)):
            time.sleep(1.0)
            place.link.hang()
            time.sleep(length)
            place.link.heal(close=close)
            what = "was closed" if close else "went on"
            flow.healed(f"what had hung for {length:g} s {what}")

    return play(stage, seed, plan, harm)


def _verb_of(request: bytes) -> str:
    found = _VERB.search(request)
    if found is not None:
        return (found[1] or found[2]).decode()
    script = _SCRIPT.search(request)
    if script is not None:
        return _script_names().get(script[1], "other")
    waits = (b"pg_notify", b"LISTEN", b"BLPOP")
    return "wake-up" if any(word in request for word in waits) else "other"


@cache
def _script_names() -> dict[bytes, str]:
    from lamplighter.engines.redis import scripts

    return {scripts.script(name).sha: name for name in scripts.names()}
