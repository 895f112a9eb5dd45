"""The audit of a Redis store: the server's own log of changes.

There are no triggers in Redis. But the server writes everything that a script has changed to its
log, in the order in which it happened, and before it answers unless its disk is busy. So the log is
exactly what was accepted, and what is left of it after a kill is exactly what was kept.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import redis

from lamplighter.engines.redis import address
from lamplighter.engines.redis.audit import audit
from lamplighter.engines.redis.transport import Transport
from lamplighter.model.job import TERMINAL
from tests.faults.audit.aof import LogTail
from tests.faults.audit.replay import Replay, Shard, ending_of, tenant_and_key
from tests.faults.history import History
from tests.servers.valkey import Server

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds for which a server that is being hurt may leave us without an answer."""
_INTERVAL = 0.02
_ENDED = frozenset(state.value for state in TERMINAL)


class RedisAuditor:
    """Follows the log of a server from its beginning.

    It notes when it has seen each claim and each end, by our own clock: the server's may be wrong.
    """

    def __init__(self, server: Server, url: str) -> None:
        self._url = url
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem: Exception | None = None
        self._begin(server)

    def move(self, server: Server, url: str) -> None:
        """Follow another server, or the same one after its data were replaced."""
        with self._lock:
            self._url = url
            self._begin(server)
            self._take(0)  # when it happened there, nobody has seen

    @contextmanager
    def blind(self) -> Iterator[None]:
        """Do not look, because the data are being replaced; `move` before it ends."""
        with self._lock:
            yield

    def close(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def install(self) -> None:
        """Begin to look; nothing has to be put into the store."""
        self._thread = threading.Thread(target=self._watch, name="auditor", daemon=True)
        self._thread.start()

    def unfinished(self) -> int:
        return len(self._read().unfinished)

    def ended(self, job_ids: Collection[str]) -> int:
        wanted = set(job_ids)
        found = {one.job.id for one in self._read().records() if one.state in TERMINAL}
        return len(wanted & found)

    def first_ends(self, since_ms: int) -> dict[str, int]:
        self._read()
        first: dict[str, int] = {}
        for worker, claimed, ended in self._ends:
            if claimed >= since_ms:
                first.setdefault(worker, ended)
        return first

    def now_ms(self) -> int:
        def asked() -> int:
            with self._server.client(socket_timeout=5) as client:
                # In a script: outside, some servers tell the time of a moment ago.
                seconds, micros = client.eval("return redis.call('TIME')", 0)
            return int(seconds) * 1000 + int(micros) // 1000

        return _patiently(asked)

    def running_under(self, prefix: str) -> list[str]:
        replay = self._read()
        return [
            job_id
            for shard in replay.shards.values()
            for job_id in list(shard.runs)
            if (record := shard.record(job_id)) and (record.worker or "").startswith(prefix)
        ]

    def read_into(self, history: History) -> None:
        self._wait_for_log()
        replay = self._read()
        history.writes = list(replay.writes)
        for record in replay.records():
            if record.job.id in history.endings:
                history.doubled.append(record.job.id)
            history.endings[record.job.id] = ending_of(record)
        for shard in replay.shards.values():
            for name, job_id in shard.keys.items():
                history.keyed.setdefault(tenant_and_key(name), []).append(job_id)

    def faults(self) -> list[str]:
        self._wait_for_log()
        replay = self._read()
        with self._server.client() as client:
            found = [
                text
                for prefix, shard in replay.shards.items()
                for text in _differences(client, prefix, shard)
            ]
        return found + list(asyncio.run(self._index_faults()))

    def keep(self, folder: Path) -> None:
        """Copy the log: the server's data will be gone when somebody looks."""
        shutil.copytree(self._server.home / "appendonlydir", folder, dirs_exist_ok=True)

    def _wait_for_log(self) -> None:
        """Let the server write down all it has done: while its disk is busy, it puts that off."""

        def written() -> bool:
            with self._server.client(socket_timeout=5) as client:
                return not client.info("persistence")["aof_buffer_length"]

        deadline = time.monotonic() + PATIENCE
        while not _patiently(written):
            if time.monotonic() > deadline:
                raise RuntimeError("the server does not write its log of changes")
            time.sleep(0.02)

    async def _index_faults(self) -> tuple[str, ...]:
        place = address.parse(self._url)
        transport = Transport(place, PATIENCE)
        transport.divide(place.shards or 1)
        try:
            return (await audit(transport)).faults
        finally:
            await transport.close()

    def _begin(self, server: Server) -> None:
        self._server = server
        self._tail = LogTail(server.home)
        self._replay = Replay()
        self._claims: dict[str, int] = {}
        self._ends: list[tuple[str, int, int]] = []
        """Who ended a job, when it was claimed, and when it ended."""

    def _watch(self) -> None:
        while not self._over.wait(_INTERVAL):
            try:
                self._read()
            except Exception as error:  # noqa: BLE001 - told to whoever asks next
                self._problem = error
                return

    def _read(self) -> Replay:
        """Take in what the server has written since the last look."""
        with self._lock:
            if self._problem is not None:
                raise self._problem
            self._take(time.time_ns() // 1_000_000)
            return self._replay

    def _take(self, now: int) -> None:
        for transaction in self._tail.news():
            for write in self._replay.take(transaction):
                if write.new_state == "running" and write.old_state != "running":
                    self._claims[write.job_id] = now
                elif write.new_state in _ENDED and write.old_state == "running":
                    claimed = self._claims.pop(write.job_id, 0)
                    self._ends.append((write.worker or "", claimed, now))


def _differences(client: redis.Redis, prefix: bytes, shard: Shard) -> list[str]:
    """Say where the server has something else than its log tells."""
    keys = list(client.scan_iter(match=prefix.replace(b"{", b"\\{") + b"job:*", count=1000))
    values = client.mget(keys) if keys else []
    ids = [key.rpartition(b":")[2].decode() for key in keys]
    runs = {job_id.decode(): run for job_id, run in client.hgetall(prefix + b"run").items()}
    found: list[str] = []
    for what, has, told in (
        ("value", dict(zip(ids, values, strict=True)), shard.values),
        ("running claim", runs, shard.runs),
    ):
        wrong = sorted(one for one in has.keys() | told.keys() if has.get(one) != told.get(one))
        if wrong:
            found.append(f"{len(wrong)} times a {what} is not as the log tells: {wrong[0]}")
    return found


def _patiently(ask: Callable[[], T]) -> T:
    """Ask until the server answers; it may be away for a while."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except redis.RedisError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)
