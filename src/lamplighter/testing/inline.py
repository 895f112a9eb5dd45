"""Run one handler here and now, with arguments that travel as they would through a store."""

from __future__ import annotations

import asyncio
from typing import Any, ParamSpec, TypeVar, cast

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.job import Job
from lamplighter.model import lifecycle
from lamplighter.model.errors import JobFailed, ResultOmitted
from lamplighter.model.job import Claim, Fence, NewJob
from lamplighter.model.job import Job as Stored
from lamplighter.model.outcome import Failed, Outcome, Rejected, Snoozed, Succeeded
from lamplighter.portal import refuse_inside_loop
from lamplighter.testing.perform import Performed, perform

P = ParamSpec("P")
R = TypeVar("R")

_SETTINGS = Settings()


async def run(job: Job[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run the handler and give its result, as ``submit`` and ``handle.result()`` would.

    What the handler raises is raised here, Reject and Snooze included. Arguments that ``submit``
    would refuse are refused in the same way.
    """
    performed = await _performed(job, job.call(*args, **kwargs).new)
    match performed.outcome:
        case Succeeded(result, None):
            return cast("R", job.type.decode_result(result))
        case Succeeded(_, note):
            raise ResultOmitted(
                f"`{job.name}` succeeded, but {note}",
                hint="let the handler return small JSON data, or store it and return where it is",
                value=note,
            )
        case Failed() | Rejected() | Snoozed() if performed.exception is not None:
            raise performed.exception
        case outcome:
            raise _failed(job, outcome)


async def attempt(job: Job[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Outcome:
    """Run the handler and give its outcome: Succeeded, Failed, Rejected, Snoozed or TimedOut."""
    outcome = (await _performed(job, job.call(*args, **kwargs).new)).outcome
    if outcome is None:
        raise _failed(job, outcome)
    return outcome


def run_sync(job: Job[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """``run`` for tests without an event loop."""
    refuse_inside_loop("testing.run(…)")
    return asyncio.run(run(job, *args, **kwargs))


def attempt_sync(job: Job[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Outcome:
    """``attempt`` for tests without an event loop."""
    refuse_inside_loop("testing.attempt(…)")
    return asyncio.run(attempt(job, *args, **kwargs))


async def _performed(job: Job[..., Any], new: NewJob) -> Performed:
    return await perform(_claim(new), job.registry, _SETTINGS)


def _claim(new: NewJob) -> Claim:
    """Make a claim out of nothing, as if the job had been stored and handed out just now."""
    now = runtime.now_ms()
    stored = Stored(
        id=new.id,
        type=new.type,
        args=new.args,
        queue=new.queue,
        level=new.level,
        tenant=new.tenant,
        due_at_ms=now,
        created_at_ms=now,
        delivery=new.delivery,
        extras=new.extras,
    )
    return Claim(job=stored, fence=Fence(1, runtime.nonce()), worker="inline", handout=1)


def _failed(job: Job[..., Any], outcome: Outcome | None) -> JobFailed:
    word = "lost" if outcome is None else lifecycle.name_of(outcome).replace("_", " ")
    error = getattr(outcome, "error", None)
    why = "" if error is None else f": {error.message}"
    return JobFailed(
        f"`{job.name}` {word}{why}",
        hint="`await testing.attempt(…)` gives the outcome instead of raising",
        value=error,
    )
