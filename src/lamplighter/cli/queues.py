"""`lamplighter queues`: what waits and runs where, and how long anybody may wait."""

from __future__ import annotations

from collections import Counter

import click

from lamplighter.cli import noting, output, reading, shapes, store
from lamplighter.cli.listing import ListingGroup
from lamplighter.client import queue_in_use, wake_workers
from lamplighter.coordinator.outlook import running_jobs
from lamplighter.model.errors import InvalidInput, InvalidTime
from lamplighter.model.lifecycle import milliseconds
from lamplighter.model.names import check_name, shown
from lamplighter.model.retry import LONGEST_DELAY
from lamplighter.port.access import About
from lamplighter.port.outlook import lost_in
from lamplighter.port.values import ChangeAnswer, QueueInfo, QueueSettings


@click.group(cls=ListingGroup)
def queues() -> None:
    """List queues, set how one is served, or remove an empty one."""


@queues.command("list")
@store.store_options
def list_queues(url: str | None, *, as_json: bool) -> None:
    """List queues with what waits and runs in them. Counts are exact to 10,000."""
    found, lost = store.run(_queues(url))
    if as_json:
        told = [{**shapes.queue(queue), "lost": lost[queue.name]} for queue in found]
        output.print_json({"queues": told})
        return
    output.print_table(
        ["queue", ">ready", ">scheduled", ">running", ">oldest due", ">max wait", "~hold"],
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
    if lost:
        told = ", ".join(f"{number:,} of {name}" for name, number in sorted(lost.items()))
        output.note(
            f"\nrunning, but their workers are dead or gone: {told}. They run again when a live "
            "worker gives them back; `lamplighter doctor` says whether there is one"
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


@queues.command("remove")
@click.argument("name")
@store.operator_options
@store.store_options
def remove_queue(name: str, by: str | None, reason: str, url: str | None, *, as_json: bool) -> None:
    """Remove an empty queue that no worker serves, with its settings.

    It comes back with its next job, and is listed while it has any.
    """
    checked = check_name("queue", name)
    answer = store.run(_remove(url, checked, store.operator(by), reason))
    if as_json:
        output.print_json({"name": checked, "answer": answer.value})
    else:
        done = answer is ChangeAnswer.DONE
        output.print_text(f"queue {checked}: {'removed' if done else 'was removed before'}")


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


async def _queues(url: str | None) -> tuple[list[QueueInfo], Counter[str]]:
    """Read queues, and count running jobs whose workers are dead, by queue."""
    async with store.opened(url) as engine:
        found = await engine.inspector.queues()
        if not any(queue.running for queue in found):
            return found, Counter()
        workers = await engine.inspector.workers()
        return found, lost_in(await running_jobs(engine.inspector), workers)


async def _set(
    url: str | None, name: str, settings: QueueSettings, by: str, reason: str
) -> QueueInfo:
    async with store.opened(url) as engine:
        await engine.settings.put_queue(name, settings, by=by, reason=reason)
        await noting.note(engine, "queues.put", [About(name)], by=by, reason=reason)
        await wake_workers(engine)
        return next(queue for queue in await engine.inspector.queues() if queue.name == name)


async def _remove(url: str | None, name: str, by: str, reason: str) -> ChangeAnswer:
    async with store.opened(url) as engine:
        answer = await engine.settings.remove_queue(name, by=by, reason=reason)
        if answer is ChangeAnswer.UNKNOWN:
            raise InvalidInput(
                f"there is no queue {shown(name)}",
                hint="`lamplighter queues list` shows all there are",
                value=name,
            )
        if answer is ChangeAnswer.CONFLICT:
            raise queue_in_use(name)
        about = [About(name, answer=answer.value)]
        await noting.note(engine, "queues.remove", about, by=by, reason=reason)
        return answer
