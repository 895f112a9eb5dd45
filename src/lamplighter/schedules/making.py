"""A schedule as users write it, checked before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict, cast

from lamplighter import options as option
from lamplighter import runtime
from lamplighter.job import Call
from lamplighter.model import schedule as calendars
from lamplighter.model.errors import InvalidOption, InvalidTime
from lamplighter.model.ids import schedule_key
from lamplighter.model.names import check_schedule, shown
from lamplighter.model.recurring import (
    BACKFILL_LIMIT,
    CatchUp,
    Overlap,
    Policy,
    Spec,
    Template,
)
from lamplighter.model.retry import LONGEST_DELAY
from lamplighter.model.schedule import Calendar, Cron, Interval
from lamplighter.model.schedule.effort import bounded
from lamplighter.model.timetable import Timetable, shown_instant
from lamplighter.port import specs
from lamplighter.port.schedules import Backfill, NewSchedule


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
    """No occurrence before this instant."""
    end: datetime | None
    """No occurrence after this instant."""
    max_runs: int | None
    """It is over after so many jobs; triggers and backfills do not count."""
    hold_after: int | None
    """Hold it after so many runs in a row that ended dead."""
    keep_succeeded: int | None
    """How many runs that succeeded are remembered; 100 without it."""
    keep_failed: int | None
    """How many ended runs are remembered; 100 each without it."""


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
    timezone, template = given.pop("timezone", None), _template(call)
    seed = schedule_key(template.tenant, schedule_id)
    spec = Spec(
        calendar=calendar_of(calendar, cast("str | None", timezone), seed=seed),
        template=template,
        policy=_policy(given),
    )
    new = NewSchedule(
        id=schedule_id,
        spec=specs.to_text(spec),
        tenant=spec.template.tenant,
        type=spec.template.type,
        due_ms=None,
        zones=calendars.tzdata_version(),
    )
    times = Timetable(schedule_id, spec)
    with bounded():
        made = _next_of(new, times)
        # What is over is no mistake: its time has come once. What never comes is one.
        if made.first_ms is None and not times.began_by(runtime.now_ms()):
            raise _never(times)
    return made


def looked_at_next(new: NewSchedule) -> NewSchedule:
    """Return a schedule that was made earlier with the next occurrence from now on."""
    return _next_of(new, Timetable(new.id, specs.from_text(new.spec, new.id)))


def _next_of(new: NewSchedule, times: Timetable) -> NewSchedule:
    first_ms = times.next_after(runtime.now_ms())
    due_ms = None if first_ms is None else first_ms + times.offset_ms
    return replace(new, due_ms=due_ms, first_ms=first_ms)


def _never(times: Timetable) -> InvalidOption:
    policy, calendar = times.spec.policy, times.spec.calendar
    bounds = (("from", policy.start_ms), ("up to", policy.end_ms))
    within = "".join(f" {word} {shown_instant(at)}" for word, at in bounds if at is not None)
    return InvalidOption(
        f"the schedule {shown(times.id)} would never fire: {shown(calendar.describe())} has no "
        f"occurrence{within}",
        hint="let start and end leave room for an occurrence, or say when by another calendar",
        value=times.id,
    )


def past(start: object, end: object, limit: object) -> Backfill:
    """Check which occurrences are to be run again."""
    from_ms, to_ms = instant("start", start), instant("end", end)
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
            values[f"{name}_ms"] = instant(name, value)
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
    if "end_ms" in values and values["end_ms"] < values.get("start_ms", 0):
        raise InvalidOption(
            f"the end {given['end']} is before the start {given['start']}",
            hint="give an end that is later than the start",
            value=given["end"],
        )
    return Policy(**values)


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


def instant(what: str, value: object) -> int:
    """Check an instant that occurrences can have."""
    at_ms = option.instant(what, value)
    if at_ms < 0:
        raise InvalidTime(
            f"{what} {shown(cast('datetime', value).isoformat())} is before the year 1970",
            hint="give a later time",
            value=value,
        )
    return at_ms
