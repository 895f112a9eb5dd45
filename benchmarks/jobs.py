"""The jobs that are measured: most do nothing but say that they ran."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gauges import LONE, SLOT, Gauge
from lamplighter import App, Context
from lamplighter.job import AsyncContextJob, AsyncJob, SyncJob
from lamplighter.worker import descendants

GAUGES = "BENCHMARK_GAUGES"
"""Names the folder of the gauges to the children of a worker."""
METRICS_PORT = "BENCHMARK_METRICS_PORT"
"""Names the port at which a worker serves its metrics, if it does."""

EXTRA = "BENCHMARK_EXTRA"
"""Names the job types that a worker knows beside the two usual ones."""

PAYLOAD = "x" * (100 - len('{"payload":""}'))
"""Makes the stored arguments 100 bytes of JSON."""

SAYING = "invoice 4711 was sent to the customer"
"""What `say` logs."""

LINE = 1024
"""Bytes of a line that a flood prints, its end included."""
FLOOD_BEGINS, FLOOD_ENDS = -1, -2
"""Numbers under which a flood is noted."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Program:
    """An app and its job types."""

    app: App
    count: AsyncJob[[str], None]
    note: AsyncJob[[int], None]
    count_alone: SyncJob[[str], None]
    """`count` as a function, in a process of its own."""
    say: AsyncContextJob[[str], None]
    """`count` that logs a line and reports its progress."""
    count_once: AsyncJob[[str], None]
    """`count` that may start only once, so that its start is marked in the store before."""
    flood: SyncJob[[int], None]
    """Prints so many lines, in a thread of a child."""
    flood_alone: SyncJob[[int], None]
    """Prints so many lines, in a process of its own."""


class _Handlers:
    """What the handlers of all types do, in a child or in a process of their own."""

    def __init__(self) -> None:
        folder = os.environ.get(GAUGES)
        self._gauge = None if folder is None else own_gauge(Path(folder))

    def ran(self) -> None:
        if self._gauge is not None:
            self._gauge.count[0] += 1

    def mark(self, number: int) -> None:
        if self._gauge is not None:
            self._gauge.note_start(number)

    def pour(self, lines: int) -> None:
        self.mark(FLOOD_BEGINS)
        for number in range(lines):
            print(flood_line(number))
        self.mark(FLOOD_ENDS)
        self.ran()


def declare(app: App, *, extra: Collection[str] | None = None) -> Program:
    """Make the two usual job types known to an app, and of the others those named; None: all.

    A worker asks the store for the types it knows, and separately for those that run in processes
    of their own. It should know no others than those measured, whatever is added here.
    """
    handlers, unknown = _Handlers(), App(app.settings.url)

    def among(name: str) -> App:
        return app if extra is None or name in extra else unknown

    @app.job(name="count")
    async def count(payload: str) -> None:  # noqa: ARG001 - it travels, that is all
        handlers.ran()

    @app.job(name="note")
    async def note(number: int) -> None:
        handlers.mark(number)
        handlers.ran()

    @among("count-alone").job(name="count-alone", isolation="process")
    def count_alone(payload: str) -> None:  # noqa: ARG001 - as above
        handlers.ran()

    @among("say").job(name="say")
    async def say(ctx: Context, payload: str) -> None:  # noqa: ARG001 - as above
        _log.info(SAYING)
        ctx.progress(1, 1)
        handlers.ran()

    @among("count-once").job(name="count-once", delivery="at_most_once")
    async def count_once(payload: str) -> None:  # noqa: ARG001 - as above
        handlers.ran()

    @among("flood").job(name="flood", timeout=600)
    def flood(lines: int) -> None:
        handlers.pour(lines)

    @among("flood-alone").job(name="flood-alone", timeout=600, isolation="process")
    def flood_alone(lines: int) -> None:
        handlers.pour(lines)

    return Program(app, count, note, count_alone, say, count_once, flood, flood_alone)


def own_gauge(folder: Path) -> Gauge:
    """Give the gauge of this process, which says what kind of process it is."""
    if descendants.SLOT in os.environ:
        return Gauge(folder, SLOT)
    return Gauge(folder, LONE if "/p" in os.environ.get(descendants.CHILD, "") else "")


def flood_line(number: int) -> str:
    """Give a line of a flood, without its end."""
    return f"line {number} ".ljust(LINE - 1, "~")
