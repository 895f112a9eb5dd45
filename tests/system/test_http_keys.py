"""One job per idempotency key, however often it is posted and the service is killed.

`LAMPLIGHTER_HTTP_KEYS=1000` makes it a long run; `LAMPLIGHTER_HTTP_KEYS_URL` names another store.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import suppress

import pytest

from lamplighter import App
from lamplighter.model.filters import Filter

KEYS = int(os.environ.get("LAMPLIGHTER_HTTP_KEYS", "60"))
AT_ONCE = 50
"""Posts of one key at the same time."""
KILLS = 4 + KEYS // 50
PATIENCE = 60.0 + KEYS

pytestmark = pytest.mark.timeout(2 * PATIENCE)


class Service:
    """`lamplighter serve`, which is killed and started again on the same port."""

    def __init__(self, folder, url: str) -> None:
        self._folder = folder
        self._environment = {**os.environ, "LAMPLIGHTER_URL": url}
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lamplighter", "serve", "--port", str(self.port), "--json"],
            cwd=self._folder,
            env={**self._environment, "LAMPLIGHTER_HTTP_UNKNOWN_TYPES": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self._process.stdout.readline()
        assert line, "it did not start"
        self.port = int(json.loads(line)["url"].rpartition(":")[2])

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


class Poster:
    """Posts keys one after the other, each until it has an answer."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._line: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.repeated = 0

    async def post(self, key: str) -> tuple[int, dict[str, str]]:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                status, body = await self._once(key)
                if status in {200, 201}:
                    return status, body
                assert status == 503, body
            await self.close()
            self.repeated += 1
            await asyncio.sleep(0.02)

    async def _once(self, key: str) -> tuple[int, dict[str, str]]:
        if self._line is None:
            self._line = await asyncio.open_connection("127.0.0.1", self._service.port)
        reader, writer = self._line
        body = json.dumps({"type": "charge", "arguments": {"key": key}})
        writer.write(
            f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Idempotency-Key: {key}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().lower().split("\r\n")[1:-2])
        answer = json.loads(await reader.readexactly(int(fields["content-length"])))
        return int(head[9:12]), answer

    async def close(self) -> None:
        if self._line is not None:
            self._line[1].close()
            self._line = None


async def test_each_key_is_one_job_though_the_service_is_killed_again_and_again(tmp_path):
    url = os.environ.get("LAMPLIGHTER_HTTP_KEYS_URL", f"sqlite:///{tmp_path}/jobs.db")
    service = Service(tmp_path, url)
    service.start()
    answers: dict[str, list[tuple[int, dict[str, str]]]] = {f"k-{n}": [] for n in range(KEYS)}
    posters = [Poster(service) for _ in range(AT_ONCE)]

    goals = {KEYS * AT_ONCE * number // (KILLS + 1) for number in range(1, KILLS + 1)}
    reached: asyncio.Queue[int] = asyncio.Queue()
    numbers = itertools.count(1)

    async def post_all(poster: Poster) -> None:
        for key, said in answers.items():
            said.append(await poster.post(key))
            if (number := next(numbers)) in goals:
                reached.put_nowait(number)
        await poster.close()

    async def kill_often() -> None:
        for _ in goals:
            await reached.get()
            # In the middle of requests: all posters have one under way.
            service.kill()
            await asyncio.to_thread(service.start)

    try:
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            group.create_task(kill_often())
            for poster in posters:
                group.create_task(post_all(poster))
    finally:
        service.kill()
    assert sum(poster.repeated for poster in posters) > KILLS
    for said in answers.values():
        assert len(said) == AT_ONCE
        assert len({body["id"] for _, body in said}) == 1
        assert sum(status == 201 for status, _ in said) <= 1
    stored = await _stored_keys(url)
    assert stored == Counter(answers.keys())


async def _stored_keys(url: str) -> Counter[str]:
    """Count the jobs in the store by their key."""
    found: Counter[str] = Counter()
    async with App(url) as app:
        inspector, cursor = (await app.engine()).inspector, None
        while True:
            page = await inspector.jobs(Filter(), limit=500, cursor=cursor)
            found.update(json.loads(record.job.args)["key"] for record in page.jobs)
            cursor = page.cursor
            if cursor is None:
                return found
