"""Wake-ups between processes of one machine: Unix datagrams, with polling as the fallback.

Who waits binds a socket in a private folder named after the database file's device and inode; who
has news sends a datagram to every socket there. All of it is a hint: a lost datagram only means
that somebody looks at the store one poll later.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import socket
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from lamplighter import runtime
from lamplighter.model.errors import StoreClosed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

_QUIET_SECONDS = 0.001
_POLL_SECONDS = 0.02
_DATAGRAM = 512
_LONGEST_PATH = 100


class SqliteWakeup:
    """Both ends: tells others, and waits to be told."""

    def __init__(self, path: Path, changed: Callable[[], Awaitable[int]]) -> None:
        self._folder = _folder(path)
        self._changed = changed
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._sender.setblocking(False)
        self._ears: dict[asyncio.AbstractEventLoop, _Ear] = {}
        self._told: dict[str, float] = {}
        self._later: set[str] = set()
        self._closed = False

    async def notify(
        self,
        topic: str,
        *,
        jobs: Mapping[str, int] | None = None,
    ) -> None:
        """Tell at once; what follows within a millisecond is told together at its end.

        Everybody is woken, whatever it is about.
        """
        now = runtime.monotonic()
        if now - self._told.get(topic, -1.0) >= _QUIET_SECONDS:
            self._told[topic] = now
            self._send(topic)
        elif topic not in self._later:
            self._later.add(topic)
            asyncio.get_running_loop().call_later(_QUIET_SECONDS, self._send_later, topic)

    async def wait(
        self,
        topics: Sequence[str],
        timeout: float,
        *,
        types: Collection[str] | None = None,
    ) -> bool:
        """Wait for news of these topics."""
        if self._closed:
            raise StoreClosed(
                "the store was closed while somebody waited for its news",
                hint="close it after the last user has ended",
            )
        ear = self._ear()
        if ear is None:
            return await self._poll(timeout)
        return await ear.hear(frozenset(topics), timeout)

    def close(self) -> None:
        """Let go of all sockets."""
        self._closed = True
        self._sender.close()
        for ear in self._ears.values():
            ear.close()
        self._ears.clear()

    def _ear(self) -> _Ear | None:
        loop = asyncio.get_running_loop()
        ear = self._ears.get(loop)
        if ear is None and self._folder is not None:
            try:
                ear = self._ears[loop] = _Ear(self._folder)
            except OSError:
                self._folder = None
        return ear

    async def _poll(self, timeout: float) -> bool:
        before = await self._changed()
        end = runtime.monotonic() + timeout
        while (left := end - runtime.monotonic()) > 0:
            await runtime.sleep(min(_POLL_SECONDS, left))
            if await self._changed() != before:
                return True
        return False

    def _send_later(self, topic: str) -> None:
        self._later.discard(topic)
        if not self._closed:
            self._told[topic] = runtime.monotonic()
            self._send(topic)

    def _send(self, topic: str) -> None:
        if self._folder is None or self._closed:
            return
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - on the path of every submit: 3 x faster
        except OSError:
            return
        data = topic.encode()[:_DATAGRAM]
        for name in names:
            address = f"{self._folder}/{name}"
            try:
                self._sender.sendto(data, address)
            except OSError as error:
                # Full: that ear has news already. Refused: its process is gone.
                if error.errno in (errno.ECONNREFUSED, errno.ENOTSOCK):
                    with contextlib.suppress(OSError):
                        Path(address).unlink()


class _Ear:
    """One bound socket, read only while somebody waits."""

    def __init__(self, folder: Path) -> None:
        self._address = str(folder / f"{os.getpid():x}.{runtime.random_bits(32):08x}")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        try:
            self._socket.bind(self._address)
        except OSError:
            self._socket.close()
            raise
        self._news: set[str] = set()
        """Topics told while nobody waited for them."""
        self._waiting: dict[asyncio.Future[None], frozenset[str]] = {}
        self._loop = asyncio.get_running_loop()

    async def hear(self, topics: frozenset[str], seconds: float) -> bool:
        self._news |= self._drain()
        found = self._news & topics
        if found:
            self._news -= found
            return True
        future = self._loop.create_future()
        if not self._waiting:
            self._loop.add_reader(self._socket, self._arrived)
        self._waiting[future] = topics
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            return False
        finally:
            del self._waiting[future]
            if not self._waiting:
                self._loop.remove_reader(self._socket)
        return True

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # its loop may be closed
            self._loop.remove_reader(self._socket)
        self._socket.close()
        with contextlib.suppress(OSError):
            Path(self._address).unlink()

    def _arrived(self) -> None:
        """Wake everybody whose topic was told; keep what nobody waits for."""
        told = self._drain()
        heard: set[str] = set()
        for future, topics in self._waiting.items():
            if not topics.isdisjoint(told):
                heard |= topics
                if not future.done():
                    future.set_result(None)
        self._news |= told - heard

    def _drain(self) -> set[str]:
        told: set[str] = set()
        with contextlib.suppress(OSError):
            while True:
                told.add(self._socket.recv(_DATAGRAM).decode(errors="replace"))
        return told


def _folder(path: Path) -> Path | None:
    """Make the private folder for a database file, or give None where that cannot be done."""
    try:
        found = path.stat()
        name = hashlib.sha256(f"{found.st_dev}:{found.st_ino}".encode()).hexdigest()[:16]
        base = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
        mine = base / f"lamplighter-{os.getuid()}"
        folder = mine / name
        for part in (mine, folder):
            part.mkdir(mode=0o700, exist_ok=True)
            owned = part.lstat()
            # Somebody else's folder, or a link, at a guessable place is not to be trusted.
            if not stat.S_ISDIR(owned.st_mode) or owned.st_uid != os.getuid():
                return None
            if owned.st_mode & 0o077:
                part.chmod(0o700)
    except OSError:
        return None
    return folder if len(str(folder)) < _LONGEST_PATH - 20 else None
