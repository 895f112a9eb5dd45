"""`lamplighter tenants`: who shares the workers, and in which proportion."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lamplighter.cli import noting, output, shapes, store
from lamplighter.cli.listing import ListingGroup
from lamplighter.client import wake_workers
from lamplighter.model.errors import InvalidInput
from lamplighter.model.names import check_name, shown
from lamplighter.model.stride import DEFAULT_WEIGHT, MAX_WEIGHT, MIN_WEIGHT
from lamplighter.port.access import About
from lamplighter.port.values import TenantInfo, TenantSettings

LISTED = 1_000
"""So many tenants a store lists."""


@click.group(cls=ListingGroup)
def tenants() -> None:
    """List tenants, show one, or set its share."""


@tenants.command("list")
@store.store_options
def list_tenants(url: str | None, *, as_json: bool) -> None:
    """List tenants with their weights and what they have waiting and running."""
    found = store.run(_tenants(url))
    if as_json:
        output.print_json({"tenants": [shapes.tenant(tenant) for tenant in found]})
        return
    _print(found, empty="no tenant has jobs or settings")
    if len(found) >= LISTED:
        output.note(
            f"\nhint: no more than {LISTED:,} are listed; `lamplighter tenants show NAME` shows any"
        )


@tenants.command()
@click.argument("name")
@store.store_options
def show(name: str, url: str | None, *, as_json: bool) -> None:
    """Show one tenant, however many there are."""
    checked = check_name("tenant", name)
    found = store.run(_tenant(url, checked))
    if found is None:
        raise InvalidInput(
            f"the tenant {shown(checked)} has neither jobs nor settings in this store",
            hint="check its name and the address of the store; `lamplighter tenants` lists those "
            "that have",
            value=checked,
        )
    if as_json:
        output.print_json(shapes.tenant(found))
    else:
        _print([found], empty="")


def _print(found: Sequence[TenantInfo], *, empty: str) -> None:
    output.print_table(
        ["tenant", ">weight", ">waiting", ">running", "~hold"],
        (
            [
                tenant.name,
                str(tenant.weight),
                (output.count(tenant.waiting), "cyan" if tenant.waiting else "dim"),
                (output.count(tenant.running), "bold yellow" if tenant.running else "dim"),
                output.hold(tenant.held),
            ]
            for tenant in found
        ),
        empty=empty,
    )


@tenants.command("set")
@click.argument("name")
@click.option(
    "--weight",
    type=click.IntRange(MIN_WEIGHT, MAX_WEIGHT),
    help="Share of the workers, in proportion to the others' weights.",
)
@click.option("--hold/--unhold", "held", default=None, help="Stop or resume handing out its jobs.")
@store.operator_options
@store.store_options
def set_tenant(
    name: str,
    weight: int | None,
    by: str | None,
    reason: str,
    url: str | None,
    *,
    held: bool | None,
    as_json: bool,
) -> None:
    """Set a tenant's weight, hold it, or let it go on."""
    if weight is None and held is None:
        raise click.UsageError("nothing to set: give --weight, --hold or --unhold")
    settings = TenantSettings(weight=weight, held=held)
    checked = check_name("tenant", name)
    found = store.run(_set(url, checked, settings, store.operator(by), reason))
    if as_json:
        output.print_json(shapes.tenant(found))
    else:
        held_text = f", held by {found.held.by}" if found.held else ""
        output.print_text(f"tenant {found.name}: weight {found.weight}{held_text}")


async def _tenants(url: str | None) -> list[TenantInfo]:
    async with store.opened(url) as engine:
        return await engine.inspector.tenants()


async def _tenant(url: str | None, name: str) -> TenantInfo | None:
    async with store.opened(url) as engine:
        return await engine.inspector.tenant(name)


async def _set(
    url: str | None, name: str, settings: TenantSettings, by: str, reason: str
) -> TenantInfo:
    async with store.opened(url) as engine:
        await engine.settings.put_tenant(name, settings, by=by, reason=reason)
        await noting.note(engine, "tenants.put", [About(name, name)], by=by, reason=reason)
        await wake_workers(engine)
        found = await engine.inspector.tenant(name)
    return found or TenantInfo(name=name, weight=settings.weight or DEFAULT_WEIGHT)
