"""What commands that list share: how many they show, and the group whose bare name lists."""

from __future__ import annotations

from collections.abc import Callable

import click

from lamplighter.cli.store import Command


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
