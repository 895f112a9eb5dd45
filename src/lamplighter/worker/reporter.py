"""Calls the hooks of a program, one after the other, beside the work."""

from __future__ import annotations

import asyncio
from collections import deque

from lamplighter import hooks, runtime, secrecy
from lamplighter.hooks import Hook, Hooks, JobReport, Redact
from lamplighter.model.job import Claim, JobState
from lamplighter.model.lifecycle import Settlement
from lamplighter.observability import events

MOST_WAITING = 10_000
"""Reports that may wait for a hook; what comes beyond them is dropped, and that is told."""


class Reporter:
    """A queue of reports and the task that hands them to hooks, when there are any."""

    def __init__(self, program: Hooks) -> None:
        self._hooks = program
        self._waiting: deque[tuple[Hook, JobReport]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._dropped = 0

    def settled(
        self,
        claim: Claim,
        settlement: Settlement,
        state: JobState | None,
        exception: BaseException | None = None,
        redact: Redact | None = None,
    ) -> None:
        """Take in what the store has accepted."""
        wanted = self._hooks.wanted(settlement, state)
        if not wanted:
            return
        report = make_report(claim, settlement, state, exception, redact)
        for hook in wanted:
            if len(self._waiting) < MOST_WAITING:
                self._waiting.append((hook, report))
            else:
                self._drop()
        if self._task is None or self._task.done():
            self._task = runtime.spawn(self._work(), name="hooks")

    async def emptied(self) -> None:
        """Wait until every hook was called."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while self._waiting:
            await hooks.call(*self._waiting.popleft())
        self._dropped = 0

    def _drop(self) -> None:
        self._dropped += 1
        if self._dropped == 1:
            told = f"{MOST_WAITING:,} reports wait for hooks; the next ones are dropped"
            events.emit(events.SERVICE_ERROR, service="hooks", error=told, expected=False)


def make_report(
    claim: Claim,
    settlement: Settlement,
    state: JobState | None,
    exception: BaseException | None = None,
    redact: Redact | None = None,
) -> JobReport:
    """Say how an attempt went. Of the claim, all secret arguments have to be known."""
    job, error = claim.job, settlement.next.error
    return JobReport(
        job_id=job.id,
        type=job.type,
        tenant=job.tenant,
        queue=job.queue,
        attempt=job.attempt + 1,
        outcome=settlement.outcome,
        error=settlement.next.reason if error is None else error.text,
        state=None if state is None else state.value,
        traceback="" if error is None else error.traceback,
        fingerprint="" if error is None else error.fingerprint,
        exception=exception,
        args=secrecy.concealed(job.args, job.extras.secrets),
        metadata=job.extras.metadata,
        tags=job.extras.tags,
        redact=redact or hooks.unchanged,
    )
