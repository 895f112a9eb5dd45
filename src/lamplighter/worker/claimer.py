"""Takes from the store what the child has room for."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.job import ALONE, Claim, requirement_of, version_requirement
from lamplighter.model.lifecycle import milliseconds
from lamplighter.model.outcome import Outcome, Released
from lamplighter.model.stride import QueueStride
from lamplighter.observability import events
from lamplighter.port.patience import Patience
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest
from lamplighter.registry import Registry
from lamplighter.service import WAITED, Service
from lamplighter.worker.bench import Bench, Numbers
from lamplighter.worker.executor import Executor
from lamplighter.worker.link import Claimed, FromSupervisor, Link
from lamplighter.worker.run import BATCH, Run
from lamplighter.worker.rush import Way

PREFETCH = 0.05
"""Beyond its free slots a child takes at most what it finished in this many seconds."""


class Claimer(Service):
    """One claim in flight, repeated under its own nonce until the store has answered it."""

    name = "claim"

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        worker: str,
        registry: Registry,
        types: Callable[[], tuple[str, ...]],
        requirements: tuple[str, ...],
        queues: QueueStride,
        executor: Executor,
        bench: Bench,
        numbers: Numbers,
        link: Link[FromSupervisor],
        on_end: Callable[[Run, Outcome], None],
        is_kept: Callable[[], bool],
        way: Way,
    ) -> None:
        super().__init__()
        self._engine = engine
        self._settings = settings
        self._worker = worker
        self._registry = registry
        self._types = types
        self._queues = queues
        self._met = self._requirements = requirements
        self._executor = executor
        self._bench = bench
        self._numbers = numbers
        self._link = link
        self._on_end = on_end
        self._is_kept = is_kept
        self._way = way
        self._limit = min(BATCH, engine.capabilities.max_batch)
        self._lease_ms = milliseconds(settings.lease)
        # When the store is back, work goes on within a poll.
        self.backoff = replace(self.backoff, longest=min(self.backoff.longest, settings.poll))
        self._request: ClaimRequest | None = None
        """The claim that was not answered yet."""
        self._asked_at = 0.0
        """When it was made first: leases count from then at the earliest."""
        self._patience = Patience(settings.poll)
        self._samples = [(runtime.boottime(), 0)]
        self._recent = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0
        self._room_free: asyncio.Future[None] | None = None

    async def step(self) -> float:
        """Claim once and hand it on; where nothing is due, the store lets the claim wait."""
        request = self._request or self._next_request()
        if request is None:
            await self._freed()
            return 0.0
        if not self._is_kept():
            # One that was not answered: nobody would keep the leases of more than it took.
            request = replace(request, limit=0)
        answer = await self._engine.jobs.claim(request, self._patience)
        self._request = None
        if not answer.claims:
            return WAITED  # the next answer may be here already
        self._take(request, answer.claims)
        # At least once around: they begin before we ask for more.
        return self._way.pause(answer.claims)

    def room_changed(self) -> None:
        """Look again whether there is room. Called once per turn that ended something."""
        waiter = self._room_free
        if (
            waiter is not None
            and not waiter.done()
            and self._room() > 0
            and self._is_kept()
            and self._types()
        ):
            waiter.set_result(None)

    def meet(self, slot: int) -> None:
        """Ask from now on also for jobs that only the versions on this slot take; 0: for none."""
        version = version_requirement(slot)
        more = (
            requirement_of("", suspect=each == ALONE, version=version)
            for each in (self._met if slot else ())
        )
        self._requirements = (*self._met, *more)

    def due_in(self, seconds: float) -> None:
        """Note that a job falls due that this process has put back: the store told us earlier.

        The first one is enough: the claim that is made for it tells when the next is due.
        """
        at = runtime.monotonic() + seconds
        if self._alarm is not None:
            if self._alarm_at <= at:
                return
            self._alarm.cancel()
        self._alarm, self._alarm_at = asyncio.get_running_loop().call_later(seconds, self._ring), at

    def _ring(self) -> None:
        self._alarm = None
        self._patience.hurry()

    async def stop(self) -> None:
        """Claim nothing any more; what a claim under way takes is handed back."""
        self._stopped.set()
        if self._alarm is not None:
            self._alarm.cancel()
        self._patience.hurry()
        if self._room_free is not None and not self._room_free.done():
            self._room_free.set_result(None)
        await super().stop()

    # ── ask ──────────────────────────────────────────────────────────────────────────────────

    def _next_request(self) -> ClaimRequest | None:
        self._sample()
        room = self._way.portion(min(self._room(), self._limit))
        types = self._types()
        if room <= 0 or not types or self._stopped.is_set() or not self._is_kept():
            return None
        self._asked_at = runtime.boottime()
        self._request = ClaimRequest(
            nonce=runtime.nonce(),
            worker=self._worker,
            queues=tuple(self._queues.ask(room)),
            types=types,
            limit=room,
            lease_ms=self._lease_ms,
            requirements=self._requirements,
        )
        return self._request

    def _room(self) -> int:
        """Free slots and the prefetch, less what waits; 0 while enough waits to keep busy."""
        bench = self._bench
        waiting = len(bench.waiting)
        room = bench.free + self._recent - waiting
        # With work at hand there is no hurry, and a larger claim is a cheaper one.
        return room if not waiting or room >= waiting else 0

    def _sample(self) -> None:
        """Count what ended within the prefetch time; in proportion if we looked less often."""
        now, ended, samples = runtime.boottime(), self._bench.ended, self._samples
        samples.append((now, ended))
        while samples[1:] and samples[1][0] <= now - PREFETCH:
            samples.pop(0)
        then, before = samples[0]
        self._recent = int((ended - before) * PREFETCH / max(now - then, PREFETCH))

    async def _freed(self) -> None:
        if self._stopped.is_set():
            return
        self._room_free = asyncio.get_running_loop().create_future()
        self.room_changed()
        await self._room_free
        self._room_free = None

    # ── take ─────────────────────────────────────────────────────────────────────────────────

    def _take(self, request: ClaimRequest, claims: list[Claim]) -> None:
        asked_at = self._asked_at
        first = self._numbers.take(len(claims))
        jobs = [(claim.job.id, claim.fence.lease, claim.job.type) for claim in claims]
        self._link.say(Claimed(request.nonce, first, asked_at, jobs))
        if self._queues.weights is not None:
            for queue, count in Counter(claim.job.queue for claim in claims).items():
                self._queues.took(queue, count)
        get, default = self._registry.get, self._settings.timeout
        runs: list[Run] = []
        for number, claim in enumerate(claims, first):
            job_type = get(claim.job.type)
            timeout = claim.job.extras.timeout or job_type.timeout or default
            runs.append(Run(number, claim, job_type, timeout, asked_at))
        if runtime.boottime() - asked_at > self._settings.lease / 2:
            # The store took its time: what it gave us may be somebody else's any moment.
            refused, runs = runs, []
        elif self._stopped.is_set() or not self._is_kept():
            # Asked for before that: nobody here would run it, or keep its lease.
            refused, runs = runs, []
        elif (types := self._types()) != request.types:
            # Asked for before we were told to leave some of them to others.
            refused = [run for run in runs if run.claim.job.type not in types]
            runs = [run for run in runs if run.claim.job.type in types]
        else:
            refused = []
        for run in refused:
            self._on_end(run, Released())
        self._executor.offer(runs)
        if events.listened():
            events.emit(events.JOB_CLAIMED, count=len(claims), worker=self._worker)
