"""`lamplighter tenants`: who shares the workers, and in which proportion."""

from __future__ import annotations

import click

from lamplighter.cli import noting, output, shapes, store
from lamplighter.cli.listing import ListingGroup
from lamplighter.model.names import check_name
from lamplighter.model.stride import MAX_WEIGHT, MIN_WEIGHT
from lamplighter.port.access import About
from lamplighter.port.values import TenantInfo, TenantSettings


@click.group(cls=ListingGroup)
def tenants() -> None:
    """List tenants, or set one's share."""


@tenants.command("list")
@store.store_options
def list_tenants(url: str | None, *, as_json: bool) -> None:
    """List tenants with their weights and what they have waiting and running."""
    found = store.run(_tenants(url))
    if as_json:
        output.print_json({"tenants": [shapes.tenant(tenant) for tenant in found]})
        return
    output.print_table(
        ["tenant", ">weight", ">waiting", ">running", "hold"],
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
        empty="no tenant has jobs or settings",
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


async def _set(
    url: str | None, name: str, settings: TenantSettings, by: str, reason: str
) -> TenantInfo:
    async with store.opened(url) as engine:
        await engine.settings.put_tenant(name, settings, by=by, reason=reason)
        await noting.note(engine, "tenants.put", [About(name, name)], by=by, reason=reason)
        await store.wake_all(engine)
        found = {tenant.name: tenant for tenant in await engine.inspector.tenants()}
    # The list of tenants is bounded; what was just written is known all the same.
    return found.get(name) or TenantInfo(name=name, weight=settings.weight or 1)
