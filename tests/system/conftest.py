"""A store, and workers as real processes on it. Nothing here waits for time, only for events."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lamplighter import runtime
from lamplighter.connect import connect
from lamplighter.model.ids import compose
from lamplighter.model.job import TERMINAL, Delivery, Extras, JobRecord, NewJob
from lamplighter.port.store import Engine, queue_topic

ROOT = Path(__file__).parents[2]
PATIENCE = 20.0
DECODER = json.JSONDecoder()


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - any condition, also outside this process
            await asyncio.sleep(0.01)


class Worker:
    """A worker process and what it has told."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.events: list[tuple[str, dict]] = []
        self.lone_events: list[tuple[str, dict]] = []
        """What was told of the child whose jobs run alone."""
        self.printed: list[str] = []
        self.errors = ""
        self._readers = [
            asyncio.ensure_future(self._read_events()),
            asyncio.ensure_future(self._read_errors()),
        ]

    async def told(self, name: str, count: int = 1, **fields) -> dict:
        """Wait until an event with these fields was told so often; gives the last of them."""

        def found() -> list[dict]:
            return [f for n, f in self.events if n == name and fields.items() <= f.items()]

        try:
            await until(lambda: len(found()) >= count)
        except TimeoutError:
            raise AssertionError(
                f"waited in vain for {name} {fields}: {self.events} {self.errors}"
            ) from None
        return found()[count - 1]

    def told_of(self, name: str) -> list[dict]:
        return [fields for told, fields in self.events if told == name]

    def child_pids(self) -> list[int]:
        return [fields["pid"] for fields in self.told_of("child.started")]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE):
            status = await self.process.wait()
            await asyncio.gather(*self._readers)
            return status

    async def _read_events(self) -> None:
        async for line in self.process.stdout:
            # What handlers print still comes here, perhaps into the midst of a line.
            start = line.find(b'["')
            if start >= 0:
                (name, fields), _ = DECODER.raw_decode(line[start:].decode())
                # Tests speak of children that run handlers themselves, unless they ask.
                known = self.lone_events if fields.get("alone") else self.events
                known.append((name, fields))
            else:
                self.printed.append(line.decode())

    async def _read_errors(self) -> None:
        self.errors = (await self.process.stderr.read()).decode()


class Runs:
    """What handlers have told of their runs: (job, what, pid, lease)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self, job_id: str | None = None, what: str | None = None) -> list[list[str]]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [
            parts
            for parts in (line.split() for line in lines)
            if job_id in {None, parts[0]} and what in {None, parts[1]}
        ]

    async def seen(self, job_id: str, what: str, count: int = 1) -> list[str]:
        await until(lambda: len(self.lines(job_id, what)) >= count)
        return self.lines(job_id, what)[count - 1]

    def release(self) -> None:
        Path(f"{self.path}.release").touch()


class World:
    """A store, workers, and what became of jobs."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.url = url or f"sqlite:///{folder}/jobs.db"
        self.runs = Runs(folder / "runs")
        self.engine: Engine = connect(self.url)
        self.workers: list[Worker] = []

    async def submit(self, type: str, *, timeout: float | None = None, **arguments) -> str:
        (job_id,) = await self.submit_all([(type, json.dumps(arguments).encode())], timeout=timeout)
        return job_id

    async def submit_all(
        self,
        calls,
        *,
        timeout: float | None = None,
        delivery: Delivery = Delivery.AT_LEAST_ONCE,
    ) -> list[str]:
        jobs = [
            NewJob(
                id=self.new_id(),
                type=type,
                args=args,
                extras=Extras(timeout=timeout),
                delivery=delivery,
            )
            for type, args in calls
        ]
        most = min(1_000, self.engine.capabilities.max_batch)
        for start in range(0, len(jobs), most):
            await self.engine.jobs.submit(jobs[start : start + most])
        await self.engine.wakeup.notify(queue_topic("default"))
        return [job.id for job in jobs]

    @staticmethod
    def new_id(shard: int = 0) -> str:
        return compose(runtime.now_ms(), shard, runtime.random_bits(70))

    async def worker(
        self, spec: str = "tests.system.program:app", *, ready: bool = True, **settings
    ) -> Worker:
        given = {"url": self.url, "children": 1, "poll": 0.1, **settings}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.system.worker_process",
            spec,
            json.dumps(given),
            cwd=ROOT,
            env={**os.environ, "RUN_LOG": str(self.runs.path)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        worker = Worker(process)
        self.workers.append(worker)
        if ready:
            await worker.told("worker.started")
        return worker

    async def ended(self, job_id: str) -> JobRecord:
        async with asyncio.timeout(PATIENCE):
            while True:
                record = await self.engine.inspector.job(job_id)
                assert record is not None
                if record.state in TERMINAL:
                    return record
                await asyncio.sleep(0.01)

    async def close(self) -> None:
        self.runs.release()
        for worker in self.workers:
            if worker.process.returncode is None:
                worker.signal(signal.SIGTERM)
        for worker in self.workers:
            try:
                await worker.ended()
            except TimeoutError:
                worker.process.kill()
                await worker.ended()
        await self.engine.close()


__all__ = ["Worker", "World", "any_world", "until", "world"]
CHOSEN = os.environ.get("LAMPLIGHTER_ENGINES", "sqlite").split(",")

if "postgres" in CHOSEN:
    # Found by pytest under their names: the servers end with the session.
    from tests.servers.stores import shared_postgres_ends

    __all__ += ["shared_postgres_ends"]

if {"redis", "redis-sharded"} & set(CHOSEN):
    from tests.servers.redis_stores import shared_redis_ends

    __all__ += ["shared_redis_ends"]


@contextlib.contextmanager
def fresh_store(engine: str, folder: Path) -> Iterator[str]:
    """Give the address of a new, empty store."""
    if engine == "sqlite":
        yield f"sqlite:///{folder}/jobs.db"
    elif engine == "postgres":
        from tests.servers.stores import postgres_schemas

        with postgres_schemas(folder) as fresh:
            yield fresh()
    else:
        from tests.servers.redis_stores import redis_prefixes

        sharded = {"shards": "4"} if engine == "redis-sharded" else {}
        with redis_prefixes(folder, **sharded) as fresh:
            yield fresh()


@pytest.fixture(params=CHOSEN)
async def any_world(request, tmp_path):
    """A world on each engine that LAMPLIGHTER_ENGINES names."""
    with fresh_store(request.param, tmp_path) as url:
        world = World(tmp_path, url)
        await world.engine.open()
        yield world
        await world.close()


@pytest.fixture
async def world(tmp_path):
    world = World(tmp_path)
    await world.engine.open()
    yield world
    await world.close()
