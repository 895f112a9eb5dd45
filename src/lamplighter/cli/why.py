"""`lamplighter why`: why is this job not running?"""

from __future__ import annotations

import click

from lamplighter.cli import output, reading, shapes, store
from lamplighter.client import unknown
from lamplighter.model.job import TERMINAL
from lamplighter.port.values import Explanation, Why

_HELD = (Why.RUNNING, Why.WORKER_SUSPECT)


@click.command(short_help="Say why a job is not running.")
@click.argument("job_id", metavar="ID")
@store.store_options
def why(job_id: str, url: str | None, *, as_json: bool) -> None:
    """Say why a job is not running: held, not due, behind others, no worker."""
    (checked,) = reading.ids([job_id])
    found = store.run(_explain(url, checked))
    if as_json:
        output.print_json(shapes.explanation(found))
        return
    record = found.record
    output.print_text(f"{record.job.type} {record.job.id} is {record.status.value}:", bold=True)
    for reason in found.reasons:
        held = "its lease lasts " if reason.why in _HELD else ""
        until = f" ({held}until {output.instant(reason.until_ms)})" if reason.until_ms else ""
        output.print_text(f"  {reason.text}{until}")
    if record.state in TERMINAL and record.error is not None:
        output.print_text(f"  its last error: {output.cause(record.error.text)}")
        output.note(f"hint: `lamplighter jobs show {record.job.id}` has all of it")


async def _explain(url: str | None, job_id: str) -> Explanation:
    async with store.opened(url) as engine:
        found = await engine.inspector.explain(job_id)
    if found is None:
        raise unknown(job_id)
    return found
