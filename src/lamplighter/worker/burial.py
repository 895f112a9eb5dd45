"""What becomes of the claims of a child that died, hangs, or stands still."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.config import Settings
from lamplighter.model import lifecycle
from lamplighter.model.errors import StoreError
from lamplighter.model.job import TERMINAL, Claim, Delivery, Fence, JobState
from lamplighter.model.lifecycle import Settlement
from lamplighter.model.outcome import AbandonCause, Abandoned, Outcome, Released, TimedOut
from lamplighter.model.retry import Retry
from lamplighter.observability import events
from lamplighter.observability.failures import process_log
from lamplighter.port.store import FINISHED_TOPIC, Engine, queue_topic
from lamplighter.port.values import SettleAnswer, Settled
from lamplighter.worker import failure
from lamplighter.worker.ledger import Entry
from lamplighter.worker.process import ChildProcess
from lamplighter.worker.run import BATCH
from lamplighter.worker.settler import hastened, tell_settled

Answer = TypeVar("Answer")
OnSettled = Callable[[Claim, Settlement, Settled], None]

_DIED = Abandoned(AbandonCause.CHILD_DIED)
_UNSTARTED = Released(certain=False)
_BACKOFF = Backoff(0.1, 1.0)


def ignore(_claim: Claim, _settlement: Settlement, _answer: Settled) -> None:
    """Count nothing."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many claims a dead child left behind."""

    started: int
    unstarted: int


class Burial:
    """Settles claims in a child's stead.

    The store is asked what the child holds: its last claim may never have been reported. What
    was not reported as started has not been started, because the report comes first. Of a child
    that lives the report may be late: then the start mark decides about at-most-once jobs.
    """

    def __init__(self, engine: Engine, settings: Settings, on_settled: OnSettled = ignore) -> None:
        self._engine = engine
        self._settings = settings
        self._on_settled = on_settled
        self._failures = process_log() if settings.log_failures else None
        self._limit = min(BATCH, engine.capabilities.max_batch)

    async def bury(self, child: ChildProcess) -> Counts:
        """Settle everything a dead child held."""
        known = child.ledger.by_fence()
        held = await self._repeat(lambda: self._engine.jobs.claims_of(child.worker))
        # A report counts as much as a mark, which a store may have lost in a failover.
        claims = [replace(one, started=one.started or _was_started(known, one)) for one in held]
        started = sum(_was_started(known, claim) for claim in claims)
        outcomes = [(claim, self._outcome(child, known, claim)) for claim in claims]
        await self._settle(child, outcomes)
        child.ledger.drop(list(child.ledger.entries))
        return Counts(started, len(claims) - started)

    async def give_back(self, child: ChildProcess) -> int:
        """Settle what a silent child has not started, and take it away from it."""
        async with child.giving_back:
            before = {entry.number for entry in child.ledger.unstarted()}
            # If the store does not answer, nothing has changed: the leases are still kept.
            claims = await self._claims_of(child)
            child.read()
            marked = {(claim.job.id, claim.fence) for claim in claims if claim.started}
            taken = {
                (e.id, e.fence): e
                for e in child.ledger.unstarted()
                if e.number in before and (e.id, e.fence) not in marked
            }
            child.lose([e.number for e in taken.values()], settled=True)
            # What is in the ledger now was started before, or claimed while we asked.
            kept = child.ledger.by_fence().keys() | marked
            free = [claim for claim in claims if (claim.job.id, claim.fence) not in kept]
            once = [
                entry
                for claim in free
                if claim.job.delivery is Delivery.AT_MOST_ONCE
                and (entry := taken.get((claim.job.id, claim.fence))) is not None
            ]
            # One that is marked meanwhile is given back when the child has let go of it.
            child.take_back(once)
            started = await self._settle(child, [(claim, _UNSTARTED) for claim in free])
            child.leave(entry.number for entry in once if entry.id not in started)
            return len(free) - len(started)

    async def release(self, child: ChildProcess) -> None:
        """Release claims that were taken from a living child, once it has let go of them.

        Nobody is charged: the worker has not vanished, it was only late. Until then the keeper
        goes on with the leases, or a rescuer would take the worker for lost.
        """
        try:
            while child.let_go:
                entries = tuple(child.let_go)
                await self._release(child, entries)
                del child.let_go[: len(entries)]
        finally:
            # What could not be written comes back when its lease ends.
            child.leave(entry.number for entry in child.let_go)
            child.let_go.clear()

    async def _release(self, child: ChildProcess, entries: Sequence[Entry]) -> None:
        wanted = {(entry.id, entry.fence): entry for entry in entries}
        claims = await self._repeat(lambda: self._engine.jobs.claims_of(child.worker))
        held = [(claim, wanted.get((claim.job.id, claim.fence))) for claim in claims]
        outcomes = [(claim, Released(started=e.started)) for claim, e in held if e is not None]
        await self._settle(child, outcomes)
        child.leave(entry.number for entry in entries)
        child.ledger.forget(entries, ())

    async def forget(self, child: ChildProcess) -> None:
        """Forget the claims a child gave up, as far as others have settled them."""
        await self._claims_of(child)

    async def _claims_of(self, child: ChildProcess) -> list[Claim]:
        forsaken = list(child.ledger.forsaken)
        claims = await self._engine.jobs.claims_of(child.worker)
        child.ledger.forget(forsaken, {(claim.job.id, claim.fence) for claim in claims})
        return claims

    def _outcome(
        self, child: ChildProcess, known: dict[tuple[str, Fence], Entry], claim: Claim
    ) -> Outcome:
        entry = known.get((claim.job.id, claim.fence))
        if entry is None or not entry.started:
            return Released()
        if entry.number not in child.ledger.entries:
            # We have let go of it long ago, and nobody has taken it up.
            return _DIED
        if entry.number in child.condemned:
            hard_after = child.hard_after.get(entry.type, self._settings.hard_after)
            timeout = (entry.hard_end or 0) - entry.started_at - hard_after
            return TimedOut(failure.timed_out(round(timeout, 1), killed=True))
        if child.condemned or child.sacrificed or child.draining or child.alone:
            return Released(started=True)
        return _DIED

    async def _settle(
        self, child: ChildProcess, outcomes: Sequence[tuple[Claim, Outcome]]
    ) -> set[str]:
        """Write what claims came to; gives the jobs that are left alone for their start mark.

        Jobs that stay locked for long by somebody else are left to rescue.
        """
        left = [self._decide(child, claim, outcome) for claim, outcome in outcomes]
        claims = {claim.job.id: claim for claim, _ in outcomes}
        marked: set[str] = set()
        give_up = runtime.boottime() + max(self._settings.lease, self._settings.store_deadline)
        failures = 0
        while left := await self._settle_free(claims, left, marked):
            if runtime.boottime() > give_up:
                break
            failures += 1
            await runtime.sleep(_BACKOFF.after(failures))
        return marked

    async def _settle_free(
        self, claims: Mapping[str, Claim], settlements: Sequence[Settlement], marked: set[str]
    ) -> list[Settlement]:
        """Write what can be written now, and give the settlements of jobs that are locked."""
        busy: list[Settlement] = []
        back: set[str] = set()
        """Topics of what waits again."""
        finished = False
        for start in range(0, len(settlements), self._limit):
            batch = settlements[start : start + self._limit]
            answers = await self._repeat(lambda batch=batch: self._engine.jobs.settle(batch))
            for settlement, answer in zip(batch, answers, strict=True):
                if answer.answer is SettleAnswer.LOST:
                    continue
                if answer.answer is SettleAnswer.BUSY:
                    busy.append(settlement)
                    continue
                claim = claims[answer.id]
                if answer.answer is SettleAnswer.STARTED:
                    marked.add(answer.id)
                finished = finished or answer.state in TERMINAL
                if answer.state is JobState.WAITING:
                    back.add(queue_topic(claim.job.queue, suspect=settlement.next.suspect))
                if answer.answer is SettleAnswer.DONE:
                    self._on_settled(claim, settlement, answer)
                    if self._failures is not None:
                        self._failures.tell(claim.job, settlement, answer.state)
                    if events.listened():
                        tell_settled(claim, settlement, answer, 0.0)
        for topic in sorted(back):
            await self._engine.wakeup.notify(topic)
        if finished:
            await self._engine.wakeup.notify(FINISHED_TOPIC)
        return busy

    def _decide(self, child: ChildProcess, claim: Claim, outcome: Outcome) -> Settlement:
        policy = child.retries.get(claim.job.type)
        retry = Retry() if policy is None else Retry.from_json(policy)
        settlement = lifecycle.settle(claim, outcome, retry=retry, chance=runtime.random())
        return hastened(settlement, self._settings.speed)

    async def _repeat(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Repeat a call of the store for as long as the leases could last; then rescue does it."""
        give_up = runtime.boottime() + self._settings.lease
        failures = 0
        while True:
            try:
                return await call()
            except StoreError as error:
                events.emit(events.SERVICE_ERROR, service="bury", error=error, expected=True)
                if runtime.boottime() > give_up:
                    raise
            failures += 1
            await runtime.sleep(_BACKOFF.after(failures))


def suspects(child: ChildProcess) -> frozenset[str]:
    """Return the types of the jobs one of which may have killed a dead child.

    Known without the store: who asks it first lets other children claim more of them meanwhile.
    """
    if child.condemned or child.sacrificed or child.draining or child.alone:
        return frozenset()
    return child.ledger.at_work()


def _was_started(known: dict[tuple[str, Fence], Entry], claim: Claim) -> bool:
    entry = known.get((claim.job.id, claim.fence))
    return entry is not None and entry.started
