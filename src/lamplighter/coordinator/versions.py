"""Look again at jobs that no live version of their type took, or whose version has gone."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.fleet import Fleet
from lamplighter.model import lifecycle
from lamplighter.model.errors import StoreError
from lamplighter.model.job import (
    NO_VERSION,
    Claim,
    JobState,
    requirement_of,
    version_requirement,
)
from lamplighter.model.lifecycle import Settlement, milliseconds
from lamplighter.model.versions import Version, looked_at_again, orphans
from lamplighter.observability import events
from lamplighter.port.store import FINISHED_TOPIC, Engine, queue_topic
from lamplighter.port.values import ClaimRequest, SettleAnswer
from lamplighter.port.versions import live_versions
from lamplighter.service import Service

ROLE = "versions"
POLL = 2.0
"""Seconds between two looks whether the live versions have changed."""
TERM = 30.0
"""Seconds for which one node leads; it says so again after a third of that, others ask later."""
LOOKS = 12
"""How often a job is looked at in the time it may wait, though the versions stay the same."""
BATCH = 100
BATCHES = 10
"""Batches of one step; the rest follows in the next."""
EMPTY = 20
"""Answers without a job after which the rest is left to the next round."""
LEASE_MS = 30_000
WORKER = "versions:"
"""What the worker of such a claim is called begins with this: no handler runs under it."""


@dataclass(frozen=True, slots=True)
class _Unmet:
    """Requirements that nobody meets for some types in some queues."""

    types: tuple[str, ...]
    queues: tuple[str, ...]
    requirements: tuple[str, ...]


class VersionWatch(Service):
    """Take jobs that no worker asks for, and put them where one does.

    They are claimed like any other job, and settled as misfits under the same fence: to the lane
    of a version that takes them, back to where they were, or dead. One node does it at a time, to
    spare the store, and each whose worker has just joined, because its versions may be new; two
    that do it at once do no harm.
    """

    name = "versions"
    patience = 120.0

    def __init__(self, engine: Engine, settings: Settings, fleet: Fleet | None = None) -> None:
        super().__init__()
        self._engine = engine
        self._fleet = fleet or Fleet()
        self._joins = 0
        self._leads = False
        self._ask_again = 0.0
        self._holder = runtime.incarnation()
        self._patience_ms = milliseconds(settings.version_wait)
        self._interval = settings.version_wait / LOOKS
        self._poll = min(POLL, self._interval)
        self._batch = min(BATCH, engine.capabilities.max_batch)
        self._known: object = None
        """The live versions when the last round began."""
        self._next_look = 0.0
        self._left: list[_Unmet] = []
        """What is still to be looked at."""
        self._in_vain = 0
        """Answers without a job, one after the other."""
        self._seen: set[str] = set()
        """Jobs that were looked at in the present round."""

    async def step(self) -> float:
        """Begin a round when the versions have changed or it is time, or go on with it."""
        joined = self._fleet.joins != self._joins
        if not (joined or self._left or await self._is_leader()):
            self._known = None
            return self._poll
        live = live_versions(await self._engine.inspector.types())
        now, known = runtime.monotonic(), _identity(live)
        if joined or known != self._known or now >= self._next_look:
            self._joins = self._fleet.joins
            self._known, self._next_look = known, now + self._interval
            self._left, self._seen = _unmet(live), set()
        for _ in range(BATCHES):
            if not self._left:
                return self._poll
            if not await self._look(live):
                self._left.pop()
                self._in_vain = 0
        return 0.0

    async def stop(self) -> None:
        """End, and let another lead at once."""
        await super().stop()
        if self._leads:
            with contextlib.suppress(StoreError):
                await self._engine.membership.lead(ROLE, self._holder, 1)

    async def _is_leader(self) -> bool:
        now = runtime.monotonic()
        if now >= self._ask_again:
            term = milliseconds(TERM)
            self._leads = await self._engine.membership.lead(ROLE, self._holder, term)
            # Those who do not lead are many, and ask at times of their own.
            self._ask_again = now + (TERM / 3 if self._leads else TERM * (0.5 + runtime.random()))
        return self._leads

    async def _look(self, live: Mapping[str, Sequence[Version]]) -> bool:
        """Look at one batch; True: there may be more of the same."""
        unmet = self._left[-1]
        answer = await self._engine.jobs.claim(
            ClaimRequest(
                nonce=runtime.nonce(),
                worker=f"{WORKER}{self._holder}",
                queues=tuple((name, self._batch) for name in unmet.queues),
                types=unmet.types,
                limit=self._batch,
                lease_ms=LEASE_MS,
                requirements=unmet.requirements,
            )
        )
        claims = answer.claims
        if not claims:
            # A store that is divided, or that woke a bounded part, may have more behind it.
            self._in_vain += 1
            return answer.poll_after_ms == 0 and self._in_vain < EMPTY
        self._in_vain = 0
        await self._settle(claims, live)
        fresh = [one for one in claims if one.job.id not in self._seen]
        self._seen.update(one.job.id for one in fresh)
        # Tenants take turns, and who was served stands behind the others: when all of a batch
        # was seen before, nothing else is left.
        return bool(fresh)

    async def _settle(self, claims: Sequence[Claim], live: Mapping[str, Sequence[Version]]) -> None:
        settlements = [await self._decided(claim, live) for claim in claims]
        if not settlements:
            return
        settled = await self._engine.jobs.settle(settlements)
        topics: set[str] = set()
        for claim, settlement, answer in zip(claims, settlements, settled, strict=True):
            following = settlement.next
            if answer.answer is not SettleAnswer.DONE:
                continue
            if answer.state is not JobState.WAITING:
                topics.add(FINISHED_TOPIC)
            elif lifecycle.is_claimable(following):
                topics.add(queue_topic(claim.job.queue, suspect=following.suspect))
        for topic in sorted(topics):
            await self._engine.wakeup.notify(topic)

    async def _decided(self, claim: Claim, live: Mapping[str, Sequence[Version]]) -> Settlement:
        job = claim.job
        record = await self._engine.inspector.job(job.id)
        claimed_at = None if record is None else record.claimed_at_ms
        misfit = looked_at_again(
            job,
            None if record is None else record.error,
            live.get(job.type, ()),
            now_ms=job.due_at_ms if claimed_at is None else claimed_at,
            patience_ms=self._patience_ms,
            interval_ms=milliseconds(max(self._interval, POLL)),
        )
        if misfit.dead is not None:
            events.emit(events.JOB_UNFIT, job_id=job.id, type=job.type, reason=misfit.dead)
        return lifecycle.settle(claim, misfit)


def _identity(live: Mapping[str, Sequence[Version]]) -> object:
    """Return what a change of which calls for a new round; how many workers there are is none."""
    return {
        name: {(one.hash, seat.slot, seat.queues) for one in found for seat in one.seats}
        for name, found in live.items()
    }


def _unmet(live: Mapping[str, Sequence[Version]]) -> list[_Unmet]:
    """List the requirements that no live worker meets, by types and queues.

    Types of which no version lives, and queues where none does, are left out: there is nobody to
    wait for yet.
    """
    types: dict[tuple[tuple[int, ...], tuple[str, ...]], list[str]] = {}
    for name, versions in live.items():
        for alike in orphans(versions).items():
            types.setdefault(alike, []).append(name)
    return [
        _Unmet(
            tuple(sorted(names)),
            queues,
            tuple(
                requirement_of("", suspect=suspect, version=version)
                for version in (NO_VERSION, *map(version_requirement, slots))
                for suspect in (False, True)
            ),
        )
        for (slots, queues), names in types.items()
    ]
