"""A transaction that somebody leaves open elsewhere: does claiming become dearer and dearer?

While it is open the store can throw nothing away that was there when it began, nor anything that
came and went since. The driver plays the worker: it submits, claims and settles, 100 at a time.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import psycopg

from benchmarks.engines import Store, fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import percentile, rounded
from benchmarks.fleet import QUEUE, fill, opened
from benchmarks.jobs import PAYLOAD, Program
from benchmarks.report import Line
from benchmarks.scale import Bench
from lamplighter import runtime
from lamplighter.model.lifecycle import settle_all
from lamplighter.model.outcome import Succeeded
from lamplighter.port.values import ClaimRequest, SettleAnswer

RATIO = 5
"""How much longer 99 of 100 claims may take with it than before it."""

_AT_ONCE = 100
_WAITING = 1_000
_WINDOWS = 6


async def pinned(bench: Bench) -> dict[str, object]:
    """Time the claims before, and while the transaction is open."""
    seconds = bench.scale.pinned_seconds
    with fresh_store(bench.engine, bench.folder) as store:
        async with opened(store) as program:
            flow = Flow(program)
            await fill(program, _WAITING)
            await flow.run(bench.scale.pinned_before / 4)  # warm up
            before = await flow.run(bench.scale.pinned_before)
            with left_open(store):
                windows = [await flow.run(seconds / _WINDOWS) for _ in range(_WINDOWS)]
            after = await flow.run(bench.scale.pinned_before)
    return told(before, windows, after) | {"seconds": seconds, "jobs": flow.jobs}


class Flow:
    """Jobs that come and go, while as many as at the beginning always wait."""

    def __init__(self, program: Program) -> None:
        self.jobs = 0
        self._program = program
        self._worker = runtime.incarnation()

    async def run(self, seconds: float) -> list[float]:
        """Give the milliseconds that each claim took."""
        engine = await self._program.app.engine()
        found: list[float] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            calls = [self._program.count.call(PAYLOAD) for _ in range(_AT_ONCE)]
            await self._program.app.submit_many(calls)
            request = ClaimRequest(
                nonce=runtime.nonce(),
                worker=self._worker,
                queues=((QUEUE, _AT_ONCE),),
                types=("count",),
                limit=_AT_ONCE,
                lease_ms=30_000,
            )
            began = time.monotonic_ns()
            claimed = await engine.jobs.claim(request)
            found.append((time.monotonic_ns() - began) / 1e6)
            if len(claimed.claims) != _AT_ONCE:
                raise BenchmarkError(f"{len(claimed.claims)} jobs of {_AT_ONCE} were handed out")
            settled = await engine.jobs.settle(settle_all(claimed.claims, Succeeded()))
            if any(one.answer is not SettleAnswer.DONE for one in settled):
                raise BenchmarkError("a claim was lost in the middle of a measurement")
            self.jobs += _AT_ONCE
        return found


@contextlib.contextmanager
def left_open(store: Store) -> Generator[None]:
    """Keep a transaction open that has read, and sees the store as it was then."""
    if store.url.startswith("sqlite"):
        path = store.url.removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_master").fetchall()
            yield
        return
    with psycopg.connect(store.url.partition("?")[0]) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT count(*) FROM pg_class").fetchall()
        yield


def told(
    before: Sequence[float], windows: Sequence[Sequence[float]], after: Sequence[float]
) -> dict[str, object]:
    """Compare all claims while it was open with those before; and tell how it went on."""
    meanwhile = [ms for window in windows for ms in window]
    return {
        "before_p50_ms": rounded(percentile(before, 50)),
        "before_p99_ms": rounded(percentile(before, 99)),
        "p50_ms": rounded(percentile(meanwhile, 50)),
        "p99_ms": rounded(percentile(meanwhile, 99)),
        "p99_ratio": rounded(percentile(meanwhile, 99) / percentile(before, 99)),
        "windows_p50_ms": [rounded(percentile(window, 50)) for window in windows],
        "windows_p99_ms": [rounded(percentile(window, 99)) for window in windows],
        "after_p99_ms": rounded(percentile(after, 99)),
        "claims": len(meanwhile),
    }


def lines(part: Mapping[str, Any]) -> list[Line]:
    """Give what is shown of it."""
    ratio = part["p99_ratio"]
    over_time = " ".join(f"{ms:.3g}" for ms in part["windows_p50_ms"])
    late = " ".join(f"{ms:.3g}" for ms in part["windows_p99_ms"])
    return [
        Line(
            f"claim of {_AT_ONCE}, p50 / p99 before",
            f"{part['before_p50_ms']:.3g} / {part['before_p99_ms']:.3g} ms",
        ),
        Line(
            f"  a transaction open for {part['seconds']:g} s, p99 / before",
            f"{ratio:.3g} ×",
            ratio,
            RATIO,
        ),
        Line("  p50 over that time", f"{over_time} ms"),
        Line("  p99 over that time", f"{late} ms"),
        Line("  p99 after it", f"{part['after_p99_ms']:.3g} ms"),
    ]
