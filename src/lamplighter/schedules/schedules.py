"""Schedules in a program's hand: put them, look at them, let them go."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar, Unpack

from lamplighter import runtime
from lamplighter.client import Client
from lamplighter.handle import Handle
from lamplighter.job import Call
from lamplighter.model.errors import InvalidOption, UnknownSchedule, WrongState
from lamplighter.model.ids import of_wish
from lamplighter.model.names import DEFAULT_TENANT, check_name, check_schedule, shown
from lamplighter.model.recurring import Overlap
from lamplighter.model.schedule import Calendar
from lamplighter.model.timetable import Timetable
from lamplighter.port.schedules import (
    NewSchedule,
    Put,
    Run,
    RunKind,
    RunRecord,
    ScheduleAnswer,
    ScheduleChanged,
    ScheduleFilter,
    Triggered,
)
from lamplighter.port.store import CANCEL_TOPIC, queue_topic
from lamplighter.portal import Work
from lamplighter.schedules.making import ScheduleOptions, looked_at_next, new_schedule, past
from lamplighter.schedules.stored import Schedule

T = TypeVar("T")

log = logging.getLogger("lamplighter.schedules")

PAGE = 100


class Schedules:
    """``app.schedules``: what a program and its operators do with schedules."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.declared: dict[tuple[str, str], NewSchedule] = {}
        """Those that ``@app.schedule`` has declared, by tenant and id."""

    def declare(
        self, schedule_id: str, calendar: object, call: Call[Any], options: Mapping[str, object]
    ) -> None:
        """Remember a schedule that workers put when they start."""
        new = new_schedule(schedule_id, calendar, call, options)
        if (new.tenant, new.id) in self.declared:
            raise InvalidOption(
                f"the schedule {shown(schedule_id)} is declared twice",
                hint="give each its own name, as in @app.schedule(…, id=…)",
                value=schedule_id,
            )
        self.declared[new.tenant, new.id] = new

    async def put(
        self,
        schedule_id: str,
        calendar: str | timedelta | Calendar,
        call: Call[Any],
        **options: Unpack[ScheduleOptions],
    ) -> Put:
        """Create a schedule, or change it: ``put("nightly", "0 2 * * *", report.call())``.

        A changed one keeps its history, and fires no occurrence twice.
        """
        new = _looked_over(new_schedule(schedule_id, calendar, call, options))
        (answer,) = await self.put_many([new])
        return answer

    def make(
        self,
        schedule_id: str,
        calendar: str | timedelta | Calendar,
        call: Call[Any],
        **options: Unpack[ScheduleOptions],
    ) -> NewSchedule:
        """Check a schedule without putting it yet; ``put_many`` takes it."""
        return new_schedule(schedule_id, calendar, call, options)

    async def put_many(self, schedules: Iterable[NewSchedule], *, by: str = "app") -> list[Put]:
        """Put many, in batches as large as the store takes. Doing it twice is doing it once."""
        engine = await self._client.engine()
        found = [_made(schedule) for schedule in schedules]
        size = engine.capabilities.max_batch
        answers: list[Put] = []
        for start in range(0, len(found), size):
            batch = found[start : start + size]
            answers += await self._client.repeatable(
                lambda batch=batch: engine.schedules.put_schedules(batch, by=by)
            )
        return answers

    async def put_declared(self, *, by: str = "app") -> list[Put]:
        """Put what ``@app.schedule`` has declared. Workers do that when they start."""
        return await self.put_many(map(looked_at_next, self.declared.values()), by=by)

    async def get(self, schedule_id: str, *, tenant: str = DEFAULT_TENANT) -> Schedule:
        """Return one schedule of a tenant, or raise UnknownSchedule.

        Ids are unique in a tenant: here and below, what is another tenant's is unknown.
        """
        check_schedule(schedule_id)
        check_name("tenant", tenant)
        engine = await self._client.engine()
        found = await self._client.repeatable(
            lambda: engine.schedules.schedule(schedule_id, tenant=tenant)
        )
        if found is None:
            raise unknown(schedule_id, tenant)
        return Schedule(found)

    async def list(self, which: ScheduleFilter | None = None) -> AsyncIterator[Schedule]:
        """Yield schedules by tenant and id."""
        engine = await self._client.engine()
        cursor: str | None = None
        ask = partial(engine.schedules.schedules, which or ScheduleFilter(), limit=PAGE)
        while True:
            page = await self._client.repeatable(partial(ask, cursor=cursor))
            for record in page.schedules:
                yield Schedule(record)
            cursor = page.cursor
            if cursor is None:
                return

    async def runs(
        self, schedule_id: str, *, limit: int = PAGE, tenant: str = DEFAULT_TENANT
    ) -> list[RunRecord]:
        """Return the latest occurrences and what became of them, the latest due first."""
        check_schedule(schedule_id)
        engine = await self._client.engine()
        found: list[RunRecord] = []
        cursor: str | None = None
        while len(found) < limit:
            size = min(PAGE, limit - len(found))
            ask = partial(engine.schedules.runs, schedule_id, tenant=tenant)
            page = await self._client.repeatable(partial(ask, limit=size, cursor=cursor))
            found += page.runs
            cursor = page.cursor
            if cursor is None:
                break
        if not found:
            await self.get(schedule_id, tenant=tenant)
        return found

    async def trigger(
        self,
        schedule_id: str,
        *,
        by: str = "app",
        reason: str = "",
        tenant: str = DEFAULT_TENANT,
        key: str | None = None,
    ) -> tuple[Triggered, Handle[object] | None]:
        """Run it now, as its overlap policy allows; its own occurrences go on as they were.

        With a key, the same again gives the same answer and no second run, as long as the schedule
        remembers the first.
        """
        found = await self.get(schedule_id, tenant=tenant)
        engine = await self._client.engine()
        times = Timetable(schedule_id, found.spec)
        now_ms = runtime.now_ms()
        job = times.triggered(now_ms, runtime.random_bits(70))
        if key is not None:
            job = replace(job, id=of_wish(tenant, schedule_id, found.record.created_at_ms, key))
        run = Run(due_ms=now_ms, job=job, kind=RunKind.TRIGGER, overlap=found.spec.policy.overlap)
        answer = await self._client.repeatable(
            lambda: engine.schedules.trigger(schedule_id, run, by=by, reason=reason, tenant=tenant)
        )
        if answer.answer is ScheduleAnswer.UNKNOWN:
            raise unknown(schedule_id, tenant)
        if answer.job_id is None:
            return answer, None
        await engine.wakeup.notify(queue_topic(job.queue), jobs={job.type: 1})
        if run.overlap is Overlap.CANCEL_RUNNING:
            await engine.wakeup.notify(CANCEL_TOPIC)
        return answer, Handle(self._client, answer.job_id)

    async def backfill(
        self,
        schedule_id: str,
        start: datetime,
        end: datetime,
        *,
        limit: int = 1,
        by: str = "app",
        reason: str = "",
        tenant: str = DEFAULT_TENANT,
    ) -> ScheduleChanged:
        """Run its occurrences after ``start`` up to ``end``, ``limit`` at a time.

        Occurrences that were run before are left alone.
        """
        check_schedule(schedule_id)
        wanted = past(start, end, limit)
        engine = await self._client.engine()
        answer = await self._client.repeatable(
            lambda: engine.schedules.backfill(
                schedule_id, wanted, by=by, reason=reason, tenant=tenant
            )
        )
        if answer.answer is ScheduleAnswer.UNKNOWN:
            raise unknown(schedule_id, tenant)
        if answer.answer is ScheduleAnswer.CONFLICT:
            raise WrongState(
                f"another backfill of the schedule {shown(schedule_id)} is under way",
                hint="wait for its end: `lamplighter schedules show` tells how far it is",
                value=schedule_id,
            )
        return answer

    async def hold(
        self, *ids: str, by: str = "app", reason: str = "", tenant: str = DEFAULT_TENANT
    ) -> list[ScheduleChanged]:
        """Keep schedules from being fired. If one is unknown, nothing is done to any."""
        return await self._change("hold_schedules", ids, by, reason, tenant)

    async def unhold(
        self, *ids: str, by: str = "app", reason: str = "", tenant: str = DEFAULT_TENANT
    ) -> list[ScheduleChanged]:
        """Let held schedules go on; what was missed is made up for as their policy says."""
        return await self._change("unhold_schedules", ids, by, reason, tenant)

    async def delete(
        self, *ids: str, by: str = "app", reason: str = "", tenant: str = DEFAULT_TENANT
    ) -> list[ScheduleChanged]:
        """Remove schedules and their history. Jobs that run or wait go on; queued ones do not."""
        return await self._change("delete_schedules", ids, by, reason, tenant)

    async def _change(
        self, verb: str, ids: tuple[str, ...], by: str, reason: str, tenant: str
    ) -> list[ScheduleChanged]:
        engine = await self._client.engine()
        change = getattr(engine.schedules, verb)
        named = list(dict.fromkeys(ids))
        for schedule_id in named:
            await self.get(schedule_id, tenant=tenant)
        size = engine.capabilities.max_batch
        answers: list[ScheduleChanged] = []
        for start in range(0, len(named), size):
            batch = named[start : start + size]
            found, again = await self._client.repeated(
                lambda batch=batch: change(batch, by=by, reason=reason, tenant=tenant)
            )
            answers += map(_removed, found) if again and verb == "delete_schedules" else found
        return answers

    # ── the same from plain code ─────────────────────────────────────────────────────────────

    def put_sync(
        self,
        schedule_id: str,
        calendar: str | timedelta | Calendar,
        call: Call[Any],
        **options: Unpack[ScheduleOptions],
    ) -> Put:
        """``put`` for code without an event loop."""
        new = _looked_over(new_schedule(schedule_id, calendar, call, options))
        (answer,) = self._run(lambda: self.put_many([new]), "put(…)")
        return answer

    def put_many_sync(self, schedules: Iterable[NewSchedule], *, by: str = "app") -> list[Put]:
        """``put_many`` for code without an event loop."""
        return self._run(lambda: self.put_many(schedules, by=by), "put_many(…)")

    def put_declared_sync(self, *, by: str = "app") -> list[Put]:
        """``put_declared`` for code without an event loop."""
        return self._run(lambda: self.put_declared(by=by), "put_declared()")

    def get_sync(self, schedule_id: str, *, tenant: str = DEFAULT_TENANT) -> Schedule:
        """``get`` for code without an event loop."""
        return self._run(lambda: self.get(schedule_id, tenant=tenant), "get(…)")

    def list_sync(self, which: ScheduleFilter | None = None) -> list[Schedule]:
        """``list`` for code without an event loop: all of them at once."""

        async def gather() -> list[Schedule]:
            return [one async for one in self.list(which)]

        return self._run(gather, "list()")

    def runs_sync(
        self, schedule_id: str, *, limit: int = PAGE, tenant: str = DEFAULT_TENANT
    ) -> list[RunRecord]:
        """``runs`` for code without an event loop."""
        return self._run(lambda: self.runs(schedule_id, limit=limit, tenant=tenant), "runs(…)")

    def trigger_sync(
        self, schedule_id: str, *, by: str = "app", reason: str = "", tenant: str = DEFAULT_TENANT
    ) -> tuple[Triggered, Handle[object] | None]:
        """``trigger`` for code without an event loop."""
        return self._run(
            lambda: self.trigger(schedule_id, by=by, reason=reason, tenant=tenant), "trigger(…)"
        )

    def backfill_sync(
        self,
        schedule_id: str,
        start: datetime,
        end: datetime,
        *,
        limit: int = 1,
        by: str = "app",
        reason: str = "",
        tenant: str = DEFAULT_TENANT,
    ) -> ScheduleChanged:
        """``backfill`` for code without an event loop."""
        return self._run(
            lambda: self.backfill(
                schedule_id, start, end, limit=limit, by=by, reason=reason, tenant=tenant
            ),
            "backfill(…)",
        )

    def hold_sync(
        self, *ids: str, by: str = "app", reason: str = "", tenant: str = DEFAULT_TENANT
    ) -> list[ScheduleChanged]:
        """``hold`` for code without an event loop."""
        return self._run(lambda: self.hold(*ids, by=by, reason=reason, tenant=tenant), "hold(…)")

    def unhold_sync(
        self, *ids: str, by: str = "app", reason: str = "", tenant: str = DEFAULT_TENANT
    ) -> list[ScheduleChanged]:
        """``unhold`` for code without an event loop."""
        return self._run(
            lambda: self.unhold(*ids, by=by, reason=reason, tenant=tenant), "unhold(…)"
        )

    def delete_sync(
        self, *ids: str, by: str = "app", reason: str = "", tenant: str = DEFAULT_TENANT
    ) -> list[ScheduleChanged]:
        """``delete`` for code without an event loop."""
        return self._run(
            lambda: self.delete(*ids, by=by, reason=reason, tenant=tenant), "delete(…)"
        )

    def _run(self, work: Work[T], instead: str) -> T:
        return self._client.portal.run(work, instead=f"app.schedules.{instead}")


def unknown(schedule_id: str, tenant: str) -> UnknownSchedule:
    """Make the error for an id that leads nowhere."""
    return UnknownSchedule(
        f"the tenant {shown(tenant)} has no schedule {shown(schedule_id)} in the store",
        hint="check the id, the tenant and the address of the store; `lamplighter schedules list` "
        "shows all",
        value=schedule_id,
    )


def _looked_over(new: NewSchedule) -> NewSchedule:
    """Warn of a schedule that is over before it begins."""
    if new.first_ms is None:
        log.warning(
            "the schedule %s never fires: nothing of its calendar lies ahead", shown(new.id)
        )
    return new


def _made(schedule: object) -> NewSchedule:
    if isinstance(schedule, NewSchedule):
        return schedule
    raise InvalidOption(
        f"{shown(schedule)} is no schedule that could be put",
        hint="make it with app.schedules.make(…), which takes what app.schedules.put takes",
        value=schedule,
    )


def _removed(changed: ScheduleChanged) -> ScheduleChanged:
    """Take what was there, and is unknown to a second try, for removed by the first."""
    if changed.answer is ScheduleAnswer.UNKNOWN:
        return replace(changed, answer=ScheduleAnswer.DONE)
    return changed
