"""The jobs that are measured: they do nothing but say that they ran."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gauges import Gauge
from lamplighter import App
from lamplighter.job import AsyncJob

GAUGES = "BENCHMARK_GAUGES"
"""Names the folder of the gauges to the children of a worker."""

PAYLOAD = "x" * (100 - len('{"payload":""}'))
"""Makes the stored arguments 100 bytes of JSON."""


@dataclass(frozen=True, slots=True)
class Program:
    """An app and its two job types."""

    app: App
    count: AsyncJob[[str], None]
    note: AsyncJob[[int], None]


def declare(app: App) -> Program:
    """Make the two job types known to an app."""
    folder = os.environ.get(GAUGES)
    gauge = None if folder is None else Gauge(Path(folder))

    @app.job(name="count")
    async def count(payload: str) -> None:  # noqa: ARG001 - it travels, that is all
        if gauge is not None:
            gauge.count[0] += 1

    @app.job(name="note")
    async def note(number: int) -> None:
        if gauge is not None:
            gauge.note_start(number)
            gauge.count[0] += 1

    return Program(app, count, note)
