"""`lamplighter dlq`: the dead letters, by cause; retry, replay or remove them."""

from __future__ import annotations

from typing import Any

import click

from lamplighter.cli import output, shapes, store
from lamplighter.cli.bulk import Subject, carry_out, change_options, named
from lamplighter.cli.filters import dead_filter_options, filter_of
from lamplighter.cli.jobs import show_job
from lamplighter.cli.listing import ListingGroup, print_jobs
from lamplighter.model.changes import Action
from lamplighter.model.errors import InvalidInput, InvalidName
from lamplighter.model.filters import NO_FINGERPRINT, Filter, fingerprints_of
from lamplighter.model.ids import check_id
from lamplighter.model.job import Attempt, JobRecord
from lamplighter.model.names import shown
from lamplighter.port.values import SCAN_LIMIT, DeadGroup, DeadGroups

PAGE = 500
DEAD = ("dead",)


_LETTERS = Subject(
    noun="dead letter",
    audited="dlq",
    listing="lamplighter dlq list",
    statuses=DEAD,
    confirmed=frozenset({Action.PURGE}),
    confirmed_ids=frozenset({Action.PURGE}),
)


@click.group(cls=ListingGroup, short_help="Look at dead letters; retry, replay or purge them.")
def dlq() -> None:
    """List, show, retry, replay and purge dead letters: jobs that failed for good."""


# ── look ─────────────────────────────────────────────────────────────────────────────────────


@dlq.command("list")
@dead_filter_options
@store.store_options
def list_groups(url: str | None, *, as_json: bool, **chosen: Any) -> None:
    """List dead letters by type and cause, the most frequent first."""
    found = store.run(_groups(url, filter_of(**chosen, statuses=DEAD)))
    if as_json:
        groups = [shapes.dead_group(group) for group in found.groups]
        output.print_json({"groups": groups, "at_least": found.at_least})
        return
    output.print_table(
        [">count", "~type", "fingerprint", "newest", "?example", "~cause"],
        (
            [
                output.count(group.count, at_least=found.at_least),
                group.type,
                group.fingerprint or NO_FINGERPRINT,
                output.away(group.newest_at_ms),
                group.example,
                (_cause(group), "red"),
            ]
            for group in found.groups
        ),
        empty="no dead letters",
    )
    if found.at_least:
        output.note(f"only the newest {SCAN_LIMIT:,} dead letters were looked at")


def _cause(group: DeadGroup) -> str:
    error = group.error
    return output.cause(error.text if error else group.reason)


@dlq.command()
@click.argument("which", metavar="ID|FINGERPRINT")
@store.store_options
def show(which: str, url: str | None, *, as_json: bool) -> None:
    """Show one dead letter with its attempts and traceback, or all with one cause."""
    try:
        job_id = check_id(which)
    except InvalidName:
        _show_cause(which, url, as_json=as_json)
        return
    record, attempts = store.run(_letter(url, job_id))
    show_job(record, attempts, as_json=as_json)


def _show_cause(fingerprint: str, url: str | None, *, as_json: bool) -> None:
    records = store.run(
        _collect(url, Filter(statuses=DEAD, fingerprints=fingerprints_of([fingerprint])))
    )
    if not records:
        raise InvalidInput(
            f"{shown(fingerprint)} is neither a job id nor the fingerprint of a dead letter",
            hint="`lamplighter dlq list` shows both",
            value=fingerprint,
        )
    if as_json:
        output.print_json({"jobs": [shapes.job(record) for record in records]})
    else:
        print_jobs(records, empty="")


# ── act ──────────────────────────────────────────────────────────────────────────────────────

_again_options = change_options(dead_filter_options, confirmed=False)


@dlq.command()
@_again_options
def retry(**given: Any) -> None:
    """Retry dead letters, by id or by filter: they go on, with all attempts anew.

    Their effect keys stay: what they have done outside with them is not done twice.
    """
    carry_out(_LETTERS, Action.RETRY, **given)


@dlq.command()
@_again_options
def replay(**given: Any) -> None:
    """Start dead letters anew, by id or by filter: same id, next generation.

    Their effect keys are new: what they do outside is done again.
    """
    carry_out(_LETTERS, Action.REPLAY, **given)


@dlq.command()
@change_options(dead_filter_options)
def purge(**given: Any) -> None:
    """Remove dead letters for ever, by id or by filter."""
    carry_out(_LETTERS, Action.PURGE, **given)


# ── with the store ───────────────────────────────────────────────────────────────────────────


async def _groups(url: str | None, which: Filter) -> DeadGroups:
    async with store.opened(url) as engine:
        return await engine.inspector.dead_groups(which)


async def _letter(url: str | None, job_id: str) -> tuple[JobRecord, list[Attempt]]:
    async with store.opened(url) as engine:
        return await named(engine, job_id, _LETTERS), await engine.inspector.attempts(job_id)


async def _collect(url: str | None, which: Filter) -> list[JobRecord]:
    """Read the dead letters that a filter means, from the newest to the oldest."""
    found: list[JobRecord] = []
    async with store.opened(url) as engine:
        cursor: str | None = None
        while True:
            page = await engine.inspector.jobs(which, limit=PAGE, cursor=cursor)
            found += page.jobs
            if (cursor := page.cursor) is None:
                return found
