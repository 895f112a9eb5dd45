"""`lamplighter types`: which kinds of jobs the workers know."""

from __future__ import annotations

import click

from lamplighter.cli import noting, output, shapes, store
from lamplighter.cli.listing import ListingGroup
from lamplighter.client import wake_workers
from lamplighter.model.names import check_name, shown
from lamplighter.port.access import About
from lamplighter.port.values import TypeRow, TypeSettings


@click.group(cls=ListingGroup)
def types() -> None:
    """List job types, or hold one."""


@types.command("list")
@store.store_options
def list_types(url: str | None, *, as_json: bool) -> None:
    """List the job types that workers have published, one row per version."""
    found = store.run(_types(url))
    if as_json:
        output.print_json({"types": [shapes.job_type(row) for row in found]})
        return
    output.print_table(
        ["type", "~queue", "priority", ">live workers", "?version", "~hold"],
        (
            [
                row.name,
                row.queue,
                str(row.options.get("priority", "normal")),
                (str(row.live_workers), "" if row.live_workers else "dim"),
                (row.hash, "dim"),
                output.hold(row.held),
            ]
            for row in found
        ),
        empty="no worker has published a job type",
    )


@types.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@store.operator_options
@store.store_options
def hold(
    names: tuple[str, ...], by: str | None, reason: str, url: str | None, *, as_json: bool
) -> None:
    """Stop handing out jobs of these types."""
    _put(names, by, reason, url, held=True, as_json=as_json)


@types.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@store.operator_options
@store.store_options
def unhold(
    names: tuple[str, ...], by: str | None, reason: str, url: str | None, *, as_json: bool
) -> None:
    """Let jobs of these types go on."""
    _put(names, by, reason, url, held=False, as_json=as_json)


def _put(
    names: tuple[str, ...],
    by: str | None,
    reason: str,
    url: str | None,
    *,
    held: bool,
    as_json: bool,
) -> None:
    checked = [check_name("job type", name) for name in names]
    found = store.run(_set(url, checked, TypeSettings(held=held), store.operator(by), reason))
    if as_json:
        output.print_json({"types": [{"name": name, "held": held} for name in checked]})
        return
    for name in checked:
        output.print_text(f"type {name}: {'held' if held else 'goes on'}")
    known = {row.name for row in found}
    for name in checked:
        if name not in known:
            output.note(
                f"hint: no worker has told this store of {shown(name)} yet; `lamplighter types` "
                "lists those there are"
            )


async def _types(url: str | None) -> list[TypeRow]:
    async with store.opened(url) as engine:
        return await engine.inspector.types()


async def _set(
    url: str | None, names: list[str], settings: TypeSettings, by: str, reason: str
) -> list[TypeRow]:
    """Hold types or let them go, and give what workers have told of types."""
    async with store.opened(url) as engine:
        for name in names:
            await engine.settings.put_type(name, settings, by=by, reason=reason)
        changed = [About(name) for name in names]
        await noting.note(engine, "types.put", changed, by=by, reason=reason)
        await wake_workers(engine)
        return await engine.inspector.types()
