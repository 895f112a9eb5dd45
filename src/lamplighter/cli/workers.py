"""`lamplighter workers`: who is alive."""

from __future__ import annotations

import click

from lamplighter.cli import output, shapes, store
from lamplighter.cli.listing import ListingGroup
from lamplighter.port.values import WorkerInfo


@click.group(cls=ListingGroup)
def workers() -> None:
    """List the workers and how they are."""


@workers.command("list")
@store.store_options
def list_workers(url: str | None, *, as_json: bool) -> None:
    """List the workers and how they are."""
    found = store.run(_workers(url))
    if as_json:
        output.print_json({"workers": [shapes.worker(worker) for worker in found]})
        return
    output.print_table(
        ["state", "?~host", ">pid", ">running", ">slots", "~queues", "last beat", "worker"],
        (
            [
                output.status(worker.state),
                worker.host,
                str(worker.pid),
                str(worker.running),
                str(worker.slots),
                ",".join(worker.queues),
                output.away(worker.beat_at_ms),
                (worker.id, "dim"),
            ]
            for worker in found
        ),
        empty="no worker has joined; start one with `lamplighter worker MODULE:APP`",
    )


async def _workers(url: str | None) -> list[WorkerInfo]:
    async with store.opened(url) as engine:
        return await engine.inspector.workers()
