"""`lamplighter schedules put`: make a schedule, or change it."""

from __future__ import annotations

import sys
from typing import Any

import click

from lamplighter.app import App
from lamplighter.cli import noting, output, reading, store
from lamplighter.cli.schedule_job import Types
from lamplighter.cli.schedule_words import NOTHING_AHEAD, interval, when
from lamplighter.model.recurring import KEEP_LIMIT, CatchUp, Overlap
from lamplighter.model.schedule import Calendar, Cron, Once, RRule
from lamplighter.options import SubmitOptions
from lamplighter.port.access import About
from lamplighter.port.schedules import Put
from lamplighter.schedules import Schedule

_SHOWN = 10
_KEPT = click.IntRange(0, KEEP_LIMIT)


@click.command()
@click.argument("schedule_id", metavar="ID")
@click.argument("type", metavar="TYPE")
@click.argument("arguments", metavar="[JSON | NAME=VALUE...]", nargs=-1)
@click.option("--cron", metavar="EXPRESSION", help='When, as in "30 2 * * *".')
@click.option("--every", metavar="DURATION", help="When: 90, 15m, 2h, 1d apart.")
@click.option("--rrule", metavar="TEXT", help="When, as in FREQ=MONTHLY;BYDAY=-1FR; needs --start.")
@click.option("--once", metavar="TIME", help="When: at this instant only.")
@click.option("--timezone", metavar="NAME", help="Whose clocks it follows.  [default: UTC]")
@click.option("--gap", type=click.Choice(["next_valid", "skip"]), help="Times the clocks skip.")
@click.option("--twice", type=click.Choice(["first", "both"]), help="Times that come twice.")
@click.option(
    "--overlap",
    type=click.Choice([kind.value for kind in Overlap]),
    help="While its last run goes on.",
)
@click.option(
    "--catch-up", type=click.Choice([kind.value for kind in CatchUp]), help="What is made up for."
)
@click.option("--window", metavar="DURATION", help="Later than this is not made up for.")
@click.option("--jitter", metavar="DURATION", help="Shift it by a part of this, by its id.")
@click.option("--start", metavar="TIME", help="No run before.")
@click.option("--end", metavar="TIME", help="No run after.")
@click.option("--max-runs", type=click.IntRange(1), help="It is over after so many.")
@click.option("--hold-after", type=click.IntRange(1), help="Hold it after so many failed runs.")
@click.option(
    "--keep-succeeded", type=_KEPT, help="Remember so many runs that succeeded.  [default: 100]"
)
@click.option("--keep-failed", type=_KEPT, help="Remember so many other runs.  [default: 100]")
@click.option("--queue", help="Another queue than the type's own.")
@click.option("--priority", help="critical, high, normal or low.")
@click.option("--tenant", help="Whose it is, and its jobs.  [default: default]")
@click.option("--tag", "tags", multiple=True, help="What its jobs are found by; several times.")
@click.option("--metadata", metavar="JSON", help="What travels with its jobs beside arguments.")
@click.option("--timeout", metavar="DURATION", help="Time the handler has.")
@click.option(
    "--retry", metavar="JSON", help='Tries and pauses, as in {"max_attempts": 3, "fixed": 60}.'
)
@click.option("--force", is_flag=True, help="Put it even if no worker has told of the type.")
@store.store_options
def put(
    *,
    schedule_id: str,
    type: str,
    arguments: tuple[str, ...],
    force: bool,
    url: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Make a schedule, or change it. It keeps its history, and fires no occurrence twice.

    Arguments are one JSON object, `-` to read it from stdin, or NAME=VALUE each.
    """
    texts = (sys.stdin.read(),) if arguments == ("-",) else arguments
    reading.arguments(texts, {})  # what cannot be read is told before the store is asked
    calendar = _calendar(given)
    options = _options(given)
    job_options = _job_options(given)

    async def work(app: App) -> tuple[Put, Schedule]:
        types = await Types.read(app, force=force)
        values = reading.arguments(texts, types.schema(type))
        call = await types.call(app, type, values, job_options)
        new = app.schedules.make(schedule_id, calendar, call, **options)
        by = store.operator(None)
        (answer,) = await app.schedules.put_many([new], by=by)
        about = About(schedule_id, new.tenant, answer.answer.value)
        await noting.note(await app.engine(), "schedules.put", [about], by=by)
        return answer, await app.schedules.get(schedule_id, tenant=new.tenant)

    answer, found = store.run_app(url, work, create=force)
    if as_json:
        output.print_json(
            {
                "id": schedule_id,
                "tenant": found.record.tenant,
                "answer": answer.answer.value,
                "version": answer.version,
                "next_run": output.instant(found.next_run_ms),
            }
        )
        return
    output.print_text(f"{schedule_id} {answer.answer.value}: {when(found)}")
    _foretell(found)


def _foretell(found: Schedule) -> None:
    runs = found.preview(_SHOWN)
    for run in runs:
        mark = f"  ({run.mark})" if run.mark else ""
        output.note(f"  {run.local.isoformat(sep=' ')}{mark}")
    if not runs:
        output.note(f"hint: {NOTHING_AHEAD}; put it again with a later time if that is a mistake")
    elif found.shift:
        later = output.span(found.shift.total_seconds())
        output.note(f"hint: its jitter fires each of them {later} later")
    if found.record.hold is not None:
        output.note("hint: it is held, so none of them is fired")


def _calendar(given: dict[str, Any]) -> Calendar:
    named = [name for name in ("cron", "every", "rrule", "once") if given[name] is not None]
    if len(named) != 1:
        both = f", not {' and '.join(f'--{name}' for name in named)}" if named else ""
        raise click.UsageError(f"say when: give one of --cron, --every, --rrule, --once{both}")
    zone = {
        name: value
        for name, value in (
            ("timezone", given["timezone"]),
            ("gap", given["gap"]),
            ("overlap", given["twice"]),
        )
        if value is not None
    }
    match named[0]:
        case "cron":
            return Cron(given["cron"], **zone)
        case "rrule":
            if given["start"] is None:
                raise click.UsageError("--rrule counts from --start: give it too")
            return RRule(given["rrule"], start=reading.instant("--start", given["start"]), **zone)
        case _ if zone:
            raise click.UsageError(f"--timezone, --gap and --twice say nothing to --{named[0]}")
        case "every":
            return interval("--every", given["every"])
        case _:
            return Once(reading.instant("--once", given["once"]))


def _job_options(given: dict[str, Any]) -> SubmitOptions:
    return {
        "queue": given["queue"],
        "priority": given["priority"],
        "tenant": given["tenant"],
        "tags": given["tags"] or None,
        "metadata": reading.metadata(given["metadata"]),
        "timeout": _seconds("--timeout", given["timeout"]),
        "retry": reading.retry(given["retry"]),
    }


def _options(given: dict[str, Any]) -> Any:
    return {
        "overlap": given["overlap"],
        "catch_up": given["catch_up"],
        "window": _seconds("--window", given["window"]),
        "jitter": _seconds("--jitter", given["jitter"]),
        "start": None if given["start"] is None else reading.instant("--start", given["start"]),
        "end": None if given["end"] is None else reading.instant("--end", given["end"]),
        "max_runs": given["max_runs"],
        "hold_after": given["hold_after"],
        "keep_succeeded": given["keep_succeeded"],
        "keep_failed": given["keep_failed"],
    }


def _seconds(what: str, text: str | None) -> float | None:
    return None if text is None else reading.duration(what, text)
