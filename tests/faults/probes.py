"""Small deterministic stories on the engine itself, with a clock moved by hand.

Each tells what a stale, hurried or late caller does, and gives the history for the checker. They
are quick, and they meet the one moment that random kills meet seldom.

Usage: python -m tests.faults.probes FOLDER SERVER [PROBE …]

SERVER is the address of a PostgreSQL server on which to make a database for each, `redis` for a
Redis server for each, or `-`: files.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from lamplighter.connect import connect
from lamplighter.model.errors import StoreError
from lamplighter.model.job import ALONE, Claim, Delivery, ErrorInfo, NewJob
from lamplighter.model.lifecycle import Settlement, settle
from lamplighter.model.outcome import AbandonCause, Abandoned, Failed, Misfit, Succeeded
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import LEASE_MS, new_job, request
from lamplighter.port.conformance.clock import VirtualClock
from lamplighter.port.store import Engine
from lamplighter.port.values import ChangeAnswer, ClaimRequest, Recording, Renewal
from tests.faults import checker
from tests.faults.checker import GOOD, Budget, Rules, Violation
from tests.faults.firing import dead_firer, late_firer
from tests.faults.history import Cancel, History, Run, Submission
from tests.faults.scenes import REDIS, Scene, ServerScene, scene_of

ONCE = "once"
"""A type whose jobs may start once."""
RULES = Rules(
    max_attempts={"work": 1, ONCE: 1},
    may_die=frozenset({"work", ONCE}),
    at_most_once=frozenset({ONCE}),
)
NEWER = "version:1"
"""Waits for another version of its type than the first that it was given to."""


class Theatre:
    """A store with its auditor and a clock; what is asked of it becomes a history."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.clock = VirtualClock()
        self.history = History()
        self.budgets: dict[str, Budget] = {}
        self.violations: list[Violation] = []
        """What a story has judged by itself."""
        self.engine: Engine = self._connect()

    def _connect(self) -> Engine:
        return connect(self.scene.url, clock_ms=self.clock.now_ms)

    async def open(self) -> None:
        self.engine = self._connect()
        await self.engine.open()

    async def submit(self) -> str:
        job = new_job()
        await self.send(job)
        return job.id

    async def send(self, job: NewJob) -> None:
        (answer,) = await self.engine.jobs.submit([job])
        self.history.submissions.append(
            Submission(job.id, job.type, job.tenant, None, str(answer.answer), answer.id)
        )

    async def claim(self, worker: str) -> Claim:
        (claim,) = await self.ask(asking(worker))
        return claim

    async def ask(self, asked: ClaimRequest) -> list[Claim]:
        return (await self.engine.jobs.claim(asked)).claims

    async def settle(self, settlement: Settlement) -> None:
        """Settle and ignore the answer: the audit shows what was accepted."""
        await self.engine.jobs.settle([settlement])

    async def die(self, claim: Claim, cause: AbandonCause) -> None:
        """Let the process of a claim die, in the eyes of whoever has started it."""
        self.history.dead_workers.add(claim.worker)
        await self.settle(settle(claim, Abandoned(cause)))

    async def cancel(self, job_id: str) -> None:
        (changed,) = await self.engine.jobs.cancel([job_id], by="probe", reason="")
        now_ms = self.clock.now_ms()
        self.history.cancels.append(Cancel(job_id, str(changed.answer), now_ms))

    async def retry(self, job_id: str) -> None:
        (changed,) = await self.engine.jobs.retry([job_id], by="probe", reason="")
        self.history.retries[job_id] += changed.answer is ChangeAnswer.DONE

    async def start(self, claim: Claim) -> None:
        """Mark a start as a worker does, and call the handler if the store has the mark."""
        mark = Recording(claim.job.id, claim.fence, started=True)
        (recorded,) = await self.engine.jobs.record([mark])
        if recorded.held:
            now_ms = self.clock.now_ms()
            self.history.runs.append(
                Run(
                    job_id=claim.job.id,
                    type=claim.job.type,
                    lease=claim.fence.lease,
                    pid=0,
                    started=now_ms / 1000,
                    started_ms=now_ms,
                    ended=now_ms / 1000,
                )
            )

    async def expire(self) -> None:
        """Let every lease end, and rescue."""
        self.clock.advance(ms=LEASE_MS + 1)
        for expired in await self.engine.jobs.rescue(10):
            await self.settle(settle(expired.claim, Abandoned(), only_if_expired=True))
        # A rescued job waits a moment before it is due again.
        self.clock.advance(seconds=60)

    async def close(self) -> History:
        await self.engine.close()
        self.scene.auditor.read_into(self.history)
        self.history.broken = await asyncio.to_thread(self.scene.auditor.faults)
        return self.history


def asking(worker: str, *requirements: str) -> ClaimRequest:
    """Ask for one job, suspects included; or for one that requires something else."""
    wanted = requirements or ("", ALONE)
    return request("default", types=("work", ONCE), limit=1, worker=worker, requirements=wanted)


def succeeded(claim: Claim) -> Settlement:
    """Success, with a result that names the fence it was made under."""
    author = {"lease": claim.fence.lease, "nonce": claim.fence.nonce}
    return settle(claim, Succeeded(json.dumps(author).encode()))


def failed(claim: Claim) -> Settlement:
    error = ErrorInfo(type="ValueError", message="boom")
    return settle(claim, Failed(error), retry=Retry(max_attempts=1))


async def stale_settle(theatre: Theatre) -> None:
    """A worker wakes up after its job was given to another, and reports success."""
    await theatre.submit()
    first = await theatre.claim("first")
    await theatre.expire()
    second = await theatre.claim("second")
    await theatre.settle(succeeded(first))
    await theatre.settle(succeeded(second))


async def restored_store(theatre: Theatre) -> None:
    """The store is set back to a copy, and hands out the same lease number once more."""
    await theatre.submit()
    await theatre.engine.close()
    theatre.scene.save()
    await theatre.open()
    first = await theatre.claim("first")
    await theatre.engine.close()
    theatre.scene.restore()
    await theatre.open()
    second = await theatre.claim("second")
    if second.fence.lease != first.fence.lease:
        raise RuntimeError("the copy was not restored: the number did not repeat")
    await theatre.settle(succeeded(first))
    await theatre.settle(succeeded(second))


async def repeated_claim(theatre: Theatre) -> None:
    """The reply to a claim is lost, and the claim is made again: it names the same jobs."""
    for _ in range(2):
        await theatre.submit()
    asked = asking("worker")
    await theatre.ask(asked)
    held = await theatre.ask(asked) + await theatre.ask(asking("other"))
    for claim in held:
        await theatre.settle(succeeded(claim))


async def repeated_submit(theatre: Theatre) -> None:
    """The reply to a submission is lost; it is made again when the job has ended already."""
    job = new_job()
    await theatre.send(job)
    await theatre.settle(succeeded(await theatre.claim("worker")))
    await theatre.send(job)
    for claim in await theatre.ask(asking("worker")):
        await theatre.settle(succeeded(claim))


async def renewed_lease(theatre: Theatre) -> None:
    """A rescuer has read that a lease ended; before it writes, the holder renews."""
    await theatre.submit()
    holder = await theatre.claim("holder")
    theatre.clock.advance(ms=LEASE_MS + 1)
    (expired,) = await theatre.engine.jobs.rescue(10)
    await theatre.engine.jobs.renew([Renewal(holder.job.id, holder.fence)], LEASE_MS)
    await theatre.settle(settle(expired.claim, Abandoned(), only_if_expired=True))
    await theatre.settle(succeeded(holder))


async def dead_rescuer(theatre: Theatre) -> None:
    """A rescuer has read that a lease ended, and dies before it writes: another one finds it."""
    await theatre.submit()
    await theatre.claim("lost")
    theatre.clock.advance(ms=LEASE_MS + 1)
    await theatre.engine.jobs.rescue(10)
    await theatre.expire()
    for claim in await theatre.ask(asking("worker")):
        await theatre.settle(succeeded(claim))


async def clock_went_back(theatre: Theatre) -> None:
    """The clock was an hour ahead when a job was claimed; its worker dies when it is right."""
    await theatre.submit()
    theatre.clock.advance(seconds=3600)
    await theatre.claim("lost")
    theatre.clock.advance(seconds=-3600)
    await theatre.engine.jobs.rescue(10)
    await theatre.expire()
    for claim in await theatre.ask(asking("worker")):
        await theatre.settle(succeeded(claim))


async def late_cancel(theatre: Theatre) -> None:
    """A job is cancelled after it has succeeded."""
    job_id = await theatre.submit()
    await theatre.settle(succeeded(await theatre.claim("worker")))
    await theatre.cancel(job_id)


async def cancel_of_running(theatre: Theatre) -> None:
    """A job is cancelled while it runs, and its handler fails."""
    job_id = await theatre.submit()
    claim = await theatre.claim("worker")
    await theatre.cancel(job_id)
    await theatre.settle(failed(claim))


async def dead_child(theatre: Theatre) -> None:
    """A process dies in which a job ran beside others: the job pays nothing and runs again."""
    job_id = await theatre.submit()
    theatre.budgets[job_id] = GOOD
    await theatre.die(await theatre.claim("shared"), AbandonCause.CHILD_DIED)
    await theatre.settle(succeeded(await theatre.claim("alone")))


async def killer(theatre: Theatre) -> None:
    """A job kills its process whenever it runs, at first one in which it is not alone."""
    job_id = await theatre.submit()
    theatre.budgets[job_id] = Budget("dead", crashes=3, reason="poison: ", errors=("Abandoned",))
    cause = AbandonCause.CHILD_DIED
    for _ in range(4):
        await theatre.die(await theatre.claim("worker"), cause)
        cause = AbandonCause.CRASHED_ALONE
        theatre.clock.advance(seconds=60)


async def marked_start(theatre: Theatre) -> None:
    """A worker vanishes after the start of a job that may start once: nobody starts it again."""
    await theatre.send(new_job(ONCE, delivery=Delivery.AT_MOST_ONCE))
    await theatre.start(await theatre.claim("lost"))
    await theatre.expire()
    await _start_what_waits(theatre)


async def late_mark(theatre: Theatre) -> None:
    """A rescuer has read that a job has not started; before it writes, the holder starts it."""
    await theatre.send(new_job(ONCE, delivery=Delivery.AT_MOST_ONCE))
    holder = await theatre.claim("holder")
    theatre.clock.advance(ms=LEASE_MS + 1)
    (expired,) = await theatre.engine.jobs.rescue(10)
    await theatre.start(holder)
    await theatre.settle(settle(expired.claim, Abandoned(), only_if_expired=True))
    await theatre.expire()
    await _start_what_waits(theatre)


async def _start_what_waits(theatre: Theatre) -> None:
    for claim in await theatre.ask(asking("other")):
        await theatre.start(claim)
        await theatre.settle(succeeded(claim))


async def misfit(theatre: Theatre) -> None:
    """The first version of its type does not take a job, the next does: it pays nothing."""
    job_id = await theatre.submit()
    theatre.budgets[job_id] = GOOD
    error = ErrorInfo(type="InvalidInput", message="no argument `coupon`")
    await theatre.settle(settle(await theatre.claim("older"), Misfit(error, NEWER)))
    for claim in await theatre.ask(asking("newer", NEWER)):
        await theatre.settle(succeeded(claim))


async def retried_dead(theatre: Theatre) -> None:
    """A dead job is retried: it goes on in the same life, so that its effects have their names."""
    job_id = await theatre.submit()
    await theatre.settle(failed(await theatre.claim("first")))
    await theatre.retry(job_id)
    await theatre.settle(succeeded(await theatre.claim("second")))


async def emptied_server(theatre: Theatre) -> None:
    """A server loses its data while somebody has the store open, and gets them back: meanwhile it
    takes in nothing, because that would be gone.
    """
    scene = theatre.scene
    assert isinstance(scene, ServerScene)
    await theatre.submit()
    await theatre.settle(succeeded(await theatre.claim("worker")))
    await theatre.engine.close()
    scene.save()
    await theatre.open()
    with scene.emptied():
        with contextlib.suppress(StoreError):
            await theatre.submit()
        await theatre.engine.close()
    await theatre.open()


OF_REDIS = frozenset({"emptied_server"})
"""Stories that need a server which can lose its data."""
PROBES: dict[str, Callable[[Theatre], Awaitable[None]]] = {
    story.__name__: story
    for story in (
        stale_settle,
        restored_store,
        repeated_claim,
        repeated_submit,
        renewed_lease,
        dead_rescuer,
        clock_went_back,
        late_cancel,
        cancel_of_running,
        dead_child,
        killer,
        marked_start,
        late_mark,
        misfit,
        retried_dead,
        emptied_server,
        dead_firer,
        late_firer,
    )
}


async def play(name: str, scene: Scene) -> list[Violation]:
    """Play one story and judge it."""
    theatre = Theatre(scene)
    await theatre.open()
    scene.auditor.install()
    try:
        await PROBES[name](theatre)
    finally:
        history = await theatre.close()
        scene.close()
    rules = replace(RULES, budgets=theatre.budgets)
    judged = [
        theatre.violations,
        *checker.check(history, rules).values(),
        checker.sound_store(history),
    ]
    return [one for found in judged for one in found]


def main(arguments: list[str]) -> int:
    """Print the violations of each probe as one JSON object."""
    folder, server = Path(arguments[0]), arguments[1]
    names = arguments[2:] or [one for one in PROBES if server == REDIS or one not in OF_REDIS]
    found = {name: asyncio.run(play(name, scene_of(name, folder, server))) for name in names}
    print(json.dumps({name: [one.invariant for one in mine] for name, mine in found.items()}))
    for mine in found.values():
        for one in mine:
            print(one, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
