"""One thread writes. What arrives while a transaction is written forms the next one.

Each caller's work runs in a savepoint of its own, so that one that fails does not take the others
with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import sqlite3
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from lamplighter.engines.sqlite import faults
from lamplighter.engines.sqlite.catalog import Catalog
from lamplighter.engines.sqlite.checkpoint import Checkpointer
from lamplighter.engines.sqlite.forks import ForkSafeConnection
from lamplighter.engines.sqlite.transaction import Transaction
from lamplighter.engines.sqlite.turnstile import Turnstile
from lamplighter.model.errors import StoreBusy, StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")
log = logging.getLogger("lamplighter.sqlite")

_GROUP_LIMIT = 64
_CALLERS_OWN = (sqlite3.InterfaceError, sqlite3.ProgrammingError, sqlite3.IntegrityError)
"""What one caller's values can cause; everything else SQLite raises is about the file."""
_CHECKPOINT_EVERY = 32
_CLOSE_SECONDS = 5.0
"""How long closing waits for a writer that stands at the turnstile behind a stopped process."""


Answer = tuple["_Call", Any, BaseException | None]
"""A caller, what its work gave, or what went wrong."""


@dataclass(slots=True)
class _Call:
    work: Callable[[Transaction], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    durable: bool
    given_up: bool = False


class Writer:
    """The writing side of the engine."""

    def __init__(self, path: Path, clock_ms: Callable[[], int], deadline: float) -> None:
        self._path = path
        self._log = f"{path}-wal"
        self._deadline = deadline
        self._durable: sqlite3.Connection | None = None
        """The connection that waits for the disk; another one, after a fork, does so again."""
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._catalog = Catalog()
        self._connection = ForkSafeConnection(path, clock_ms, writer=True)
        try:
            self._turnstile = Turnstile(path)
        except OSError as error:
            self._connection.close()
            raise faults.explain_os(error, path) from error
        self._checkpointer = Checkpointer(path, clock_ms)
        self._thread = threading.Thread(target=self._serve, name="lamplighter-writer", daemon=True)
        self._closed = False
        self._ended: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None
        self._thread.start()

    async def run(self, work: Callable[[Transaction], T], *, durable: bool = True) -> T:
        """Run ``work`` inside a transaction and give its answer once that is on disk.

        Without ``durable`` it is only in the system's memory, and on disk with the next durable
        one: it survives the death of any process, not that of the machine. That is enough for
        what is worth nothing after such a death: claims, renewals, signs of life.
        """
        if self._closed:
            raise StoreClosed(
                f"the store `{self._path}` was closed",
                hint="open it again with `await app.open()`",
            )
        loop = asyncio.get_running_loop()
        call = _Call(work, loop, loop.create_future(), durable)
        self._calls.put(call)
        try:
            async with asyncio.timeout(self._deadline):
                return await call.future
        except TimeoutError:
            call.given_up = True
            raise StoreBusy(
                f"`{self._path}` could not be written for {self._deadline:g} s: "
                "another process holds its write lock",
                hint="look for a stopped process (`lamplighter workers`); what was asked may be "
                "repeated safely",
                value=str(self._path),
            ) from None
        except asyncio.CancelledError:
            call.given_up = True
            raise

    async def close(self) -> bool:
        """Write what is queued, then end; False: its connection had to be left open."""
        if self._closed:
            return True
        self._closed = True
        loop = asyncio.get_running_loop()
        # Not through the loop's executor: it is gone already when the interpreter ends.
        self._ended = (loop, loop.create_future())
        self._calls.put(None)
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._ended[1]
        except TimeoutError:
            # It waits for a lock that a stopped process holds. Its thread ends with ours.
            log.warning("closed `%s` while its write lock was held elsewhere", self._path)
            return False
        self._thread.join()
        self._checkpointer.close()
        self._connection.close()
        self._turnstile.close()
        return True

    # ── in the writer's thread ───────────────────────────────────────────────────────────────

    def _serve(self) -> None:
        commits = 0
        last = False
        while not last:
            group: list[_Call] = []
            call = self._calls.get()
            while call is not None:
                if not call.given_up:
                    group.append(call)
                if len(group) >= _GROUP_LIMIT:
                    break
                try:
                    call = self._calls.get_nowait()
                except queue.Empty:
                    break
            last = call is None
            if group:
                self._deliver(self._write(group))
                commits += 1
                if commits % _CHECKPOINT_EVERY == 0:
                    self._checkpointer.look()
        if self._ended is not None:
            loop, future = self._ended
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                loop.call_soon_threadsafe(_finish, future)

    def _write(self, group: list[_Call], *, again: bool = False) -> list[Answer]:
        error: BaseException
        try:
            with self._turnstile, self._connection.held() as connection:
                # Whoever gave up while we stood at the turnstile was told that it failed.
                group = [call for call in group if not call.given_up]
                try:
                    return self._transaction(connection, group) if group else []
                except BaseException:
                    self._roll_back(connection)
                    raise
        except sqlite3.Error as raised:
            error = faults.explain(raised, self._path)
            if faults.lasts(raised):
                self._connection.drop_all()
                if not again:
                    return self._write(group, again=True)
        except OSError as raised:
            error = faults.explain_os(raised, self._path)
        except BaseException as raised:  # noqa: BLE001 - every caller must get an answer
            error = raised
        return [(call, None, error) for call in group]

    def _transaction(self, connection: sqlite3.Connection, group: list[_Call]) -> list[Answer]:
        durable = any(call.durable for call in group)
        self._set_durable(connection, durable=durable)
        connection.execute("BEGIN IMMEDIATE")
        tx = Transaction(connection, self._catalog)
        answers: list[Answer]
        if len(group) == 1:
            answers = [(group[0], group[0].work(tx), None)]
        else:
            answers = [self._in_savepoint(connection, tx, call) for call in group]
        connection.execute("COMMIT")
        self._connection.check()
        if tx.must_last and not durable:
            _sync(self._log)
        busy = len(group) > 1 or not self._calls.empty() or self._checkpointer.large
        if self._checkpointer.finish and busy:
            # Still alone behind the turnstile: the little that is left is moved, and the next
            # transaction starts the log from its beginning again.
            self._checkpointer.finish_with(connection)
        return answers

    def _in_savepoint(self, connection: sqlite3.Connection, tx: Transaction, call: _Call) -> Answer:
        connection.execute("SAVEPOINT caller")
        try:
            answer = call.work(tx)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not isinstance(error, _CALLERS_OWN):
                raise  # the disk or the file: the whole group fails
            connection.execute("ROLLBACK TO caller")
            connection.execute("RELEASE caller")
            self._catalog.drop()
            self._catalog.refresh(tx)
            return call, None, error
        connection.execute("RELEASE caller")
        return call, answer, None

    def _set_durable(self, connection: sqlite3.Connection, *, durable: bool) -> None:
        if durable is not (self._durable is connection):
            level = "FULL" if durable else "NORMAL"
            connection.execute(f"PRAGMA synchronous = {level}")
            self._durable = connection if durable else None

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        self._catalog.drop()
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")

    @staticmethod
    def _deliver(answers: list[Answer]) -> None:
        loops: dict[asyncio.AbstractEventLoop, list[Answer]] = {}
        for answer in answers:
            loops.setdefault(answer[0].loop, []).append(answer)
        for loop, mine in loops.items():
            with contextlib.suppress(RuntimeError):  # the caller's loop has been closed
                loop.call_soon_threadsafe(_resolve, mine)


def _sync(path: str) -> None:
    """Bring a file to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _resolve(answers: list[Answer]) -> None:
    for call, answer, error in answers:
        if call.future.done():
            continue
        if error is None:
            call.future.set_result(answer)
        else:
            call.future.set_exception(error)
