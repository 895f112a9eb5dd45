"""Hears of cancel requests while handlers run: a renewal alone would tell of them seconds later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.port.store import CANCEL_TOPIC, Engine
from lamplighter.service import Service
from lamplighter.worker.executor import Executor

YOUNG = 0.1
"""Handlers that have not run for so long are not worth listening for: most end before."""
LISTEN = 5.0
"""Seconds of one wait; it goes on for as long when the last handler has ended."""
GAPS = Backoff(0.05, 2.0)
"""Between two questions: as long as the rounds of the keeper, which asks anyway."""


class CancelListener(Service):
    """Waits for news of cancels, and has the supervisor ask whether they are about our jobs.

    The news names no job. The gap between two questions grows while the answer is no, so that
    cancels of others' jobs cost little. Where nothing runs, nothing waits.
    """

    name = "hear cancels"

    def __init__(self, engine: Engine, executor: Executor, ask: Callable[[], None]) -> None:
        super().__init__()
        self._engine = engine
        self._executor = executor
        self._ask = ask
        self._listened = False
        """Whether news since our last wait are kept for the next one."""
        self._found = False
        self._in_vain = 0
        """How often in a row the news was not for us."""

    def found(self) -> None:
        """Note that a cancel was for a job of ours."""
        self._found = True

    async def step(self) -> float:
        """Wait for a handler that is not done at once, then for news while it runs."""
        running, begun = self._executor.running, self._executor.begun
        if not running:
            begun.clear()
            await begun.wait()
        await runtime.sleep(YOUNG)
        old = runtime.boottime() - YOUNG
        if not any(run.started_at <= old for run in running.values()):
            return 0.0
        if not self._listened:
            await self._engine.wakeup.wait([CANCEL_TOPIC], 0)
            self._listened = True
            # What was asked before we listened is not told again.
            self._ask()
        if not await self._engine.wakeup.wait([CANCEL_TOPIC], LISTEN):
            self._in_vain = 0
            return 0.0
        self._in_vain = 0 if self._found else self._in_vain + 1
        self._found = False
        self._ask()
        return GAPS.after(self._in_vain + 1)

    async def stop(self) -> None:
        """End now, be it in a wait."""
        self._stopped.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
