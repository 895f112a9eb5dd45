"""`lamplighter jobs logs`: what the attempts of a job have logged and printed."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

import click

from lamplighter import runtime
from lamplighter.cli import output, reading, shapes, store
from lamplighter.model.counts import counted
from lamplighter.model.job import TERMINAL, Attempt
from lamplighter.model.journal import Line, unpack
from lamplighter.observability.logs import json_text
from lamplighter.port.store import Engine

POLL = 0.5
"""Seconds between two looks for new lines."""
PAGE = 100
"""Pieces that are read at once."""

_COLOURS = {"warning": "yellow", "error": "red", "critical": "bright_red", "err": "red"}
_TIME = 24
_LEVEL = 8


@click.command()
@click.argument("job_id", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Print new lines until the job has ended.")
@click.option(
    "--attempt",
    "lease",
    metavar="LEASE",
    type=click.IntRange(min=0),
    help="Only the attempt with this lease; `jobs show` lists them.",
)
@click.option(
    "--tail", metavar="N", type=click.IntRange(min=0), help="Only the last N of the lines so far."
)
@store.store_options
def logs(
    job_id: str,
    lease: int | None,
    tail: int | None,
    url: str | None,
    *,
    follow: bool,
    as_json: bool,
) -> None:
    """Print what a job has logged: time, attempt and its lease, level, text.

    Of a long log the store keeps the beginning and the end of each attempt.
    """
    (checked,) = reading.ids([job_id])
    store.run(_print(url, checked, lease, tail, follow=follow, as_json=as_json))


@dataclass(frozen=True, slots=True)
class Entry:
    """A line, and whose it is."""

    line: Line
    lease: int
    attempt: Attempt | None
    """None: nothing else is kept of the attempt."""
    cut: int
    """Lines of the attempt before this one that are not kept."""

    def __str__(self) -> str:
        number = "?" if self.attempt is None else self.attempt.number
        level = output.one_line(self.line.level)
        styled = click.style(f"{level:<{_LEVEL}}", fg=_COLOURS.get(level))
        text = output.one_line(self.line.text)
        return f"{self._time():<{_TIME}}  #{number}/{self.lease}  {styled}  {text}"

    def _time(self) -> str:
        """Say when it was, or how long after the beginning if that is not known."""
        at = shapes.line_instant(self.line, self.attempt)
        return f"+{self.line.at_ms / 1000:.3f} s" if at is None else at


class Log:
    """The log of a job, read from where one has stopped reading."""

    def __init__(self, engine: Engine, job_id: str, lease: int | None) -> None:
        self._inspector = engine.inspector
        self._job_id = job_id
        self._lease = lease
        self._after = None if lease is None else (lease, -1)
        self._following = (-1, 0)
        """Lease and number of the line that should come next."""

    async def new(self) -> AsyncIterator[Entry]:
        """Return the lines that were not given before."""
        while True:
            pieces = await self._inspector.logs(self._job_id, after=self._after, limit=PAGE)
            if not pieces:
                return
            known = await self._attempts(pieces[-1].lease, PAGE)
            for found in pieces:
                if self._lease not in {None, found.lease}:
                    return
                self._after = (found.lease, found.piece.number)
                for line in unpack(found.piece.data):
                    cut = self._cut_before(found.lease, line.number)
                    yield Entry(line, found.lease, known.get(found.lease), cut)

    async def over(self) -> bool:
        """Tell whether nothing will be added any more."""
        record = await self._inspector.job(self._job_id)
        if record is None or record.state in TERMINAL:
            return True
        if self._lease is None:
            return False
        attempt = (await self._attempts(self._lease, 1)).get(self._lease)
        return attempt is None or attempt.finished_at_ms is not None

    async def _attempts(self, until: int, limit: int) -> dict[int, Attempt]:
        found = await self._inspector.attempts(self._job_id, until=until, limit=limit)
        return {attempt.lease: attempt for attempt in found}

    def _cut_before(self, lease: int, number: int) -> int:
        last_lease, expected = self._following
        if lease != last_lease:
            expected = 0
        self._following = (lease, max(expected, number + 1))
        return max(0, number - expected)


async def _print(
    url: str | None,
    job_id: str,
    lease: int | None,
    tail: int | None,
    *,
    follow: bool,
    as_json: bool,
) -> None:
    async with store.opened(url) as engine:
        record = await store.job(engine, job_id)
        log = Log(engine, job_id, lease)
        over = await log.over()
        entries = deque([entry async for entry in log.new()], maxlen=tail)
        if as_json and not follow:
            lines = [shapes.line(entry.line, entry.lease, entry.attempt) for entry in entries]
            cut = sum(entry.cut for entry in entries)
            status = record.status.value
            output.print_json({"id": job_id, "status": status, "lines": lines, "cut": cut})
            return
        told = all(_tell(entry, as_json=as_json) for entry in entries)
        some = bool(entries)
        while follow and told and not over:
            await runtime.sleep(POLL)
            # Looked at first: what is written until then will be read.
            over = await log.over()
            async for entry in log.new():
                some = True
                told = told and _tell(entry, as_json=as_json)
        if not some:
            _excuse(job_id, lease, tail)


def _tell(entry: Entry, *, as_json: bool) -> bool:
    """Print one line; False when nobody reads any more."""
    if as_json:
        shape = shapes.line(entry.line, entry.lease, entry.attempt)
        return output.tell(json_text(shape))
    if entry.cut:
        output.tell(click.style(f"… {counted(entry.cut, 'line')} cut …", dim=True))
    return output.tell(str(entry))


def _excuse(job_id: str, lease: int | None, tail: int | None) -> None:
    if tail == 0:
        return
    whose = f"job {job_id}" if lease is None else f"the attempt of job {job_id} with lease {lease}"
    output.note(f"{whose} has no log")
