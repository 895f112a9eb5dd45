"""A worker under a service manager: it says when it works, reloads and ends."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).parent / "lamplighter"
PATIENCE = 40.0

PROGRAM = """
from lamplighter import App

app = App()


@app.job
async def hello() -> None:
    print("hello")
"""


class Manager:
    """A service manager: a socket, and the worker it has started."""

    def __init__(self, folder: Path) -> None:
        self.heard: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(folder / "notify"))
        self._socket.setblocking(False)
        self.process = subprocess.Popen(
            [COMMAND, "worker", "greeter:app", "--processes", "2"],
            cwd=folder,
            env={
                **os.environ,
                "NOTIFY_SOCKET": str(folder / "notify"),
                "WATCHDOG_USEC": "1000000",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    async def hears(self, line: str) -> None:
        """Wait until this is told; what was told before it does not count any more."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(PATIENCE):
                while line not in self.heard:
                    self.heard += (await loop.sock_recv(self._socket, 4096)).decode().split("\n")
        except TimeoutError:
            raise AssertionError(f"waited in vain for {line}: {self.heard}") from None
        del self.heard[: self.heard.index(line) + 1]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self._socket.close()


@pytest.fixture
async def manager(tmp_path):
    (tmp_path / "greeter.py").write_text(PROGRAM)
    manager = Manager(tmp_path)
    yield manager
    manager.close()


async def test_a_worker_tells_its_start_its_reloads_its_life_and_its_end(manager, tmp_path):
    await manager.hears("READY=1")
    await manager.hears("STATUS=2 of 2 children ready, 0 jobs running")
    await manager.hears("WATCHDOG=1")

    (tmp_path / "greeter.py").write_text(PROGRAM + "\n")
    manager.process.send_signal(signal.SIGHUP)
    await manager.hears("RELOADING=1")
    await manager.hears("READY=1")

    (tmp_path / "greeter.py").write_text(PROGRAM + "\n)")
    manager.process.send_signal(signal.SIGHUP)
    await manager.hears("RELOADING=1")
    await manager.hears("READY=1")

    manager.process.send_signal(signal.SIGTERM)
    await manager.hears("STOPPING=1")
    output, _ = await asyncio.to_thread(manager.process.communicate, timeout=PATIENCE)
    assert manager.process.returncode == 0
    assert output.count(b"its code is replaced") == 3
    assert b"SyntaxError" in output
