"""Who is measured: a service on an empty store, started for one measurement."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from benchmarks.engines import family_ns
from benchmarks.errors import BenchmarkError
from benchmarks.peers.arena import Database
from lamplighter.connect import connect
from lamplighter.port.values import NewWorker, TypeInfo

ROOT = Path(__file__).resolve().parent.parent.parent
KEY = secrets.token_hex(32)

SUBMISSION = {
    "type": "charge",
    "arguments": {"order_id": "o-2026-11-16-000001", "cents": 995, "customer": "c-4711"},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string"},
        "cents": {"type": "integer", "minimum": 0},
        "customer": {"type": "string"},
    },
    "required": ["order_id", "cents", "customer"],
    "additionalProperties": False,
}
_START_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Service:
    """A service that answers."""

    port: int
    process: subprocess.Popen[bytes]
    database: Database

    def request(self, path: str, body: object) -> str:
        """Write a whole request."""
        written = json.dumps(body, separators=(",", ":"))
        return (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Authorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(written)}\r\n\r\n{written}"
        )

    def cpu_ns(self) -> dict[str, int]:
        """CPU time so far, of the service and of the store."""
        return {"service": family_ns(self.process.pid), "store": self.database.server_cpu_ns()}

    def stored(self, statement: str) -> int:
        """Count the jobs in the store."""
        return self.database.waiting(statement)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Ours or a peer."""

    name: str
    counted: str
    """Lua that counts the jobs in the store."""
    python: Path = Path(sys.executable)
    module: str = ""
    """The ASGI program of a peer; empty: ours."""

    @contextlib.contextmanager
    def serving(self, database: Database, processes: int) -> Generator[Service]:
        """Start the service, and end it afterwards."""
        port = _free_port()
        if not self.module:
            asyncio.run(_publish(database.url))
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "BENCHMARK_URL": database.url,
            "BENCHMARK_KEY": KEY,
            "LAMPLIGHTER_URL": database.url,
        }
        keys = database.folder / "http-keys"
        keys.write_text(KEY, encoding="ascii")
        command = self._peer(port, processes) if self.module else _ours(port, processes, keys)
        with subprocess.Popen(
            command, cwd=database.folder, env=environment, stdout=subprocess.DEVNULL
        ) as process:
            try:
                _wait(port, process)
                yield Service(port, process, database)
                if process.poll() is not None:
                    raise BenchmarkError(f"{self.name} ended with code {process.returncode}")
            finally:
                process.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_START_SECONDS)
                process.kill()

    def _peer(self, port: int, processes: int) -> Sequence[str]:
        # What its documentation says for production: its fast parts, and no line per request.
        return (
            *(str(self.python), "-m", "uvicorn", self.module),
            *("--host", "127.0.0.1", "--port", str(port), "--workers", str(processes)),
            *("--http", "httptools", "--loop", "uvloop"),
            *("--no-access-log", "--log-level", "warning"),
        )


def _ours(port: int, processes: int, keys: Path) -> Sequence[str]:
    several = ("--processes", str(processes)) if processes > 1 else ()
    return (
        *(sys.executable, "-m", "lamplighter", "serve", "--port", str(port)),
        *("--key-file", str(keys), *several),
    )


async def _publish(url: str) -> None:
    """Publish the type, as a worker does; none runs, so that only submitting is measured."""
    engine = connect(url)
    await engine.open()
    try:
        info = TypeInfo(name="charge", schema=json.dumps(SCHEMA), hash="h", queue="payments")
        await engine.membership.join(
            NewWorker(id="w", host="h", pid=1, queues=("payments",), slots=1, types=(info,))
        )
    finally:
        await engine.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return cast("int", taken.getsockname()[1])


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise BenchmarkError(f"the service on port {port} does not start") from None
            time.sleep(0.05)
