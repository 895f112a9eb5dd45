"""The reading side: one thread, one read-only connection, each read a consistent snapshot."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from lamplighter.engines.sqlite import faults
from lamplighter.engines.sqlite.catalog import Catalog
from lamplighter.engines.sqlite.forks import ForkSafeConnection
from lamplighter.engines.sqlite.transaction import Transaction
from lamplighter.model.errors import StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")


class Reader:
    """Runs reads beside the writer; WAL lets them go on while somebody writes."""

    def __init__(self, path: Path, clock_ms: Callable[[], int]) -> None:
        self._path = path
        self._connection = ForkSafeConnection(path, clock_ms, writer=False)
        self._catalog = Catalog()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lamplighter-reader")
        self._closed = False

    async def run(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` on a snapshot."""
        if self._closed:
            raise StoreClosed(
                f"the store `{self._path}` was closed",
                hint="open it again with `await app.open()`",
            )
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._read, work)

    async def data_version(self) -> int:
        """Return a number that changes when another connection has committed."""

        def read() -> int:
            with self._connection.held() as connection:
                return int(connection.execute("PRAGMA data_version").fetchone()[0])

        return await asyncio.get_running_loop().run_in_executor(self._thread, read)

    async def close(self) -> None:
        """Finish what is being read and close."""
        if self._closed:
            return
        self._closed = True
        self._thread.shutdown()
        self._connection.close()

    def _read(self, work: Callable[[Transaction], T]) -> T:
        try:
            with self._connection.held() as connection:
                connection.execute("BEGIN")
                try:
                    return work(Transaction(connection, self._catalog))
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            self._catalog.drop()
            if faults.lasts(error):
                self._connection.drop_all()
            raise faults.explain(error, self._path) from error
