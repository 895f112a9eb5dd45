"""Whatever verbs come in whatever order, the indexes agree with the records after each."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from lamplighter.engines.redis.audit import audit
from lamplighter.model.filters import Filter
from lamplighter.model.job import Claim, Level
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import (
    AbandonCause,
    Abandoned,
    Failed,
    Rejected,
    Released,
    Snoozed,
    Succeeded,
)
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import BOOM, abandoned, claim, key
from lamplighter.port.values import Renewal, Retention, SubmitAnswer, TenantSettings, TypeSettings
from tests.unit.redis.stores import Store, opened

STEPS = 120
BY = {"by": "test", "reason": "for the test"}
OUTCOMES = [
    Succeeded(b"1"),
    Failed(BOOM),
    Released(),
    Snoozed(1.0),
    Rejected("no"),
    Abandoned(AbandonCause.CHILD_DIED),
]
SOON = Retry(jitter=0, base=1, factor=1)
SOME_KEPT = Retention(finished_ms=1_000_000, finished_count=5, dead_ms=0, key_ms=0)


@pytest.fixture(params=[1, 3])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store of one shard, and one of several."""
    async with opened(tmp_path, request.param) as store:
        yield store


class Life:
    """Moves jobs at random, and knows which there were."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.ids: list[str] = []
        self._engine = store.engine
        self._claims: list[Claim] = []
        self._chance = random.Random(seed)

    async def step(self) -> str:
        """Do one thing; its name."""
        verbs: list[Callable[[], Awaitable[object]]] = [
            *[self.submit, self.claim, self.settle] * 3,
            *[self.operate] * 5,
            *[self.hold_somebody, self.rescue, self.renew, self.prune],
        ]
        verb = self._chance.choice(verbs)
        await verb()
        self.store.clock.advance(ms=self._chance.choice([0, 1, 50, 6_000, 1_000_000]))
        return verb.__name__

    async def submit(self) -> None:
        pick = self._chance.choice
        jobs = [
            self.store.new_job(
                pick(["work", "mail"]),
                tenant=pick(["a", "b", "ü"]),
                level=pick([Level.HIGH, Level.LOW]),
                delay_ms=pick([0, 0, 0, 100, 5_000]),
                held=pick([False, False, False, True]),
                key=pick([None, None, key(f"key {pick(range(20))}")]),
            )
            for _ in range(pick(range(1, 8)))
        ]
        answers = await self._engine.jobs.submit(jobs)
        self.ids += [one.id for one in answers if one.answer is SubmitAnswer.CREATED]

    async def claim(self) -> None:
        types = self._chance.choice([("work",), ("work", "mail")])
        lease_ms = self._chance.choice([1_000, 30_000])
        self._claims += await claim(self._engine, 6, types=types, lease_ms=lease_ms)

    async def settle(self) -> None:
        self._chance.shuffle(self._claims)
        taken, self._claims = self._claims[:4], self._claims[4:]
        ends = [settle(one, self._chance.choice(OUTCOMES), retry=SOON) for one in taken]
        await self._engine.jobs.settle(ends)

    async def operate(self) -> None:
        jobs = self._engine.jobs
        verbs = [jobs.cancel, jobs.hold, jobs.unhold, jobs.retry, jobs.replay, jobs.purge]
        some = self._chance.choices(self.ids[-40:], k=4) if self.ids else []
        await self._chance.choice(verbs)(some, **BY)

    async def hold_somebody(self) -> None:
        held = self._chance.choice([True, False])
        if self._chance.choice([True, False]):
            tenant = self._chance.choice(["a", "b", "ü"])
            await self._engine.settings.put_tenant(tenant, TenantSettings(held=held), **BY)
        else:
            await self._engine.settings.put_type("mail", TypeSettings(held=held), **BY)

    async def rescue(self) -> None:
        expired = await self._engine.jobs.rescue(5)
        await self._engine.jobs.settle([abandoned(one.claim) for one in expired])

    async def renew(self) -> None:
        leases = [Renewal(one.job.id, one.fence) for one in self._claims[:3]]
        await self._engine.jobs.renew(leases, 2_000)

    async def prune(self) -> None:
        await self._engine.jobs.prune(SOME_KEPT, self._chance.choice([2, 100]))


@pytest.mark.parametrize("seed", range(3))
async def test_after_each_verb_the_indexes_agree_with_the_records(store: Store, seed: int):
    life = Life(store, seed)
    for _ in range(STEPS):
        did = await life.step()
        found = await audit(store.call)
        assert found.faults == (), did
        assert found.jobs == sum((await store.engine.inspector.counts()).values()), did

    page = await store.engine.inspector.jobs(Filter(), limit=5_000)
    alive = [one for one in life.ids if await store.engine.inspector.job(one)]
    assert page.cursor is None
    assert sorted(record.job.id for record in page.jobs) == sorted(alive)
    assert alive
