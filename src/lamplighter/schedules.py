"""Schedules in a program's hand: put them, look at them, let them go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, TypedDict, Unpack, cast

from lamplighter import options as option
from lamplighter import runtime
from lamplighter.client import Client
from lamplighter.handle import Handle
from lamplighter.job import Call
from lamplighter.model import schedule as calendars
from lamplighter.model.errors import InvalidOption, InvalidTime, UnknownSchedule, WrongState
from lamplighter.model.names import check_schedule, shown
from lamplighter.model.recurring import (
    BACKFILL_LIMIT,
    CatchUp,
    Overlap,
    Policy,
    Spec,
    Template,
    jitter_of,
)
from lamplighter.model.retry import LONGEST_DELAY
from lamplighter.model.schedule import Calendar, Cron, Interval, Preview
from lamplighter.model.timetable import Timetable, milliseconds, moment
from lamplighter.port import specs
from lamplighter.port.schedules import (
    Backfill,
    NewSchedule,
    Put,
    Run,
    RunKind,
    RunRecord,
    ScheduleAnswer,
    ScheduleChanged,
    ScheduleFilter,
    ScheduleRecord,
    Triggered,
)
from lamplighter.port.store import queue_topic

PAGE = 100

_LAST_MS = 253_402_300_799_000
"""The last second of the year 9999: later instants cannot be shown as dates."""


class ScheduleOptions(TypedDict, total=False):
    """How a schedule behaves. None means: not given."""

    timezone: str | None
    """IANA name, for a calendar that is given as text; UTC without it."""
    overlap: Literal["skip", "allow", "queue_one", "queue_all", "cancel_running"] | None
    """What happens to an occurrence while the run before it has not ended; `skip` without it."""
    catch_up: Literal["latest", "all", "none"] | None
    """Which occurrences are made up for that nobody was there to fire; `latest` without it."""
    window: float | timedelta | None
    """Seconds after which a missed occurrence is not made up for; an hour without it."""
    jitter: float | timedelta | None
    """Shift it by a part of these seconds that is always the same for its id."""
    start: datetime | None
    end: datetime | None
    max_runs: int | None
    hold_after: int | None
    """Hold it after so many runs in a row that ended dead."""
    keep_succeeded: int | None
    keep_failed: int | None
    """How many ended runs are remembered; 100 each without it."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it stands in the store."""

    record: ScheduleRecord

    @property
    def id(self) -> str:
        """Its name."""
        return self.record.id

    @property
    def spec(self) -> Spec:
        """Calendar, job and policy; InvalidInput if another version has written them."""
        return specs.from_text(self.record.spec, self.record.id)

    @property
    def next_run(self) -> datetime | None:
        """When its next occurrence is fired; None: never, or it is held."""
        due = self.record.due_ms
        return None if due is None or self.record.hold is not None else moment(due)

    @property
    def shift(self) -> timedelta:
        """How much later than its calendar says it is fired: its part of the jitter."""
        return timedelta(milliseconds=jitter_of(self.id, self.spec.policy.jitter_ms))

    def preview(self, count: int = 10, *, after: datetime | None = None) -> list[Preview]:
        """Give its next occurrences, with marks where a change of the clocks acts.

        Within its start, end and number of runs; each is fired ``shift`` later.
        """
        begin = moment(runtime.now_ms() if after is None else _instant("after", after))
        policy = self.spec.policy
        if policy.start_ms is not None:
            begin = max(begin, moment(policy.start_ms - 1))
        found = calendars.preview(self.spec.calendar, begin, count)
        if policy.max_runs is not None:
            found = found[: max(0, policy.max_runs - self.record.fired)]
        if policy.end_ms is None:
            return found
        end = moment(policy.end_ms)
        return [run for run in found if run.utc <= end]


def calendar_of(given: object, timezone: str | None = None, *, seed: str = "") -> Calendar:
    """Read a calendar as users write it: cron text, a time between runs, or a calendar."""
    if isinstance(given, Calendar):
        if timezone is not None:
            raise InvalidOption(
                f"the time zone {shown(timezone)} is given beside a calendar that has its own",
                hint="give it to the calendar, as in Cron(…, timezone=…)",
                value=timezone,
            )
        return calendars.decode(calendars.encode(given), seed=seed) if seed else given
    if isinstance(given, str):
        return Cron(given, timezone=timezone or "UTC", seed=seed)
    if isinstance(given, timedelta) and timezone is None:
        return Interval(given)
    if isinstance(given, timedelta):
        raise InvalidOption(
            f"the time zone {shown(timezone)} is given beside {shown(given)}, which is the same "
            "in all of them",
            hint="leave it out, or say when by a cron expression",
            value=timezone,
        )
    raise InvalidOption(
        f"{shown(given)} is no calendar",
        hint='give a cron expression as in "0 0 * * *", a timedelta, or a calendar: Cron, '
        "Interval, RRule, Once",
        value=given,
    )


def new_schedule(
    schedule_id: str, calendar: object, call: Call[object], options: Mapping[str, object]
) -> NewSchedule:
    """Check everything about a schedule, and make it ready to be put."""
    option.check_known(options, ScheduleOptions.__annotations__, "a schedule")
    given = {name: value for name, value in options.items() if value is not None}
    check_schedule(schedule_id)
    timezone = given.pop("timezone", None)
    spec = Spec(
        calendar=calendar_of(calendar, cast("str | None", timezone), seed=schedule_id),
        template=_template(call),
        policy=_policy(given),
    )
    return NewSchedule(
        id=schedule_id,
        spec=specs.to_text(spec),
        tenant=spec.template.tenant,
        type=spec.template.type,
        due_ms=Timetable(schedule_id, spec).due_after(runtime.now_ms()),
        zones=calendars.tzdata_version(),
    )


def looked_at_next(new: NewSchedule) -> NewSchedule:
    """Give a schedule that was made earlier with the next occurrence from now on."""
    times = Timetable(new.id, specs.from_text(new.spec, new.id))
    return replace(new, due_ms=times.due_after(runtime.now_ms()))


class Schedules:
    """``app.schedules``: what a program and its operators do with schedules."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.declared: dict[str, NewSchedule] = {}
        """Those that ``@app.schedule`` has declared, by id."""

    def declare(
        self, schedule_id: str, calendar: object, call: Call[Any], options: Mapping[str, object]
    ) -> None:
        """Remember a schedule that workers put when they start."""
        if schedule_id in self.declared:
            raise InvalidOption(
                f"the schedule {shown(schedule_id)} is declared twice",
                hint="give each its own name, as in @app.schedule(…, id=…)",
                value=schedule_id,
            )
        self.declared[schedule_id] = new_schedule(schedule_id, calendar, call, options)

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
        (answer,) = await self.put_many([new_schedule(schedule_id, calendar, call, options)])
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

    async def get(self, schedule_id: str) -> Schedule:
        """Give one schedule, or raise UnknownSchedule."""
        check_schedule(schedule_id)
        engine = await self._client.engine()
        found = await self._client.repeatable(lambda: engine.schedules.schedule(schedule_id))
        if found is None:
            raise unknown(schedule_id)
        return Schedule(found)

    async def list(self, which: ScheduleFilter | None = None) -> AsyncIterator[Schedule]:
        """Give schedules by id."""
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

    async def runs(self, schedule_id: str, *, limit: int = PAGE) -> list[RunRecord]:
        """Give the latest occurrences and what became of them, the latest due first."""
        check_schedule(schedule_id)
        engine = await self._client.engine()
        found: list[RunRecord] = []
        cursor: str | None = None
        while len(found) < limit:
            size = min(PAGE, limit - len(found))
            ask = partial(engine.schedules.runs, schedule_id, limit=size, cursor=cursor)
            page = await self._client.repeatable(ask)
            found += page.runs
            cursor = page.cursor
            if cursor is None:
                break
        if not found:
            await self.get(schedule_id)
        return found

    async def trigger(
        self, schedule_id: str, *, by: str = "app", reason: str = ""
    ) -> tuple[Triggered, Handle[object] | None]:
        """Run it now, as its overlap policy allows; its own occurrences go on as they were."""
        found = await self.get(schedule_id)
        engine = await self._client.engine()
        times = Timetable(schedule_id, found.spec)
        now_ms = runtime.now_ms()
        job = times.triggered(now_ms, runtime.random_bits(70))
        run = Run(due_ms=now_ms, job=job, kind=RunKind.TRIGGER, overlap=found.spec.policy.overlap)
        answer = await self._client.repeatable(
            lambda: engine.schedules.trigger(schedule_id, run, by=by, reason=reason)
        )
        if answer.answer is ScheduleAnswer.UNKNOWN:
            raise unknown(schedule_id)
        if answer.job_id is None:
            return answer, None
        await engine.wakeup.notify(queue_topic(job.queue), jobs={job.type: 1})
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
    ) -> ScheduleChanged:
        """Run its occurrences after ``start`` up to ``end``, ``limit`` at a time.

        Occurrences that were run before are left alone.
        """
        check_schedule(schedule_id)
        wanted = _past(start, end, limit)
        engine = await self._client.engine()
        answer = await self._client.repeatable(
            lambda: engine.schedules.backfill(schedule_id, wanted, by=by, reason=reason)
        )
        if answer.answer is ScheduleAnswer.UNKNOWN:
            raise unknown(schedule_id)
        if answer.answer is ScheduleAnswer.CONFLICT:
            raise WrongState(
                f"another backfill of the schedule {shown(schedule_id)} is under way",
                hint="wait for its end: `lamplighter schedules show` tells how far it is",
                value=schedule_id,
            )
        return answer

    async def hold(self, *ids: str, by: str = "app", reason: str = "") -> list[ScheduleChanged]:
        """Keep schedules from being fired. If one is unknown, nothing is done to any."""
        return await self._change("hold_schedules", ids, by, reason)

    async def unhold(self, *ids: str, by: str = "app", reason: str = "") -> list[ScheduleChanged]:
        """Let held schedules go on; what was missed is made up for as their policy says."""
        return await self._change("unhold_schedules", ids, by, reason)

    async def delete(self, *ids: str, by: str = "app", reason: str = "") -> list[ScheduleChanged]:
        """Remove schedules and their history. Jobs that run or wait go on; queued ones do not."""
        return await self._change("delete_schedules", ids, by, reason)

    async def _change(
        self, verb: str, ids: tuple[str, ...], by: str, reason: str
    ) -> list[ScheduleChanged]:
        engine = await self._client.engine()
        change = getattr(engine.schedules, verb)
        named = list(dict.fromkeys(ids))
        for schedule_id in named:
            await self.get(schedule_id)
        size = engine.capabilities.max_batch
        answers: list[ScheduleChanged] = []
        for start in range(0, len(named), size):
            batch = named[start : start + size]
            answers += await self._client.repeatable(
                lambda batch=batch: change(batch, by=by, reason=reason)
            )
        return answers


def unknown(schedule_id: str) -> UnknownSchedule:
    """Make the error for an id that leads nowhere."""
    return UnknownSchedule(
        f"no schedule {shown(schedule_id)} is in the store",
        hint="check the id and the address of the store; `lamplighter schedules list` shows all",
        value=schedule_id,
    )


def _made(schedule: object) -> NewSchedule:
    if isinstance(schedule, NewSchedule):
        return schedule
    raise InvalidOption(
        f"{shown(schedule)} is no schedule that could be put",
        hint="make it with app.schedules.make(…), which takes what app.schedules.put takes",
        value=schedule,
    )


def _template(call: object) -> Template:
    if not isinstance(call, Call):
        raise InvalidOption(
            f"{shown(call)} is no call of a job",
            hint="say what is to run with which arguments, as in report.call(month=3)",
            value=call,
        )
    new = cast("Call[object]", call).new
    if new.key is not None or new.delay_ms or new.run_at_ms is not None:
        raise InvalidOption(
            f"the job of a schedule, {shown(new.type)}, has a delay, a time or a key of its own",
            hint="leave out delay, run_at and idempotency_key: the schedule says when",
            value=new.type,
        )
    return Template(
        type=new.type,
        args=new.args,
        queue=new.queue,
        level=new.level,
        tenant=new.tenant,
        delivery=new.delivery,
        extras=new.extras,
        cost=new.cost,
    )


def _policy(given: Mapping[str, object]) -> Policy:
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in {"window", "jitter"}:
            values[f"{name}_ms"] = _duration(name, value)
        elif name in {"start", "end"}:
            values[f"{name}_ms"] = _instant(name, value)
        elif name == "overlap":
            values[name] = _choice(Overlap, name, value)
        elif name == "catch_up":
            values[name] = _choice(CatchUp, name, value)
        elif isinstance(value, int) and not isinstance(value, bool):
            values[name] = value
        else:
            raise InvalidOption(
                f"{name} is {shown(value)}", hint="give a whole number", value=value
            )
    if values.get("end_ms", _LAST_MS) < values.get("start_ms", 0):
        raise InvalidOption(
            f"the end {given['end']} is before the start {given['start']}",
            hint="give an end that is later than the start",
            value=given["end"],
        )
    return Policy(**values)


def _past(start: object, end: object, limit: object) -> Backfill:
    """Check which occurrences are to be run again."""
    from_ms, to_ms = _instant("start", start), _instant("end", end)
    if to_ms <= from_ms:
        raise InvalidOption(
            f"the backfill ends at {end} and begins at {start}",
            hint="give an end that is later than the start",
            value=end,
        )
    if to_ms > runtime.now_ms():
        raise InvalidOption(
            f"the backfill ends at {end}, which has not come yet",
            hint="give an end up to now: what comes later is fired when it is due",
            value=end,
        )
    if type(limit) is not int or not 1 <= limit <= BACKFILL_LIMIT:
        raise InvalidOption(
            f"{shown(limit)} jobs of a backfill cannot run at once",
            hint=f"give 1 to {BACKFILL_LIMIT}",
            value=limit,
        )
    return Backfill(from_ms=from_ms, to_ms=to_ms, cursor_ms=from_ms, limit=limit)


def _choice(kind: type[Overlap | CatchUp], name: str, value: object) -> Overlap | CatchUp:
    try:
        return kind(value)
    except ValueError:
        raise InvalidOption(
            f"{name} is {shown(value)}", hint=f"give one of {', '.join(kind)}", value=value
        ) from None


def _duration(what: str, value: object) -> int:
    number = option.seconds(what, value)
    if not 0 <= number <= LONGEST_DELAY:
        raise InvalidTime(
            f"{what} {shown(value)} is out of range",
            hint=f"give 0 to {LONGEST_DELAY:.0f} seconds",
            value=value,
        )
    return round(number * 1000)


def _instant(what: str, value: object) -> int:
    if not isinstance(value, datetime):
        raise InvalidTime(
            f"{what} {shown(value)} is no datetime",
            hint="give a datetime with a time zone, as in datetime(2026, 3, 1, tzinfo=UTC)",
            value=value,
        )
    if value.utcoffset() is None:
        raise InvalidTime(
            f"{what} {shown(value.isoformat())} has no time zone, so it is no instant",
            hint="give one, as in datetime(2026, 3, 1, tzinfo=UTC) or with ZoneInfo",
            value=value,
        )
    at_ms = milliseconds(value)
    if not 0 <= at_ms <= _LAST_MS:
        raise InvalidTime(
            f"{what} {shown(value.isoformat())} is out of range",
            hint="give a time in the years 1970 to 9999",
            value=value,
        )
    return at_ms
