"""What a verb gets to work with: one transaction, its time, and the catalogue of lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from lamplighter.engines.sqlite.catalog import Catalog
    from lamplighter.engines.sqlite.statements import Statement

Row = tuple[Any, ...]


class Transaction:
    """One open transaction. Time is read from the store's clock once and stands still."""

    __slots__ = ("_connection", "catalog", "must_last", "now")

    def __init__(self, connection: sqlite3.Connection, catalog: Catalog) -> None:
        self._connection = connection
        self.catalog = catalog
        self.must_last = False
        """Set by work that turned out to need the disk although its caller did not ask for it."""
        self.now: int = connection.execute("SELECT now_ms()").fetchone()[0]
        catalog.refresh(self)

    def all(self, statement: Statement, *values: Any) -> list[Row]:
        """Run a statement and give all its rows."""
        return self._connection.execute(statement.text, values).fetchall()

    def one(self, statement: Statement, *values: Any) -> Row | None:
        """Run a statement and give its first row, if any."""
        return self._connection.execute(statement.text, values).fetchone()

    def number(self, statement: Statement, *values: Any) -> int:
        """Run a statement and return the number that stands first in its first row; 0 without."""
        row = self.one(statement, *values)
        return row[0] if row else 0

    def run(self, statement: Statement, *values: Any) -> int:
        """Run a statement and give the number of rows it changed."""
        return self._connection.execute(statement.text, values).rowcount

    def many(self, statement: Statement, rows: Iterable[Row]) -> int:
        """Run a statement for each tuple and give the number of rows changed in all."""
        return self._connection.executemany(statement.text, rows).rowcount
