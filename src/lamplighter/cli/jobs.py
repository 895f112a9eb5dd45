"""`lamplighter jobs`: look at jobs and operate them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from lamplighter.cli import output, reading, shapes, store
from lamplighter.cli.bulk import Subject, carry_out, change_options
from lamplighter.cli.filters import filter_of, job_filter_options
from lamplighter.cli.listing import ListingGroup, limit_option, print_jobs
from lamplighter.cli.logs import logs
from lamplighter.model.changes import Action
from lamplighter.model.counts import counted
from lamplighter.model.filters import Filter
from lamplighter.model.job import TERMINAL, Attempt, ErrorInfo, JobRecord
from lamplighter.port.values import JobPage, Why

_PAGE = 500
_MOST_ATTEMPTS = 100
"""Attempts that are shown; each may have a traceback."""
_USUAL = frozenset({Why.FINISHED, Why.RUNNING, Why.NOT_DUE, Why.BEHIND, Why.NEXT, Why.HELD_JOB})
"""Reasons that the status tells, or that pass by themselves."""


@click.group(
    cls=ListingGroup,
    short_help="Look at jobs and their logs; cancel, hold, retry, replay and remove them.",
)
def jobs() -> None:
    """List, show, cancel, hold, unhold, retry, replay, purge and erase jobs; read their logs."""


jobs.add_command(logs)


# ── look ─────────────────────────────────────────────────────────────────────────────────────


@jobs.command("list")
@job_filter_options
@limit_option(50, most=10_000)
@click.option("--cursor", help="Go on behind the page that gave this cursor.")
@store.store_options
def list_jobs(
    *, limit: int, cursor: str | None, url: str | None, as_json: bool, **given: Any
) -> None:
    """List jobs, newest first. Options given several times mean: one of these."""
    which = filter_of(**given)
    page = store.run(_page(url, which, limit, cursor))
    if as_json:
        found = [shapes.job(record) for record in page.jobs]
        output.print_json({"jobs": found, "cursor": page.cursor})
        return
    print_jobs(page.jobs, empty="no jobs" if which.empty else "no such job")
    if page.cursor is not None:
        output.note(f"\nhint: there may be more: --cursor {page.cursor}")


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
    if len(attempts) >= _MOST_ATTEMPTS:
        output.note(f"hint: of its attempts the newest {_MOST_ATTEMPTS} are shown\n")
    if attempts:
        output.print_text("\nattempts", bold=True)
        output.print_table(
            [
                *(">number", "outcome", "began", "?ago", ">took", ">lease"),
                *("?~host", "?worker", "~error"),
            ],
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
        output.instant(attempt.started_at_ms) or "",
        output.away(attempt.started_at_ms),
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
            page = await engine.inspector.jobs(which, limit=min(rest, _PAGE), cursor=cursor)
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
        return record, await engine.inspector.attempts(job_id, limit=_MOST_ATTEMPTS), told


# ── operate ──────────────────────────────────────────────────────────────────────────────────

_JOBS = Subject(
    noun="job",
    audited="job",
    listing="lamplighter jobs list",
    confirmed=frozenset(Action),
)
_change_options = change_options(job_filter_options)


@jobs.command()
@_change_options
def cancel(**given: Any) -> None:
    """Cancel jobs, by id or by filter: waiting ones at once, running ones are told to stop."""
    carry_out(_JOBS, Action.CANCEL, **given)


@jobs.command()
@_change_options
def hold(**given: Any) -> None:
    """Keep jobs from running until they are unheld, by id or by filter."""
    carry_out(_JOBS, Action.HOLD, **given)


@jobs.command()
@_change_options
def unhold(**given: Any) -> None:
    """Let held jobs go on, by id or by filter."""
    carry_out(_JOBS, Action.UNHOLD, **given)


@jobs.command()
@_change_options
def retry(**given: Any) -> None:
    """Run waiting jobs now, and let dead ones go on with all attempts anew.

    A dead job keeps its effect keys; `lamplighter jobs replay` starts it anew, with new ones.
    """
    carry_out(_JOBS, Action.RETRY, **given)


@jobs.command()
@_change_options
def replay(**given: Any) -> None:
    """Start jobs that have ended anew, by id or by filter: same id, new effect keys.

    What they did outside is done again.
    """
    carry_out(_JOBS, Action.REPLAY, **given)


@jobs.command()
@_change_options
def purge(**given: Any) -> None:
    """Remove jobs that have ended for ever, by id or by filter.

    Their idempotency keys stay; `lamplighter jobs erase` removes those, too.
    """
    carry_out(_JOBS, Action.PURGE, **given)


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
    carry_out(
        _JOBS,
        Action.ERASE,
        job_ids=job_ids,
        everything=False,
        dry_run=False,
        rate=None,
        by=by,
        reason=reason,
        url=url,
        as_json=as_json,
    )
