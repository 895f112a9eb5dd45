"""`lamplighter schedules apply`: let the store have the schedules that a file declares."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import click

from lamplighter.app import App
from lamplighter.cli import noting, output, reading, store
from lamplighter.cli.schedule_job import Types
from lamplighter.cli.schedule_words import NOTHING_AHEAD, changes, interval
from lamplighter.model.errors import InvalidInput, InvalidOption, LamplighterError, UnknownType
from lamplighter.model.names import DEFAULT_TENANT, shown
from lamplighter.model.retry import Retry
from lamplighter.model.schedule import Calendar, Cron, Once, RRule
from lamplighter.options import SubmitOptions, check_known
from lamplighter.port.access import About
from lamplighter.port.schedules import NewSchedule, ScheduleFilter
from lamplighter.schedules import ScheduleOptions, new_schedule

_WHEN = ("cron", "every", "rrule", "once")
_ZONE = ("timezone", "gap", "twice")
_JOB = ("queue", "priority", "tenant", "timeout", "retry", "tags", "metadata")
_POLICY = tuple(name for name in ScheduleOptions.__annotations__ if name != "timezone")
_TIMES = ("start", "end", "once")
_DURATIONS = frozenset({"window", "jitter", "timeout"})
_KNOWN = ("type", "arguments", *_WHEN, *_ZONE, *_JOB, *_POLICY)
_STYLES = {"create": "green", "change": "yellow", "delete": "red", "same": "dim"}


@dataclass(frozen=True, slots=True)
class Step:
    """What is done to one schedule."""

    what: str
    tenant: str
    id: str
    new: NewSchedule | None = None
    changes: tuple[str, ...] = ()
    """What becomes different."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path), default=Path("schedules.toml"))
@click.option("--diff", is_flag=True, help="Only show what would change; 1 as exit code if any.")
@click.option(
    "--delete-others",
    metavar="PREFIX",
    help="Delete those with this prefix not in it, of its tenants.",
)
@click.option("--force", is_flag=True, help="Do it even if no worker has told of a type.")
@store.operator_options
@store.store_options
def apply(
    *,
    file: Path,
    diff: bool,
    delete_others: str | None,
    force: bool,
    by: str | None,
    reason: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Create and change schedules as FILE says; others stay unless --delete-others names them.

    FILE is schedules.toml in this folder if none is named.

    A table for each, as in: [nightly-report] type = "report", cron = "30 2 * * *",
    timezone = "Europe/Berlin". Everything is checked before anything is written.
    """
    if delete_others == "":
        raise InvalidOption(
            "the prefix of --delete-others is empty: all that is not in the file would be deleted",
            hint="name the prefix of those that the file is for, or leave the option out",
            value=delete_others,
        )
    declared = read(file)
    who = store.operator(by)

    async def work(app: App) -> list[Step]:
        types = await Types.read(app, force=force)
        wanted = [await _made(app, types, file, name, table) for name, table in declared.items()]
        steps = await _steps(app, wanted, delete_others)
        if not diff:
            await _take(app, steps, who, reason)
        return steps

    steps = store.run_app(url, work, create=force and not diff)
    _show(steps, file, as_json=as_json)
    if diff and any(step.what != "same" for step in steps):
        raise SystemExit(1)


async def _take(app: App, steps: list[Step], by: str, reason: str) -> None:
    """Do what the steps say, and note it."""
    engine = await app.engine()
    todo = [step.new for step in steps if step.new and step.what != "same"]
    answers = await app.schedules.put_many(todo, by=by)
    about = [
        About(new.id, new.tenant, put.answer.value) for new, put in zip(todo, answers, strict=True)
    ]
    await noting.note(engine, "schedules.put", about, by=by, reason=reason)
    gone = [step for step in steps if step.what == "delete"]
    for tenant, some in groupby(gone, lambda step: step.tenant):
        ids = [step.id for step in some]
        await app.schedules.delete(*ids, by=by, reason=reason, tenant=tenant)
        about = [About(one, tenant) for one in ids]
        await noting.note(engine, "schedule.delete", about, by=by, reason=reason)


def _show(steps: list[Step], file: Path, *, as_json: bool) -> None:
    if as_json:
        output.print_json(
            {
                "steps": [
                    {
                        "tenant": step.tenant,
                        "id": step.id,
                        "what": step.what,
                        "changes": list(step.changes),
                    }
                    for step in steps
                ]
            }
        )
    else:
        output.print_table(
            ["", "schedule", "~"],
            (
                [(step.what, _STYLES[step.what]), step.id, (", ".join(step.changes), "dim")]
                for step in steps
            ),
            empty=f"{file} declares no schedules",
        )
        for step in steps:
            if step.what in {"create", "change"} and step.new and step.new.first_ms is None:
                output.note(f"hint: [{step.id}] {NOTHING_AHEAD}")


def read(file: Path) -> dict[str, dict[str, Any]]:
    """Read the tables of a file."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidOption(
            f"there is no file {shown(str(file))}",
            hint="name another, or write one: `lamplighter schedules apply --help`",
            value=str(file),
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidOption(
            f"{shown(str(file))} cannot be read: {error}",
            hint="give a readable UTF-8 TOML file with a table for each schedule",
            value=str(file),
        ) from error
    for name, table in found.items():
        if not isinstance(table, dict):
            raise InvalidOption(
                f"{name} = {shown(table)} in {file} is no table",
                hint="write the name of the schedule above it, as in [nightly-report]",
                value=name,
            )
    return cast("dict[str, dict[str, Any]]", found)


async def _made(
    app: App, types: Types, file: Path, name: str, table: dict[str, Any]
) -> NewSchedule:
    """Check one table."""
    try:
        check_known(table, _KNOWN, "a schedule in a file")
        kind, arguments = table.get("type"), table.get("arguments", {})
        if not isinstance(kind, str):
            raise InvalidOption("no `type` is given", hint='say which job, as in type = "report"')
        if not isinstance(arguments, dict):
            raise InvalidOption(
                f"arguments = {shown(arguments)} gives them no names",
                hint="write a table, as in arguments = { month = 3 }",
            )
        for key in _TIMES:
            _check_instant(key, table.get(key))
        values = {key: _value(key, value) for key, value in table.items()}
        job = {key: values[key] for key in _JOB if key in values}
        given = cast("dict[str, object]", arguments)
        call = await types.call(app, kind, given, cast("SubmitOptions", job))
        policy = {key: values[key] for key in _POLICY if key in values}
        return new_schedule(name, calendar(table), call, policy)
    except (InvalidInput, UnknownType) as error:
        raise _wrong(file, name, error) from error


def calendar(table: dict[str, Any]) -> Calendar:
    """Read when a declared schedule fires."""
    named = [name for name in _WHEN if name in table]
    if len(named) != 1:
        given = ", ".join(named) or "none"
        raise InvalidOption(
            f"of cron, every, rrule and once it has {given}", hint="say when by exactly one of them"
        )
    zone: dict[str, Any] = {
        {"twice": "overlap"}.get(name, name): table[name] for name in _ZONE if name in table
    }
    kind: str = named[0]
    value: Any = table[kind]
    if kind in {"cron", "rrule"} and not isinstance(value, str):
        raise InvalidOption(
            f"{kind} = {shown(value)} is no text", hint=f'write {kind} = "…", between quotes'
        )
    if kind == "cron":
        return Cron(value, **zone)
    if kind == "rrule":
        if "start" not in table:
            raise InvalidOption("an rrule counts from `start`, which is not given", hint="give it")
        return RRule(value, start=table["start"], **zone)
    if zone:
        names = ", ".join(name for name in _ZONE if name in table)
        raise InvalidOption(f"{names} says nothing to `{kind}`", hint="leave it out, or use cron")
    return interval("every", value) if kind == "every" else Once(cast("datetime", value))


async def _steps(app: App, wanted: list[NewSchedule], delete_others: str | None) -> list[Step]:
    engine = await app.engine()
    steps: list[Step] = []
    for new in wanted:
        found = await engine.schedules.schedule(new.id, tenant=new.tenant)
        if found is None:
            steps.append(Step("create", new.tenant, new.id, new))
        elif found.spec == new.spec:
            steps.append(Step("same", new.tenant, new.id, new))
        else:
            what = tuple(changes(found.spec, new))
            steps.append(Step("change", new.tenant, new.id, new, what))
    if delete_others is not None:
        kept = {(new.tenant, new.id) for new in wanted}
        tenants = {new.tenant for new in wanted} or {DEFAULT_TENANT}
        which = ScheduleFilter(prefix=delete_others, tenants=tuple(tenants))
        steps += [
            Step("delete", one.record.tenant, one.id)
            async for one in app.schedules.list(which)
            if (one.record.tenant, one.id) not in kept
        ]
    return steps


def _check_instant(name: str, value: object) -> None:
    if value is None or (isinstance(value, datetime) and value.utcoffset() is not None):
        return
    raise InvalidOption(
        f"{name} = {shown(str(value))} is no time with a time zone",
        hint=f"write {name} = 2030-01-31T12:00:00Z or 2030-01-31T14:00:00+02:00, without quotes",
    )


def _value(name: str, value: object) -> object:
    if name in _DURATIONS and isinstance(value, str):
        return reading.duration(name, value)
    if name == "retry" and isinstance(value, dict):
        return Retry.from_options(cast("dict[str, object]", value))
    return value


def _wrong(file: Path, name: str, error: LamplighterError) -> InvalidOption:
    return InvalidOption(f"[{name}] in {file}: {error.cause}", hint=error.hint, value=name)
