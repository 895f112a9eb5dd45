"""`lamplighter queues`: what waits and runs where, and how long anybody may wait."""

from __future__ import annotations

import click

from lamplighter.cli import noting, output, reading, shapes, store
from lamplighter.cli.listing import ListingGroup
from lamplighter.model.errors import InvalidTime
from lamplighter.model.lifecycle import milliseconds
from lamplighter.model.names import check_name, shown
from lamplighter.model.retry import LONGEST_DELAY
from lamplighter.port.access import About
from lamplighter.port.values import QueueInfo, QueueSettings


@click.group(cls=ListingGroup)
def queues() -> None:
    """List queues, or set how one is served."""


@queues.command("list")
@store.store_options
def list_queues(url: str | None, *, as_json: bool) -> None:
    """List queues with what waits and runs in them. Counts are exact to 10,000."""
    found = store.run(_queues(url))
    if as_json:
        output.print_json({"queues": [shapes.queue(queue) for queue in found]})
        return
    output.print_table(
        ["queue", ">ready", ">scheduled", ">running", ">oldest due", ">max wait", "hold"],
        (
            [
                queue.name,
                (output.count(queue.ready), "cyan" if queue.ready else "dim"),
                (output.count(queue.scheduled), "blue" if queue.scheduled else "dim"),
                (output.count(queue.running), "bold yellow" if queue.running else "dim"),
                "" if queue.oldest_due_ms is None else output.span(queue.oldest_due_ms / 1000),
                output.span(queue.max_wait_ms / 1000),
                output.hold(queue.held),
            ]
            for queue in found
        ),
        empty="no queue yet; the first job submitted to one makes it",
    )


@queues.command("set")
@click.argument("name")
@click.option("--max-wait", metavar="DURATION", help="Longest wait before a job goes first.")
@click.option("--hold/--unhold", "held", default=None, help="Stop or resume handing out its jobs.")
@store.operator_options
@store.store_options
def set_queue(
    name: str,
    max_wait: str | None,
    by: str | None,
    reason: str,
    url: str | None,
    *,
    held: bool | None,
    as_json: bool,
) -> None:
    """Set a queue's longest wait, hold it, or let it go on."""
    if max_wait is None and held is None:
        raise click.UsageError("nothing to set: give --max-wait, --hold or --unhold")
    settings = QueueSettings(max_wait_ms=_max_wait_ms(max_wait), held=held)
    checked = check_name("queue", name)
    found = store.run(_set(url, checked, settings, store.operator(by), reason))
    if as_json:
        output.print_json(shapes.queue(found))
    else:
        held_text = f", held by {found.held.by}" if found.held else ""
        wait = output.span(found.max_wait_ms / 1000)
        output.print_text(f"queue {found.name}: longest wait {wait}{held_text}")


def _max_wait_ms(text: str | None) -> int | None:
    if text is None:
        return None
    seconds = reading.duration("the longest wait", text)
    if not 0 < seconds <= LONGEST_DELAY:
        raise InvalidTime(
            f"the longest wait {shown(text)} is no time at all, or more than a year",
            hint="give more than 0 seconds and at most 366d; the default is 60",
            value=text,
        )
    return milliseconds(seconds)


async def _queues(url: str | None) -> list[QueueInfo]:
    async with store.opened(url) as engine:
        return await engine.inspector.queues()


async def _set(
    url: str | None, name: str, settings: QueueSettings, by: str, reason: str
) -> QueueInfo:
    async with store.opened(url) as engine:
        await engine.settings.put_queue(name, settings, by=by, reason=reason)
        await noting.note(engine, "queues.put", [About(name)], by=by, reason=reason)
        await store.wake_all(engine)
        return next(queue for queue in await engine.inspector.queues() if queue.name == name)
