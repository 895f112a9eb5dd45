"""A claim and a submission of our own, made while the standby gets nothing.

Whatever workers and clients happened to do in that time, a failover forgets these two: so there is
always something lost, and a settle that must be refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from lamplighter.model.job import Claim
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Succeeded
from lamplighter.port.conformance.builders import request
from lamplighter.port.store import Engine
from lamplighter.port.values import SettleAnswer
from tests.faults.scenarios.stage import Stage, Verdict

QUEUE = "forgotten"
"""A queue that no worker asks for."""
_TYPE = "doze"


@dataclass(slots=True)
class Forgotten:
    """What is done before, while and after the standby gets nothing, in this order."""

    stage: Stage
    lost: str = ""
    """A job that the standby never hears of."""
    _kept: str = ""
    _claim: Claim | None = None
    _answer: SettleAnswer | None = None

    def prepare(self) -> None:
        """Submit a job that the standby is to have."""
        (self._kept,) = self.stage.submit(_TYPE, queue=QUEUE, ms=1)

    def make(self) -> None:
        """Claim that job and submit another; the standby gets nothing now."""
        asked = request(QUEUE, types=(_TYPE,), worker="faults")
        (self._claim,) = self.stage.ask(lambda engine: engine.jobs.claim(asked)).claims
        (self.lost,) = self.stage.submit(_TYPE, queue=QUEUE, ms=1)

    def settle(self) -> None:
        """Settle under the claim, of which the new server knows nothing, and cancel the job."""
        claim = self._claim
        assert claim is not None, "there is no claim that could have been forgotten"

        async def late(engine: Engine) -> SettleAnswer:
            (settled,) = await engine.jobs.settle([settle(claim, Succeeded())])
            # It waits again, and nobody asks for it.
            await engine.jobs.cancel([self._kept], by="faults", reason="over")
            return settled.answer

        self._answer = self.stage.ask(late)

    def judge(self, verdict: Verdict, *, lost: dict[str, int]) -> None:
        """Blame a failover that has kept what it could not have."""
        verdict.found.setdefault("stale", [])
        if self._answer is not SettleAnswer.LOST:
            text = f"a settle under a forgotten claim was answered {self._answer}"
            verdict.blame("stale", text, self._kept)
        if self.lost not in lost:
            text = "submitted while the standby got nothing, and not lost: nothing was tested"
            verdict.blame("stale", text, self.lost)
        verdict.figures.append(
            f"{verdict.refused} settles of workers under forgotten claims refused, and one of ours"
        )
