"""What it takes to put very many schedules in one call, and to put them again unchanged."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.engines import Store, fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import rounded
from benchmarks.fleet import opened
from benchmarks.jobs import Program
from benchmarks.report import Line
from benchmarks.scale import Bench
from lamplighter.port.schedules import NewSchedule, Put, PutAnswer

_DAY = 24 * 60


async def put(bench: Bench) -> dict[str, object]:
    """Make them and put them; then once more, which must change nothing."""
    count = bench.scale.schedules_put
    with fresh_store(bench.engine, bench.folder) as store:
        async with opened(store) as program:
            # Connected and set up, which is no part of it.
            await program.app.schedules.put_many(made(program, 1, "first"))
            making = Stopwatch(store)
            schedules = made(program, count, "daily")
            makes = making.per(count)
            putting = Stopwatch(store)
            answers = await program.app.schedules.put_many(schedules)
            puts = putting.per(count)
            check(answers, count, PutAnswer.CREATED)
            again = Stopwatch(store)
            answers = await program.app.schedules.put_many(schedules)
            repeats = again.per(count)
            check(answers, count, PutAnswer.ALREADY)
    return {"schedules": count, "make": makes, "put": puts, "again": repeats}


def made(program: Program, count: int, name: str) -> list[NewSchedule]:
    """Make schedules for each minute of the day in turn, each of a tenant of its own."""
    return [
        program.app.schedules.make(
            f"tenant-{number}/{name}",
            f"{number % 60} {number // 60 % 24} * * *",
            program.note.options(tenant=f"tenant-{number}").call(number),
        )
        for number in range(count)
    ]


class Stopwatch:
    """Seconds, and CPU of the driver and of the store's server, since it was made."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._server = store.server_cpu_ns()
        self._own, self._began = time.process_time_ns(), time.monotonic()

    def cpu_us(self) -> tuple[float, float]:
        """CPU microseconds so far: the driver's, and the server's."""
        own = time.process_time_ns() - self._own
        return own / 1000, (self._store.server_cpu_ns() - self._server) / 1000

    def per(self, count: int) -> dict[str, float]:
        """Give the seconds that many have taken, and the CPU of each."""
        seconds = time.monotonic() - self._began
        driver, server = self.cpu_us()
        return {
            "seconds": rounded(seconds),
            "cpu_us": rounded((driver + server) / count),
            "server_us": rounded(server / count),
        }


def check(answers: Sequence[Put], count: int, wanted: PutAnswer) -> None:
    """Refuse to go on unless that is what became of each."""
    wrong = sum(answer.answer is not wanted for answer in answers)
    if wrong or len(answers) != count:
        raise BenchmarkError(
            f"of {count} schedules {len(answers)} were answered, {wrong} not as {wanted}"
        )


def lines(part: Mapping[str, Any]) -> list[Line]:
    """Give what is shown of it."""
    make, first, again = part["make"], part["put"], part["again"]
    return [
        Line(f"{part['schedules']:,} schedules put in one call", f"{first['seconds']:.3g} s"),
        Line("  CPU of one", f"{first['cpu_us']:.4g} µs"),
        Line("  and to make and check it before", f"{make['cpu_us']:.4g} µs"),
        Line("  put again unchanged", f"{again['seconds']:.3g} s, {again['cpu_us']:.4g} µs"),
    ]
