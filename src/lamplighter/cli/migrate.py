"""`lamplighter migrate`: bring a store to this version."""

from __future__ import annotations

import click

from lamplighter import config
from lamplighter.cli import output, store
from lamplighter.connect import connect


@click.command()
@store.store_options
def migrate(url: str | None, *, as_json: bool) -> None:
    """Bring the store to this version; a store that does not exist is made."""
    before, after = store.run(_migrate(url))
    if as_json:
        output.print_json({"before": before, "after": after})
    elif before == after:
        output.print_text(f"the store is at version {after} already")
    else:
        output.print_text(f"the store was at version {before} and is now at version {after}")


async def _migrate(url: str | None) -> tuple[int, int]:
    settings = config.load(url=url)
    return await connect(settings.url, deadline=settings.store_deadline).migrate()
