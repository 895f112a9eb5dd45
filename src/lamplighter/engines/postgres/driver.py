"""The engine for `postgresql://`: its verbs, and how its database is opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from lamplighter.engines.postgres import address, installer
from lamplighter.engines.postgres.pool import Pools
from lamplighter.engines.postgres.rights import NOBODY, Holders
from lamplighter.engines.postgres.verbs import (
    activity,
    audit,
    inspect,
    inspect_schedules,
    membership,
    queues,
    rescue,
    settings,
    spend,
    tokens,
)
from lamplighter.engines.postgres.verbs.backfill import backfill
from lamplighter.engines.postgres.verbs.change import change
from lamplighter.engines.postgres.verbs.check_up import check_up
from lamplighter.engines.postgres.verbs.claim import claim
from lamplighter.engines.postgres.verbs.delete_schedules import delete_schedules
from lamplighter.engines.postgres.verbs.due_schedules import due_schedules
from lamplighter.engines.postgres.verbs.explain import explain
from lamplighter.engines.postgres.verbs.fire import fire
from lamplighter.engines.postgres.verbs.hold_schedules import hold_schedules
from lamplighter.engines.postgres.verbs.prune import prune
from lamplighter.engines.postgres.verbs.prune_access import prune_access
from lamplighter.engines.postgres.verbs.put_schedules import put_schedules
from lamplighter.engines.postgres.verbs.record import record
from lamplighter.engines.postgres.verbs.renew import renew
from lamplighter.engines.postgres.verbs.settle import settle
from lamplighter.engines.postgres.verbs.submit import submit
from lamplighter.engines.postgres.verbs.trigger import trigger
from lamplighter.engines.postgres.verbs.unhold_schedules import unhold_schedules
from lamplighter.engines.postgres.wakeup import PostgresWakeup
from lamplighter.port.capabilities import Capabilities
from lamplighter.port.checkup import Checkup
from lamplighter.port.patience import Patience, wait_for_work
from lamplighter.port.values import Claimed, ClaimRequest

Verb = Callable[..., Awaitable[Any]]

CAPABILITIES = Capabilities(
    name="postgresql",
    many_machines=True,
    push_wakeup=True,
    durable_submit=True,
    loss_window="none while the server's disk lives and synchronous_commit is on; after a failover "
    "to an asynchronous standby, what had not reached it",
    max_batch=10_000,
    roles=True,
)
FORGETFUL = replace(
    CAPABILITIES,
    durable_submit=False,
    loss_window="as the server's settings have it, whatever they are: durability=none in the url",
)

_VERBS: tuple[Verb, ...] = (
    *(submit, claim, renew, settle, record, rescue.rescue, rescue.claims_of, prune, change),
    *(put_schedules, due_schedules, fire, trigger, backfill),
    *(hold_schedules, unhold_schedules, delete_schedules),
    *(membership.join, membership.beat, membership.leave, membership.lead),
    *(settings.put_queue, settings.put_tenant, settings.put_type),
    *(queues.enter_queues, queues.remove_queue, activity.tally),
    *(tokens.put_token, tokens.revoke_token, audit.note_audit, prune_access, spend.spend),
    *(inspect.job, inspect.jobs, explain, inspect.counts, inspect.attempts, inspect.logs),
    *(inspect.queues, inspect.queue, inspect.tenants, inspect.tenant, queues.held),
    *(inspect.types, inspect.workers, inspect.dead_groups),
    *(inspect_schedules.schedule, inspect_schedules.schedules, inspect_schedules.runs),
    *(activity.activity, activity.standing),
    *(tokens.token, tokens.tokens, audit.audit, spend.spent),
)


class PostgresDriver:
    """The engine for many machines.

    ``clock_ms`` is for tests: each call then tells the store what time it is.
    """

    wakeup: PostgresWakeup

    def __init__(self, url: str, clock_ms: Callable[[], int] | None, deadline: float) -> None:
        self._address = address.parse(url)
        self.where = self._address.shown
        declared = CAPABILITIES if self._address.durable else FORGETFUL
        self.capabilities = replace(declared, push_wakeup=self._address.listen)
        self._clock_ms = clock_ms
        self._deadline = deadline
        self._pools: Pools | None = None

    async def open(self, *, create: bool) -> Mapping[str, Verb]:
        await self._prepare(migrate=False, create=create)
        pools = self._pools = Pools(self._address, self._deadline, self._clock_ms)
        self.wakeup = PostgresWakeup(self._address, pools)
        verbs: dict[str, Verb] = {verb.__name__: partial(verb, pools) for verb in _VERBS}
        if self._clock_ms is None:
            # With a clock of its own a call is part of a transaction, which cannot commit half way.
            verbs["submit"] = partial(submit, pools, herald=self.wakeup)
        return verbs

    async def claim_later(self, request: ClaimRequest, patience: Patience) -> Claimed:
        return await wait_for_work(self.wakeup, request, patience)

    async def close(self) -> None:
        pools, self._pools = self._pools, None
        if pools is None:
            return
        await self.wakeup.close()
        await pools.close()

    async def migrate(self, *, run: Sequence[str], read: Sequence[str]) -> tuple[int, int]:
        return await self._prepare(migrate=True, grants=Holders(tuple(run), tuple(read)))

    async def grant(self, *, run: Sequence[str], read: Sequence[str]) -> None:
        await installer.grant(self._address, self._deadline, Holders(tuple(run), tuple(read)))

    async def check_up(self, *, lease_ms: int) -> Checkup:
        return await check_up(self._address, self._deadline, lease_ms)

    async def _prepare(
        self, *, migrate: bool, create: bool = True, grants: Holders = NOBODY
    ) -> tuple[int, int]:
        return await installer.prepare(
            self._address,
            self._deadline,
            migrate=migrate,
            create=create,
            test_clock=self._clock_ms is not None,
            grants=grants,
        )
