"""The engine for `sqlite:///`: its verbs, and how its file is opened."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lamplighter.engines.sqlite import checkup, database
from lamplighter.engines.sqlite.reader import Reader
from lamplighter.engines.sqlite.registration import Registration
from lamplighter.engines.sqlite.verbs import (
    access,
    activity,
    fire,
    inspect,
    inspect_schedules,
    membership,
    rescue,
    schedules,
    settings,
)
from lamplighter.engines.sqlite.verbs.change import change
from lamplighter.engines.sqlite.verbs.claim import claim
from lamplighter.engines.sqlite.verbs.prune import prune
from lamplighter.engines.sqlite.verbs.record import record
from lamplighter.engines.sqlite.verbs.renew import renew
from lamplighter.engines.sqlite.verbs.settle import settle
from lamplighter.engines.sqlite.verbs.submit import submit
from lamplighter.engines.sqlite.wakeup import SqliteWakeup
from lamplighter.engines.sqlite.writer import Writer
from lamplighter.model.errors import InvalidOption
from lamplighter.port.capabilities import Capabilities
from lamplighter.port.patience import wait_for_work

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from lamplighter.port.checkup import Checkup
    from lamplighter.port.patience import Patience
    from lamplighter.port.values import Claimed, ClaimRequest, Expired

    Verb = Callable[..., Any]
    """A function of a transaction and the verb's own arguments."""

CAPABILITIES = Capabilities(
    name="sqlite",
    many_machines=False,
    push_wakeup=True,
    durable_submit=True,
    loss_window="none, unless the disk lies about having written (WAL, synchronous=FULL)",
    max_batch=10_000,
)

# On disk before they are answered.
_WRITES: tuple[Verb, ...] = (
    *(submit, settle, change),
    *(schedules.put_schedules, schedules.hold_schedules, schedules.unhold_schedules),
    *(schedules.delete_schedules, schedules.backfill, schedules.trigger, fire.fire),
    *(settings.put_queue, settings.put_tenant, settings.put_type),
    *(settings.enter_queues, settings.remove_queue),
    *(access.put_token, access.revoke_token, access.note_audit, access.spend),
)
# A machine that forgets these when it loses power has lost nothing that is not done again.
_SOFT_WRITES: tuple[Verb, ...] = (
    *(claim, renew, record, prune, fire.due_schedules, access.prune_access, activity.tally),
    *(membership.join, membership.beat, membership.leave, membership.lead),
)
_READS: tuple[Verb, ...] = (
    *(inspect.job, inspect.jobs, inspect.explain, inspect.counts, inspect.attempts, inspect.logs),
    *(inspect.queues, inspect.queue, inspect.tenants, inspect.tenant, inspect.held),
    *(inspect.types, inspect.workers, inspect.dead_groups, rescue.claims_of),
    *(inspect_schedules.schedule, inspect_schedules.schedules, inspect_schedules.runs),
    *(activity.activity, activity.standing),
    *(access.token, access.tokens, access.audit, access.spent),
)


class SqliteDriver:
    """The embedded engine."""

    capabilities = CAPABILITIES
    wakeup: SqliteWakeup

    def __init__(self, url: str, clock_ms: Callable[[], int], deadline: float) -> None:
        self._path = database.path_of(url)
        self.where = str(self._path)
        self._clock_ms = clock_ms
        self._deadline = deadline
        self._registration: Registration | None = None
        self._writer: Writer | None = None
        self._reader: Reader | None = None

    async def open(self, *, create: bool) -> Mapping[str, Verb]:
        self._registration, _ = await self._prepare(migrate=False, create=create)
        writer = self._writer = Writer(self._path, self._clock_ms, self._deadline)
        reader = self._reader = Reader(self._path, self._clock_ms)
        self.wakeup = SqliteWakeup(self._path, reader.data_version)

        async def rescue_expired(limit: int) -> list[Expired]:
            if await reader.run(rescue.clock_went_back):
                await writer.run(rescue.cut_leases, durable=False)
            return await reader.run(lambda tx: rescue.rescue(tx, limit))

        return {
            "rescue": rescue_expired,
            **{verb.__name__: _written(writer, verb, durable=True) for verb in _WRITES},
            **{verb.__name__: _written(writer, verb, durable=False) for verb in _SOFT_WRITES},
            **{verb.__name__: _read(reader, verb) for verb in _READS},
        }

    async def claim_later(self, request: ClaimRequest, patience: Patience) -> Claimed:
        return await wait_for_work(self.wakeup, request, patience)

    async def close(self) -> None:
        writer, reader, self._writer, self._reader = self._writer, self._reader, None, None
        if writer is None or reader is None:
            return
        self.wakeup.close()
        ended = await writer.close()
        await reader.close()
        if self._registration is not None and ended:
            self._registration.release()
        self._registration = None

    async def migrate(self, *, run: Sequence[str], read: Sequence[str]) -> tuple[int, int]:
        await self.grant(run=run, read=read)
        registration, versions = await self._prepare(migrate=True)
        registration.release()
        return versions

    async def grant(self, *, run: Sequence[str], read: Sequence[str]) -> None:
        if run or read:
            raise InvalidOption(
                f"SQLite knows no users, so `{[*run, *read][0]}` cannot be given rights",
                hint=f"let the system do it: chown and chmod {self._path}",
                value=[*run, *read][0],
            )

    async def check_up(self, *, lease_ms: int) -> Checkup:
        return await asyncio.to_thread(checkup.check_up, self._path, self._clock_ms, lease_ms)

    async def _prepare(
        self, *, migrate: bool, create: bool = True
    ) -> tuple[Registration, tuple[int, int]]:
        """Register, check and fill the file, in a thread: it may wait for the disk or others."""

        def prepare() -> tuple[Registration, tuple[int, int]]:
            database.check_place(self._path)
            if create:
                database.check_not_moved(self._path)
            else:
                database.check_there(self._path)
            registration = Registration(self._path, create=create)
            try:
                database.mend_modes(self._path)
                return registration, database.prepare(self._path, self._clock_ms, migrate=migrate)
            except BaseException:
                registration.release()
                raise

        return await asyncio.to_thread(prepare)


def _written(
    writer: Writer, verb: Verb, *, durable: bool
) -> Callable[..., Coroutine[Any, Any, Any]]:
    def call(*args: object) -> Coroutine[Any, Any, Any]:
        return writer.run(lambda tx: verb(tx, *args), durable=durable)

    return call


def _read(reader: Reader, verb: Verb) -> Callable[..., Coroutine[Any, Any, Any]]:
    def call(*args: object) -> Coroutine[Any, Any, Any]:
        return reader.run(lambda tx: verb(tx, *args))

    return call
