"""`lamplighter audit`: who has changed what."""

from __future__ import annotations

import click

from lamplighter.cli import output, store
from lamplighter.cli.listing import limit_option
from lamplighter.model.names import check_name, shown
from lamplighter.port.access import AuditRecord

PAGE = 500
_EMPTY = "nothing was changed yet"
_EMPTY_OF = (
    "nothing was changed yet that belongs to the tenant {}\n\n"
    "hint: `lamplighter audit` lists the changes of all; those of queues and types belong to none"
)


@click.command(short_help="List who has changed what, newest first.")
@click.option("--tenant", help="Only what belongs to this tenant.")
@limit_option(50, most=100_000)
@store.store_options
def audit(tenant: str | None, limit: int, url: str | None, *, as_json: bool) -> None:
    """List who has changed what, over HTTP or with this command, newest first."""
    wanted = None if tenant is None else check_name("tenant", tenant)
    found = store.run(_entries(url, wanted, limit))
    if as_json:
        output.print_json({"entries": [_shape(record) for record in found]})
        return
    output.print_table(
        ["when", "~who", "did", "to", "?~tenant", "~~answer", "~~why"],
        (
            [
                output.instant(record.at_ms) or "",
                record.entry.by,
                record.entry.action,
                record.entry.object,
                record.entry.tenant or "",
                record.entry.answer,
                record.entry.reason,
            ]
            for record in found
        ),
        empty=_EMPTY if wanted is None else _EMPTY_OF.format(shown(wanted)),
    )


def _shape(record: AuditRecord) -> dict[str, object]:
    entry = record.entry
    return {
        "id": entry.id,
        "at": output.instant(record.at_ms),
        "by": entry.by,
        "action": entry.action,
        "object": entry.object,
        "tenant": entry.tenant,
        "reason": entry.reason,
        "answer": entry.answer,
    }


async def _entries(url: str | None, tenant: str | None, limit: int) -> list[AuditRecord]:
    found: list[AuditRecord] = []
    cursor: str | None = None
    async with store.opened(url) as engine:
        while True:
            wanted = min(PAGE, limit - len(found))
            page = await engine.access.audit(tenant=tenant, limit=wanted, cursor=cursor)
            found += page.records
            cursor = page.cursor
            if cursor is None or len(found) >= limit:
                return found
