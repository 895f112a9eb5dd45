"""Calls the engine's verbs on one session, which can be asked for the plans of what it did."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import psycopg

from lamplighter.engines.postgres import ids
from lamplighter.engines.postgres.call import Row
from tests.unit.postgres.plans.looks import Names, Plans, read

T = TypeVar("T")

# The module of the server that tells the plans, those of statements inside functions too.
TELL = """
LOAD 'auto_explain';
SET auto_explain.log_min_duration = 0;
SET auto_explain.log_analyze = on;
SET auto_explain.log_buffers = on;
SET auto_explain.log_timing = off;
SET auto_explain.log_nested_statements = on;
SET auto_explain.log_format = json;
SET client_min_messages = log;
"""
BE_QUIET = """
SET client_min_messages = notice;
SET auto_explain.log_min_duration = -1;
"""
PARTS = """
WITH RECURSIVE part AS (
    SELECT i.inhrelid AS part, i.inhparent AS whole FROM pg_inherits AS i
    UNION ALL
    SELECT part.part, i.inhparent FROM part JOIN pg_inherits AS i ON i.inhrelid = part.whole
)
SELECT p.relname::text, w.relname::text
FROM part JOIN pg_class AS p ON p.oid = part.part JOIN pg_class AS w ON w.oid = part.whole
WHERE p.relnamespace = %s::regnamespace
"""
INDEXES = """
SELECT i.relname::text, t.relname::text
FROM pg_index AS x
JOIN pg_class AS i ON i.oid = x.indexrelid
JOIN pg_class AS t ON t.oid = x.indrelid
WHERE i.relnamespace = %s::regnamespace
"""


class Caller:
    """One session. It is given to the verbs in place of the engine's connections."""

    def __init__(self, url: str, schema: str) -> None:
        self.schema = schema
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
        ids.register(self.connection)
        self._said: list[str] = []
        self.connection.add_notice_handler(
            lambda notice: self._said.append(notice.message_primary or "")
        )
        self.run("SELECT set_config('search_path', %s, false)", (schema,))

    def close(self) -> None:
        self.connection.close()

    def function(self, name: str) -> str:
        return f'"{self.schema}"."{name}"'

    async def rows(
        self,
        statement: str,
        parameters: Sequence[object] = (),
        *,
        urgent: bool = False,
        instead: str | None = None,
    ) -> list[Row]:
        return self.run(statement, parameters)

    def run(self, statement: str, parameters: Sequence[object] | None = None) -> list[Row]:
        """Run one statement, in which ``%`` is only special if there are parameters."""
        text: Any = statement
        cursor = self.connection.execute(text, parameters, binary=True)
        return cursor.fetchall() if cursor.description else []

    def script(self, statements: str) -> None:
        """Run many statements."""
        text: Any = statements
        self.connection.execute(text)

    def number(self, statement: str, parameters: Sequence[object] | None = None) -> int:
        """Give the only number that a statement answers."""
        ((number,),) = self.run(statement, parameters)
        return int(number)

    async def watch(self, act: Callable[[], Awaitable[T]]) -> tuple[T, Plans]:
        """Do something and give the plans of it."""
        before = self._names()
        self.script(TELL)
        self._said.clear()
        answer = await act()
        said = list(self._said)
        self.script(BE_QUIET)
        # Tables may come and go meanwhile.
        return answer, read(said, before | self._names())

    def _names(self) -> Names:
        return Names(dict(self.run(PARTS, (self.schema,))), dict(self.run(INDEXES, (self.schema,))))
