"""`lamplighter jobs`: look at jobs and operate them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from lamplighter.cli import noting, output, reading, shapes, store
from lamplighter.cli.answers import print_answers
from lamplighter.cli.listing import ListingGroup, limit_option
from lamplighter.cli.logs import logs
from lamplighter.model.counts import counted
from lamplighter.model.filters import Filter
from lamplighter.model.job import TERMINAL, Attempt, ErrorInfo, JobRecord
from lamplighter.model.names import check_name
from lamplighter.port.store import JobStore
from lamplighter.port.values import Changed, JobPage, Why

PAGE = 500
_USUAL = frozenset({Why.FINISHED, Why.RUNNING, Why.NOT_DUE, Why.BEHIND, Why.NEXT, Why.HELD_JOB})
"""Reasons that the status tells, or that pass by themselves."""


@click.group(
    cls=ListingGroup,
    short_help="Look at jobs and their logs; cancel, hold, retry, replay and erase them.",
)
def jobs() -> None:
    """List, show, cancel, hold, unhold, retry, replay and erase jobs, and read their logs."""


jobs.add_command(logs)


# ── look ─────────────────────────────────────────────────────────────────────────────────────


@jobs.command("list")
@click.option("--status", "statuses", multiple=True, help="As shown; also `pending`, `failed`.")
@click.option("--type", "types", multiple=True, help="Only jobs of this type.")
@click.option("--queue", "queues", multiple=True, help="Only jobs of this queue.")
@click.option("--tenant", "tenants", multiple=True, help="Only jobs of this tenant.")
@click.option("--tag", help="Only jobs with this tag.")
@limit_option(50, most=10_000)
@click.option("--cursor", help="Go on behind the page that gave this cursor.")
@store.store_options
def list_jobs(
    *,
    statuses: tuple[str, ...],
    types: tuple[str, ...],
    queues: tuple[str, ...],
    tenants: tuple[str, ...],
    tag: str | None,
    limit: int,
    cursor: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """List jobs, newest first. Options given several times mean: one of these."""
    which = Filter(
        statuses=statuses,
        types=reading.names("job type", types),
        queues=reading.names("queue", queues),
        tenants=reading.names("tenant", tenants),
        tag=None if tag is None else check_name("tag", tag),
    )
    page = store.run(_page(url, which, limit, cursor))
    if as_json:
        found = [shapes.job(record) for record in page.jobs]
        output.print_json({"jobs": found, "cursor": page.cursor})
        return
    print_jobs(page.jobs, empty="no jobs" if which == Filter() else "no such job")
    if page.cursor is not None:
        output.note(f"\nhint: there may be more: --cursor {page.cursor}")


def print_jobs(records: Sequence[JobRecord], *, empty: str) -> None:
    """Print one line per job."""
    output.print_table(
        ["id", "status", "~type", "?~queue", "?~tenant", ">failed", "when", "~~about"],
        (
            [
                record.job.id,
                output.status(record.status.value),
                record.job.type,
                record.job.queue,
                record.job.tenant,
                str(record.job.attempt or ""),
                output.away(record.finished_at_ms or record.job.due_at_ms),
                (_about(record), "dim"),
            ]
            for record in records
        ),
        empty=empty,
    )


def _about(record: JobRecord) -> str:
    if record.hold is not None:
        return f"held by {record.hold.by}: {record.hold.reason}"
    if record.error is not None:
        return output.cause(record.error.text, 60)
    return output.cause(record.reason or "", 60)


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.option("--tracebacks", is_flag=True, help="Also those of the attempts before the last.")
@store.store_options
def show(job_id: str, url: str | None, *, tracebacks: bool, as_json: bool) -> None:
    """Show everything about a job, with its attempts."""
    (checked,) = reading.ids([job_id])
    record, attempts, why = store.run(_job(url, checked))
    show_job(record, attempts, why, tracebacks=tracebacks, as_json=as_json)


def show_job(
    record: JobRecord,
    attempts: Sequence[Attempt],
    why: str | None = None,
    *,
    tracebacks: bool = False,
    as_json: bool,
) -> None:
    """Print one job at length."""
    if as_json:
        history = [shapes.attempt(attempt) for attempt in attempts]
        output.print_json({**shapes.job(record), "why": why, "attempts": history})
        return
    output.print_fields(_fields(record, why))
    if attempts:
        output.print_text("\nattempts", bold=True)
        output.print_table(
            [">number", "outcome", "began", ">took", ">lease", "?~host", "?worker", "~error"],
            (_attempt_row(attempt) for attempt in attempts),
            empty="",
        )
    if tracebacks:
        for attempt in attempts:
            title = f"attempt {attempt.number}, lease {attempt.lease}"
            _print_traceback(attempt.error, title)
    else:
        _print_traceback(record.error)


def _print_traceback(error: ErrorInfo | None, title: str = "") -> None:
    if error is None or not error.traceback:
        return
    output.print_text(f"\n{title}", bold=True) if title else output.print_text("")
    output.print_text(error.traceback.rstrip(), dim=True)


def _fields(record: JobRecord, why: str | None) -> list[tuple[str, output.Cell | None]]:
    job, error = record.job, record.error
    return [
        ("id", job.id),
        ("type", job.type),
        ("status", output.status(record.status.value)),
        ("why", why),
        ("reason", record.reason),
        ("error", error.text if error else None),
        ("fingerprint", error.fingerprint if error else None),
        ("queue", job.queue),
        ("priority", job.level.label),
        ("tenant", job.tenant),
        ("schedule", job.schedule),
        ("arguments", _json(shapes.arguments(record))),
        ("progress", output.progress(record.progress)),
        ("result", None if record.result is None else _json(shapes.plain(record.result))),
        ("no result", record.result_note),
        ("created", output.instant_and_away(job.created_at_ms)),
        ("due", output.instant_and_away(job.due_at_ms)),
        ("claimed", output.instant_and_away(record.claimed_at_ms)),
        ("finished", output.instant_and_away(record.finished_at_ms)),
        ("failed attempts", str(job.attempt or "")),
        ("crashes", str(job.crashes or "")),
        ("lost workers", str(job.losses or "")),
        ("replayed", counted(job.generation, "time") if job.generation else None),
        ("worker", record.worker),
        ("tags", ", ".join(job.extras.tags)),
        ("metadata", json.dumps(dict(job.extras.metadata)) if job.extras.metadata else None),
        ("held", output.hold(record.hold)),
        ("cancel asked", output.hold(record.cancel)),
    ]


def _attempt_row(attempt: Attempt) -> list[output.Cell]:
    error, ended = attempt.error, attempt.finished_at_ms
    return [
        str(attempt.number),
        output.status(attempt.outcome),
        output.instant_and_away(attempt.started_at_ms) or "",
        "" if ended is None else output.span(max(0, ended - attempt.started_at_ms) / 1000),
        str(attempt.lease),
        attempt.host,
        (attempt.worker, "dim"),
        output.cause(error.text) if error else "",
    ]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


async def _page(url: str | None, which: Filter, limit: int, cursor: str | None) -> JobPage:
    """Read until the page is full: the store looks at a bounded stretch per call."""
    found: list[JobRecord] = []
    async with store.opened(url) as engine:
        while True:
            rest = limit - len(found)
            page = await engine.inspector.jobs(which, limit=min(rest, PAGE), cursor=cursor)
            found += page.jobs
            cursor = page.cursor
            if cursor is None or len(found) >= limit:
                return JobPage(found, cursor)


async def _job(url: str | None, job_id: str) -> tuple[JobRecord, list[Attempt], str | None]:
    """Read a job, its attempts, and why it does not come to an end, if that is not as usual."""
    async with store.opened(url) as engine:
        record = await store.job(engine, job_id)
        found = None if record.state in TERMINAL else await engine.inspector.explain(job_id)
        told = None if found is None or found.reasons[0].why in _USUAL else found.reasons[0].text
        return record, await engine.inspector.attempts(job_id), told


# ── operate ──────────────────────────────────────────────────────────────────────────────────


@jobs.command()
@click.argument("job_ids", metavar="ID...", nargs=-1, required=True)
@store.operator_options
@store.store_options
def cancel(
    job_ids: tuple[str, ...], by: str | None, reason: str, url: str | None, *, as_json: bool
) -> None:
    """Cancel jobs: waiting ones at once, running ones are told to stop."""
    _operate("cancel", job_ids, by, reason, url, as_json=as_json)


@jobs.command()
@click.argument("job_ids", metavar="ID...", nargs=-1, required=True)
@store.operator_options
@store.store_options
def hold(
    job_ids: tuple[str, ...], by: str | None, reason: str, url: str | None, *, as_json: bool
) -> None:
    """Keep jobs from running until they are unheld."""
    _operate("hold", job_ids, by, reason, url, as_json=as_json)


@jobs.command()
@click.argument("job_ids", metavar="ID...", nargs=-1, required=True)
@store.operator_options
@store.store_options
def unhold(
    job_ids: tuple[str, ...], by: str | None, reason: str, url: str | None, *, as_json: bool
) -> None:
    """Let held jobs go on."""
    _operate("unhold", job_ids, by, reason, url, as_json=as_json)


@jobs.command()
@click.argument("job_ids", metavar="ID...", nargs=-1, required=True)
@store.operator_options
@store.store_options
def retry(
    job_ids: tuple[str, ...], by: str | None, reason: str, url: str | None, *, as_json: bool
) -> None:
    """Run waiting jobs now, and let dead ones go on with all attempts anew.

    A dead job keeps its effect keys; `lamplighter jobs replay` starts it anew, with new ones.
    """
    _operate("retry", job_ids, by, reason, url, as_json=as_json)


@jobs.command()
@click.argument("job_ids", metavar="ID...", nargs=-1, required=True)
@store.operator_options
@store.store_options
def erase(
    job_ids: tuple[str, ...], by: str | None, reason: str, url: str | None, *, as_json: bool
) -> None:
    """Erase jobs that have ended, with all that belongs to them; this cannot be undone.

    Arguments, results, errors, attempts, logs and idempotency keys go; the audit log keeps who
    erased which id, and why.
    """
    _operate("erase", job_ids, by, reason, url, as_json=as_json)


@jobs.command()
@click.argument("job_ids", metavar="ID...", nargs=-1, required=True)
@store.operator_options
@store.store_options
def replay(
    job_ids: tuple[str, ...], by: str | None, reason: str, url: str | None, *, as_json: bool
) -> None:
    """Start jobs that have ended anew: same id, new effect keys.

    What they did outside is done again. `lamplighter dlq replay` takes filters.
    """
    _operate("replay", job_ids, by, reason, url, as_json=as_json)


def _operate(
    verb: str,
    job_ids: Sequence[str],
    by: str | None,
    reason: str,
    url: str | None,
    *,
    as_json: bool,
) -> None:
    ids = reading.ids(job_ids)
    answers, before = store.run(_change(url, verb, ids, store.operator(by), reason))
    print_answers(verb, answers, before, as_json=as_json)


async def _change(
    url: str | None, verb: str, ids: Sequence[str], by: str, reason: str
) -> tuple[list[Changed], dict[str, JobRecord]]:
    """Do it, and give what the jobs were before."""
    async with store.opened(url) as engine:

        async def change(some: Sequence[str]) -> list[Changed]:
            return await _verb(engine.jobs, verb, some, by, reason)

        before = await noting.known(engine, ids)
        answers = await store.change(engine, ids, change)
        done = noting.done(answers, noting.tenants(before))
        await noting.note(engine, f"job.{verb}", done, by=by, reason=reason)
        return answers, before


async def _verb(
    store_jobs: JobStore, verb: str, ids: Sequence[str], by: str, reason: str
) -> list[Changed]:
    match verb:
        case "cancel":
            return await store_jobs.cancel(ids, by=by, reason=reason)
        case "hold":
            return await store_jobs.hold(ids, by=by, reason=reason)
        case "unhold":
            return await store_jobs.unhold(ids, by=by, reason=reason)
        case "erase":
            return await store_jobs.erase(ids, by=by, reason=reason)
        case "replay":
            return await store_jobs.replay(ids, by=by, reason=reason)
        case _:
            return await store_jobs.retry(ids, by=by, reason=reason)
