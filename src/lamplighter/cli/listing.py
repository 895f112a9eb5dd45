"""What commands that list share: how many they show, jobs in lines, a group that lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from lamplighter.cli import output
from lamplighter.cli.store import Command
from lamplighter.model.job import JobRecord


def limit_option(default: int, most: int) -> Callable[[Command], Command]:
    """Let the user say how many to show."""
    return click.option(
        "--limit",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        help="At most so many.",
    )


class ListingGroup(click.Group):
    """Runs `list` when no command is named: `queues --json` is `queues list --json`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` before options that are not the group's own."""
        helps = set(self.get_help_option_names(ctx))
        if not args or (args[0].startswith("-") and args[0] not in helps):
            args = ["list", *args]
        return super().parse_args(ctx, args)


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
