"""Which jobs a command is about: the options of filters, and the filter they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from lamplighter.cli import reading
from lamplighter.cli.store import Command
from lamplighter.model.filters import Filter, fingerprints_of, statuses_of
from lamplighter.model.names import check_name, check_schedule

_AGO = "an ISO time, or 2h for ago"
_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "statuses": click.option(
        "--status", "statuses", multiple=True, help="As shown; also `pending`, `failed`."
    ),
    "types": click.option("--type", "types", multiple=True, help="Only jobs of this type."),
    "queues": click.option("--queue", "queues", multiple=True, help="Only jobs of this queue."),
    "tenants": click.option("--tenant", "tenants", multiple=True, help="Only jobs of this tenant."),
    "schedules": click.option(
        "--schedule", "schedules", multiple=True, help="Only jobs that this schedule made."
    ),
    "tag": click.option("--tag", help="Only jobs with this tag."),
    "fingerprints": click.option(
        "--fingerprint",
        "fingerprints",
        multiple=True,
        help="Only this cause; `none`: without one.",
    ),
    "older_than": click.option("--older-than", metavar="TIME", help=f"Submitted before: {_AGO}."),
    "newer_than": click.option("--newer-than", metavar="TIME", help=f"Submitted since: {_AGO}."),
    "after": click.option("--after", metavar="TIME", help=f"Died after: {_AGO}."),
    "before": click.option("--before", metavar="TIME", help="Died before: an ISO time, or 2h."),
}
_BOTH = ("types", "queues", "tenants", "schedules", "tag", "fingerprints")


def job_filter_options(command: Command) -> Command:
    """Let the user say which jobs."""
    return _with(("statuses", *_BOTH, "older_than", "newer_than"), command)


def dead_filter_options(command: Command) -> Command:
    """Let the user say which dead letters."""
    return _with((*_BOTH, "after", "before"), command)


def _with(names: tuple[str, ...], command: Command) -> Command:
    for name in reversed(names):
        command = _OPTIONS[name](command)
    return command


def filter_of(
    *,
    types: tuple[str, ...],
    queues: tuple[str, ...],
    tenants: tuple[str, ...],
    schedules: tuple[str, ...],
    tag: str | None,
    fingerprints: tuple[str, ...],
    statuses: tuple[str, ...] = (),
    older_than: str | None = None,
    newer_than: str | None = None,
    after: str | None = None,
    before: str | None = None,
) -> Filter:
    """Return the filter that options mean; what nothing can match is refused."""
    which = Filter(
        statuses=statuses,
        types=reading.names("job type", types),
        queues=reading.names("queue", queues),
        tenants=reading.names("tenant", tenants),
        schedules=tuple(map(check_schedule, schedules)),
        tag=None if tag is None else check_name("tag", tag),
        fingerprints=fingerprints_of(reading.names("fingerprint", fingerprints)),
        created_before_ms=reading.moment_ms("--older-than", older_than),
        created_after_ms=reading.moment_ms("--newer-than", newer_than),
        finished_after_ms=reading.moment_ms("--after", after),
        finished_before_ms=reading.moment_ms("--before", before),
    )
    statuses_of(which)
    return which
