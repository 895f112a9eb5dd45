"""A group of commands whose bare name lists: `lamplighter queues` is `lamplighter queues list`."""

from __future__ import annotations

import click


class ListingGroup(click.Group):
    """Runs `list` when no command is named: `queues --json` is `queues list --json`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` before options that are not the group's own."""
        helps = set(self.get_help_option_names(ctx))
        if not args or (args[0].startswith("-") and args[0] not in helps):
            args = ["list", *args]
        return super().parse_args(ctx, args)
