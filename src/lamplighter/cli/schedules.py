"""`lamplighter schedules`: look at schedules and operate them."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import click

from lamplighter.app import App
from lamplighter.cli import noting, output, reading, schedule_shapes, store
from lamplighter.cli.listing import ListingGroup, limit_option
from lamplighter.cli.noting import Note
from lamplighter.cli.schedule_file import apply
from lamplighter.cli.schedule_put import put
from lamplighter.cli.schedule_words import next_run, when, why
from lamplighter.model.counts import counted
from lamplighter.model.errors import WrongState
from lamplighter.model.names import DEFAULT_TENANT, shown
from lamplighter.port.access import About
from lamplighter.port.schedules import (
    Backfill,
    RunRecord,
    RunState,
    ScheduleAnswer,
    ScheduleChanged,
    ScheduleFilter,
    Triggered,
)
from lamplighter.schedules import Schedule, Schedules

T = TypeVar("T")

FAILED = 1

_RUN_STYLES = {"queued": "blue", "started": "bold yellow", "skipped": "dim"}


@click.group(
    cls=ListingGroup, short_help="Look at schedules; put, hold, trigger and backfill them."
)
def schedules() -> None:
    """List, show, put, hold, trigger, backfill and delete schedules."""


schedules.add_command(put)
schedules.add_command(apply)


# ── look ─────────────────────────────────────────────────────────────────────────────────────


@schedules.command("list")
@click.option("--type", "types", multiple=True, help="Only those of this job type.")
@click.option("--tenant", "tenants", multiple=True, help="Only those of this tenant.")
@click.option("--prefix", default="", help="Only those whose id begins so.")
@click.option("--held/--not-held", "held", default=None, help="Only held ones, or only others.")
@limit_option(100, most=100_000)
@store.store_options
def list_schedules(
    *,
    types: tuple[str, ...],
    tenants: tuple[str, ...],
    prefix: str,
    held: bool | None,
    limit: int,
    url: str | None,
    as_json: bool,
) -> None:
    """List schedules by tenant and id, with what they run and when they do so next."""
    which = ScheduleFilter(
        types=reading.names("job type", types),
        tenants=reading.names("tenant", tenants),
        prefix=prefix,
        held=held,
    )

    async def look(schedules: Schedules) -> list[Schedule]:
        found: list[Schedule] = []
        async for schedule in schedules.list(which):
            found.append(schedule)
            if len(found) >= limit:
                break
        return found

    found = _run(url, look)
    if as_json:
        output.print_json({"schedules": [schedule_shapes.schedule(one) for one in found]})
        return
    several = any(one.record.tenant != DEFAULT_TENANT for one in found)
    output.print_table(
        [
            *(["tenant"] if several else []),
            *("schedule", "~type", "~when", "next run", ">fired", ">failures", "~hold"),
        ],
        (
            [
                *([schedule.record.tenant] if several else []),
                schedule.id,
                schedule.record.type,
                when(schedule, short=True),
                next_run(schedule, short=True),
                f"{schedule.record.fired:,}",
                (str(schedule.record.failures), "red" if schedule.record.failures else "dim"),
                output.hold(schedule.record.hold),
            ]
            for schedule in found
        ),
        empty="there are no such schedules; see `lamplighter schedules put --help`",
    )


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@store.tenant_option
@store.store_options
def show(schedule_id: str, tenant: str, url: str | None, *, as_json: bool) -> None:
    """Show everything about a schedule."""
    found = _run(url, lambda schedules: schedules.get(schedule_id, tenant=tenant))
    if as_json:
        output.print_json(schedule_shapes.schedule(found))
        return
    record, spec = found.record, found.spec
    policy, template, shift = spec.policy, spec.template, found.shift.total_seconds()
    extras = template.extras
    output.print_fields(
        [
            ("schedule", found.id),
            ("when", when(found)),
            ("next run", next_run(found)),
            ("type", template.type),
            ("arguments", json.dumps(schedule_shapes.arguments(spec), ensure_ascii=False)),
            ("queue", template.queue),
            ("priority", template.level.label),
            ("tenant", record.tenant),
            ("timeout", output.span(extras.timeout) if extras.timeout else None),
            ("retry", extras.retry.to_json() if extras.retry else None),
            ("tags", ", ".join(extras.tags)),
            ("metadata", json.dumps(dict(extras.metadata)) if extras.metadata else None),
            ("overlap", policy.overlap.value),
            ("catch-up", f"{policy.catch_up.value}, within {output.span(policy.window_ms / 1000)}"),
            ("jitter", f"fired {output.span(shift)} later" if policy.jitter_ms else None),
            ("start", output.instant(policy.start_ms)),
            ("end", output.instant(policy.end_ms)),
            ("runs", _of(record.fired, policy.max_runs)),
            ("skipped", f"{record.skipped:,}"),
            ("failures", _of(record.failures, policy.hold_after)),
            (
                "kept runs",
                f"{policy.keep_succeeded:,} that succeeded, {counted(policy.keep_failed, 'other')}",
            ),
            ("hold", output.hold(record.hold)),
            ("backfill", _progress(record.backfill)),
            ("version", str(record.version)),
            ("zone data", record.zones),
            ("changed", output.instant_and_away(record.changed_at_ms)),
        ]
    )


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@store.tenant_option
@click.option(
    "--count",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="How many to show.",
)
@click.option("--after", metavar="TIME", help="Show runs later than this instant.  [default: now]")
@store.store_options
def preview(
    *,
    schedule_id: str,
    tenant: str,
    count: int,
    after: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Show the next occurrences, with marks where a change of the clocks acts."""
    start = None if after is None else reading.instant("--after", after)
    found = _run(url, lambda schedules: schedules.get(schedule_id, tenant=tenant))
    runs = found.preview(count, after=start)
    if as_json:
        output.print_json(
            {
                "id": schedule_id,
                "shift": found.shift.total_seconds(),
                "runs": [schedule_shapes.preview(run) for run in runs],
            }
        )
        return
    output.print_table(
        ["local", "UTC", ""],
        (
            [run.local.isoformat(sep=" "), schedule_shapes.utc(run), (run.mark or "", "yellow")]
            for run in runs
        ),
        empty="it never fires again",
    )
    if runs and found.shift:
        later = output.span(found.shift.total_seconds())
        output.note(f"\nhint: its jitter fires each of them {later} later")
    if found.record.hold is not None:
        output.note("\nhint: it is held, so none of them is fired")


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@store.tenant_option
@limit_option(20, most=10_000)
@store.store_options
def runs(schedule_id: str, tenant: str, limit: int, url: str | None, *, as_json: bool) -> None:
    """Show the latest occurrences and what became of each."""
    found = _run(url, lambda found: found.runs(schedule_id, limit=limit, tenant=tenant))
    if as_json:
        output.print_json({"id": schedule_id, "runs": [schedule_shapes.run(run) for run in found]})
        return
    output.print_table(
        ["due", "state", "late by", "?kind", "job", "~why"],
        (
            [
                output.instant(run.due_ms) or "",
                (run.state.value, _RUN_STYLES.get(run.state, output.STYLES.get(run.state, ""))),
                _late(run),
                run.kind.value,
                run.job_id or "",
                why(run),
            ]
            for run in found
        ),
        empty="it has not run yet",
    )


# ── operate ──────────────────────────────────────────────────────────────────────────────────


@schedules.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@store.tenant_option
@store.operator_options
@store.store_options
def hold(
    *,
    ids: tuple[str, ...],
    tenant: str,
    by: str | None,
    reason: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Keep schedules from being fired. Jobs they have made go on; queued runs wait."""
    note = Note("schedule.hold", store.operator(by), reason)
    given = {"by": note.by, "reason": reason, "tenant": tenant}
    answers = _change(url, tenant, ids, note, lambda found: found.hold(*ids, **given))
    _print_answers(answers, "held", "was held before", as_json=as_json)


@schedules.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@store.tenant_option
@store.operator_options
@store.store_options
def unhold(
    *,
    ids: tuple[str, ...],
    tenant: str,
    by: str | None,
    reason: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Let held schedules go on; what was missed is made up for as their policy says."""
    note = Note("schedule.unhold", store.operator(by), reason)
    given = {"by": note.by, "reason": reason, "tenant": tenant}
    answers = _change(url, tenant, ids, note, lambda found: found.unhold(*ids, **given))
    _print_answers(answers, "not held any more", "was not held", as_json=as_json)


@schedules.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@store.tenant_option
@store.operator_options
@store.store_options
def delete(
    *,
    ids: tuple[str, ...],
    tenant: str,
    by: str | None,
    reason: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Remove schedules and their history. Jobs that wait or run go on."""
    note = Note("schedule.delete", store.operator(by), reason)
    given = {"by": note.by, "reason": reason, "tenant": tenant}
    answers = _change(url, tenant, ids, note, lambda found: found.delete(*ids, **given))
    _print_answers(answers, "deleted", "was deleted before", as_json=as_json)


def _print_answers(
    answers: Sequence[ScheduleChanged], done: str, already: str, *, as_json: bool
) -> None:
    if as_json:
        output.print_json({"schedules": [schedule_shapes.changed(one) for one in answers]})
        return
    words = {ScheduleAnswer.DONE: done, ScheduleAnswer.UNKNOWN: "is gone"}
    for one in answers:
        output.print_text(f"{one.id}: {words.get(one.answer, already)}")


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@store.tenant_option
@store.operator_options
@store.store_options
def trigger(
    *,
    schedule_id: str,
    tenant: str,
    by: str | None,
    reason: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Run a schedule's job now, as its overlap policy allows; 1 as exit code if it does not."""
    note = Note("schedule.trigger", store.operator(by), reason)

    async def work(schedules: Schedules) -> tuple[Triggered, Schedule]:
        answer, _ = await schedules.trigger(schedule_id, by=note.by, reason=reason, tenant=tenant)
        return answer, await schedules.get(schedule_id, tenant=tenant)

    answer, found = _change(
        url, tenant, [schedule_id], note, work, lambda done: "done" if done[0].job_id else "skipped"
    )
    state = None if answer.state is None else answer.state.value
    if as_json:
        output.print_json({"id": schedule_id, "job": answer.job_id, "state": state})
        if answer.job_id is None:
            sys.exit(FAILED)
    elif answer.job_id is None:
        policy = found.spec.policy.overlap.value
        raise WrongState(
            f"the schedule {shown(schedule_id)} was not run: the run before has not ended, and "
            f"its overlap policy `{policy}` lets no more of them wait",
            hint="wait for its end, cancel that job, or put the schedule with another --overlap",
            value=schedule_id,
        )
    else:
        output.print_text(answer.job_id)
        if answer.state is RunState.QUEUED:
            output.note("queued: it runs when the run before it has ended")


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@store.tenant_option
@click.option("--from", "start", metavar="TIME", required=True, help="After this instant…")
@click.option("--to", "end", metavar="TIME", required=True, help="…up to this one.")
@click.option(
    "--at-once",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="So many of its jobs at once.",
)
@store.operator_options
@store.store_options
def backfill(
    *,
    schedule_id: str,
    tenant: str,
    start: str,
    end: str,
    at_once: int,
    by: str | None,
    reason: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Run occurrences of the past that have not been run, a few at a time.

    `lamplighter schedules show` tells how far it is.
    """
    first, last = reading.instant("--from", start), reading.instant("--to", end)
    note = Note("schedule.backfill", store.operator(by), reason)
    answer = _change(
        url,
        tenant,
        [schedule_id],
        note,
        lambda schedules: schedules.backfill(
            schedule_id, first, last, limit=at_once, by=note.by, reason=reason, tenant=tenant
        ),
    )
    if as_json:
        output.print_json(schedule_shapes.changed(answer))
        return
    began = "has begun" if answer.answer is ScheduleAnswer.DONE else "was under way before"
    output.print_text(f"backfill of {schedule_id} {began}")


# ── put into words ───────────────────────────────────────────────────────────────────────────


def _run(url: str | None, work: Callable[[Schedules], Awaitable[T]]) -> T:
    return store.run_app(url, lambda app: work(app.schedules))


def _change(  # noqa: PLR0917
    url: str | None,
    tenant: str,
    ids: Sequence[str],
    note: Note,
    work: Callable[[Schedules], Awaitable[T]],
    answer: Callable[[T], str] = lambda _: "done",
) -> T:
    """Do something to schedules of a tenant, and note it."""

    async def main(app: App) -> T:
        engine = await app.engine()
        done = await work(app.schedules)
        word = answer(done)
        about = [About(one, tenant, word) for one in dict.fromkeys(ids)]
        await noting.note(engine, note.action, about, by=note.by, reason=note.reason)
        return done

    return store.run_app(url, main)


def _of(number: int, most: int | None) -> str:
    return f"{number:,}" if most is None else f"{number:,} of {most:,}"


def _late(run: RunRecord) -> str:
    late = schedule_shapes.late_ms(run)
    return "" if late is None else output.span(late / 1000)


def _progress(found: Backfill | None) -> str | None:
    if found is None:
        return None
    first, last, at = map(output.instant, (found.from_ms, found.to_ms, found.cursor_ms))
    return f"{first} to {last}, at {at}: {counted(found.made, 'job')} so far"
