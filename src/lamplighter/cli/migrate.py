"""`lamplighter migrate`: bring a store to this version, and say who may use it."""

from __future__ import annotations

import click

from lamplighter import config
from lamplighter.cli import output, store
from lamplighter.connect import connect


@click.command(short_help="Make the store, or bring it to this version.")
@click.option(
    "--grant-run",
    "run",
    metavar="USER",
    multiple=True,
    help="Let this database user run jobs; may be given several times.",
)
@click.option(
    "--grant-read",
    "read",
    metavar="USER",
    multiple=True,
    help="Let this database user look at jobs; may be given several times.",
)
@store.store_options
def migrate(run: tuple[str, ...], read: tuple[str, ...], url: str | None, *, as_json: bool) -> None:
    """Bring the store to this version; a store that does not exist is made.

    Call it as the user who owns the store, or shall own it. The users named by --grant-run and
    --grant-read get rights on this store only, and keep them when it is migrated again.
    """
    before, after = store.run(_migrate(url, run, read))
    if as_json:
        granted = {"run": list(run), "read": list(read)}
        output.print_json({"before": before, "after": after, "granted": granted})
        return
    if before == after:
        output.print_text(f"the store is at version {after} already")
    else:
        output.print_text(f"the store was at version {before} and is now at version {after}")
    for names, what in ((run, "run jobs"), (read, "look at jobs")):
        for name in names:
            output.print_text(f"{name} may {what}")


async def _migrate(url: str | None, run: tuple[str, ...], read: tuple[str, ...]) -> tuple[int, int]:
    settings = config.load(url=url)
    engine = connect(settings.url, deadline=settings.store_deadline)
    return await engine.migrate(run=run, read=read)
