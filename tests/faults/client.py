"""One client as a process of its own: `python -m tests.faults.client NAME SEED FIRST RATE`.

What it does is a function of name, seed and step. A client that was killed is started again a few
steps before the one it died in, so keyed submissions whose answer was lost are repeated. A call
that ends with an error of the store is repeated, as any careful program would.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path
from typing import Any

from lamplighter import Retry
from lamplighter.job import Call
from lamplighter.model.errors import KeyConflict, StoreError, UnknownJob, WrongState
from tests.faults import program
from tests.faults.history import Journal
from tests.faults.rules import FOLDER, WEIGHTS

CANCEL_SHARE = 0.08
KEY_SHARE = 0.4
PAUSE = 0.1
"""Seconds before a call is repeated that ended with an error."""


class Client:
    """Submits and cancels, and writes down each call before it is made and after it returned."""

    def __init__(self, name: str, seed: str, rate: float) -> None:
        self._name = name
        self._seed = seed
        self._rate = rate
        folder = Path(os.environ[FOLDER])
        self._journal = Journal(folder / "history.jsonl")
        self._stop = folder / "clients-stop"
        self._ids: list[str] = []
        self._cancels = 0

    async def run(self, first: int) -> None:
        step = first
        while not self._stop.exists():
            dice = random.Random(f"{self._seed}-{self._name}-{step}")
            self._journal.write("client_step", client=self._name, step=step)
            await self._submit(dice, step)
            if self._ids and dice.random() < CANCEL_SHARE:
                await self._cancel(dice.choice(self._ids[-10:]))
            await asyncio.sleep(dice.expovariate(self._rate))
            step += 1
        await program.app.close()

    async def _submit(self, dice: random.Random, step: int) -> None:
        call, tenant, key = self._drawn(dice, step)
        new = call.new
        self._journal.write("submit_sent", job=new.id, type=new.type, tenant=tenant, key=key)
        answered = {"job": new.id, "client": self._name}
        while True:
            try:
                (handle,) = await program.app.submit_many([call])
            except KeyConflict:
                self._journal.write("submit_answered", answer="conflict", id=new.id, **answered)
                return
            except StoreError as error:
                self._failed("submit", error)
                if self._stop.exists():
                    return
                await asyncio.sleep(PAUSE)
            else:
                answer = str(handle.answer)
                self._journal.write("submit_answered", answer=answer, id=handle.id, **answered)
                self._ids.append(handle.id)
                return

    def _failed(self, verb: str, error: StoreError) -> None:
        """Note an error of the store; any other ends the client, and is found."""
        what = {"error": type(error).__name__, "text": str(error)}
        self._journal.write("failed", client=self._name, verb=verb, **what)

    def _drawn(self, dice: random.Random, step: int) -> tuple[Call[Any], str, str | None]:
        tenant = dice.choice(list(WEIGHTS))
        key = f"{self._name}-{step}" if dice.random() < KEY_SHARE else None
        options: dict[str, Any] = {"tenant": tenant, "idempotency_key": key}
        if dice.random() < 0.15:
            options["delay"] = round(dice.uniform(0.1, 3.0), 3)
        chance = dice.random()
        if chance < 0.45:
            call = program.doze.options(**options).call(ms=dice.randint(1, 300))
        elif chance < 0.65:
            call = program.nap.options(**options).call(ms=dice.randint(1, 300))
        elif chance < 0.80:
            call = program.flaky.options(**options).call(failures=dice.randint(1, 3))
        elif chance < 0.85:
            call = program.doomed.options(**options).call()
        elif chance < 0.88:
            call = program.sole.options(**options).call(ms=dice.randint(1, 300))
        elif chance < 0.94:
            call = program.spin.options(**options).call(ms=dice.randint(5, 60))
        else:
            # The submission's own policy goes before that of the type.
            options["retry"] = Retry(fixed=0.3, max_attempts=4)
            call = program.doze.options(**options).call(ms=dice.randint(500, 1500))
        return call, tenant, key

    async def _cancel(self, job_id: str) -> None:
        self._cancels += 1
        call = f"{os.getpid()}-{self._cancels}"
        self._journal.write("cancel_sent", job=job_id, call=call)
        try:
            answer = str(await program.app.handle(job_id).cancel(by=self._name))
        except WrongState:
            answer = "conflict"
        except UnknownJob:
            # Lost, which the checker sees as well; a failover may have had the right to it.
            answer = "unknown"
        except StoreError as error:
            self._failed("cancel", error)
            return
        self._journal.write("cancel_answered", job=job_id, call=call, answer=answer)


if __name__ == "__main__":
    _client = Client(sys.argv[1], sys.argv[2], float(sys.argv[4]))
    asyncio.run(_client.run(int(sys.argv[3])))
