"""The engine for `redis://`: its verbs, and how its server is opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from lamplighter.engines.redis import acl, address, installer, server
from lamplighter.engines.redis.promises import DECLARED
from lamplighter.engines.redis.transport import Transport
from lamplighter.engines.redis.verbs import (
    access,
    activity,
    backlog,
    inspect,
    inspect_schedules,
    listing,
    membership,
    queues,
    rescue,
    schedules,
    settings,
)
from lamplighter.engines.redis.verbs.change import change
from lamplighter.engines.redis.verbs.check_up import check_up
from lamplighter.engines.redis.verbs.claim import claim
from lamplighter.engines.redis.verbs.due_schedules import due_schedules
from lamplighter.engines.redis.verbs.fire import fire, trigger
from lamplighter.engines.redis.verbs.prune import prune
from lamplighter.engines.redis.verbs.record import record
from lamplighter.engines.redis.verbs.renew import renew
from lamplighter.engines.redis.verbs.settle import settle
from lamplighter.engines.redis.verbs.submit import submit
from lamplighter.engines.redis.wakeup import RedisWakeup
from lamplighter.model.errors import InvalidOption
from lamplighter.port.checkup import Checkup

Verb = Callable[..., Awaitable[Any]]

_VERBS: tuple[Verb, ...] = (
    *(submit, claim, renew, settle, record, rescue.rescue, rescue.claims_of, prune, change),
    *(schedules.put_schedules, due_schedules, fire, trigger, schedules.backfill),
    *(schedules.hold_schedules, schedules.unhold_schedules, schedules.delete_schedules),
    *(membership.join, membership.beat, membership.leave, membership.lead),
    *(settings.put_queue, settings.put_tenant, settings.put_type),
    *(queues.enter_queues, queues.remove_queue, activity.tally),
    *(access.put_token, access.revoke_token, access.note_audit, access.prune_access, access.spend),
    *(inspect.job, listing.jobs, inspect.explain, inspect.counts, inspect.attempts, inspect.logs),
    *(backlog.queues, backlog.queue, backlog.tenants, backlog.tenant, queues.held),
    *(membership.types, membership.workers, listing.dead_groups),
    *(inspect_schedules.schedule, inspect_schedules.schedules, inspect_schedules.runs),
    *(activity.activity, activity.standing),
    *(access.token, access.tokens, access.audit, access.spent),
)


class RedisDriver:
    """The engine in memory.

    ``clock_ms`` is for tests: each call then tells the store what time it is.
    """

    wakeup: RedisWakeup

    def __init__(self, url: str, clock_ms: Callable[[], int] | None, deadline: float) -> None:
        self._address = address.parse(url)
        self.where = self._address.shown
        self.capabilities = DECLARED[self._address.durability]
        self._clock_ms = clock_ms
        self._deadline = deadline
        self._transport: Transport | None = None

    async def open(self, *, create: bool) -> Mapping[str, Verb]:
        _, state, facts = await self._prepare(create=create)
        alone = state.shards == 1
        self.capabilities = replace(
            self.capabilities, shards=state.shards, claims_ahead=alone, tells_calm=alone
        )
        transport = self._transport = Transport(self._address, self._deadline, self._clock_ms)
        transport.divide(state.shards, state.mark)
        transport.watch(facts.memory)
        wakeup = self.wakeup = RedisWakeup(self._address, transport)
        return {
            **{verb.__name__: partial(verb, transport) for verb in _VERBS},
            "submit": partial(submit, transport, herald=wakeup),
            "claim": partial(claim, transport, hearer=wakeup),
        }

    async def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            return
        await self.wakeup.close()
        await transport.close()

    async def migrate(self, *, run: Sequence[str], read: Sequence[str]) -> tuple[int, int]:
        await self.grant(run=run, read=read)
        before, state, _ = await self._prepare(create=True)
        return before, state.version

    async def grant(self, *, run: Sequence[str], read: Sequence[str]) -> None:
        if run or read:
            name = [*run, *read][0]
            raise InvalidOption(
                f"the rights of Redis users are not ours to give, so `{name}` gets none",
                hint=f"let an administrator say: ACL SETUSER {name} {acl.rule(self._address)}",
                value=name,
            )

    async def check_up(self, *, lease_ms: int) -> Checkup:
        return await check_up(self._address, self._deadline, lease_ms)

    async def _prepare(self, *, create: bool) -> tuple[int, installer.State, server.Facts]:
        return await installer.prepare(
            self._address, self._deadline, create=create, clock_ms=self._clock_ms
        )
