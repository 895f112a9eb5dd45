"""A real service in a process of its own, and hands to move the jobs behind it."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from lamplighter import App, runtime
from lamplighter.http import HttpApp
from lamplighter.model.job import Claim, ErrorInfo
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Failed, Succeeded
from lamplighter.model.retry import Retry
from lamplighter.port.values import ClaimRequest
from tests.unit.server.test_serve import KEY, serving

PROGRAM = """
from dataclasses import dataclass
from lamplighter import App

app = App("sqlite:///jobs.db")

@dataclass
class Receipt:
    order_id: str
    cents: int

@app.job(queue="payments")
async def charge(order_id: str, cents: int = 100) -> Receipt:
    return Receipt(order_id, cents)
"""


class Leaping(runtime.System):
    """A clock that stands still, but for what is slept: that has passed at once."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 1_000.0

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)


@pytest.fixture
def leaping() -> Iterator[Leaping]:
    """Pauses between requests take no time, however slow the machine is."""
    with runtime.install(clock := Leaping()):
        yield clock


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("http")


@pytest.fixture(scope="module")
def address(folder):
    """The address of the service; one for all tests of a file."""
    (folder / "shop.py").write_text(PROGRAM)
    (folder / "keys").write_text(KEY)
    with serving(folder, "shop:app", "--key-file", "keys") as (_, url):
        yield url


@pytest.fixture
async def app(address) -> AsyncIterator[HttpApp]:
    async with HttpApp(address.geturl(), token=KEY) as made:
        yield made


@pytest.fixture
async def store(folder) -> AsyncIterator[App]:
    """The store behind the service."""
    made = App(f"sqlite:///{folder}/jobs.db")
    yield made
    await made.close()


@pytest.fixture
def take(store):
    """Claim a job as a worker would, and all others with it."""

    async def claim(job_id: str) -> Claim:
        request = ClaimRequest(
            nonce=runtime.nonce(),
            worker="w",
            queues=(("payments", 1),),
            types=("charge",),
            limit=1000,
            lease_ms=30_000,
        )
        claims = (await (await store.engine()).jobs.claim(request)).claims
        return next(claim for claim in claims if claim.job.id == job_id)

    return claim


@pytest.fixture
def finish(store, take):
    """End a job as a worker would."""

    async def end(job_id: str, outcome: Succeeded | Failed) -> None:
        settlement = settle(await take(job_id), outcome, retry=Retry(max_attempts=1))
        await (await store.engine()).jobs.settle([settlement])

    return end


def succeeded(result: bytes) -> Succeeded:
    return Succeeded(result)


def failed() -> Failed:
    return Failed(ErrorInfo(type="CardDeclined", message="no money"))


@contextlib.asynccontextmanager
async def between(answer):
    """A server whose answers a test makes; ``answer`` gets the number and text of each request.

    None: the connection is closed without one. Gives the address.
    """
    numbers = itertools.count()
    under_way: set[asyncio.Task[None]] = set()

    async def converse(reader, writer) -> None:
        under_way.add(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = 0
                for line in head.lower().split(b"\r\n"):
                    if line.startswith(b"content-length:"):
                        length = int(line.partition(b":")[2])
                text = await answer(next(numbers), head + await reader.readexactly(length))
                if text is None:
                    break
                writer.write(text)
        await gone(writer)
        under_way.discard(asyncio.current_task())

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
        for task in tuple(under_way):
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def forwarded(address, request: bytes) -> bytes:
    """Send a request to the service, and give its whole answer."""
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
    said = await reader.read()
    await gone(writer)
    return said


async def gone(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
