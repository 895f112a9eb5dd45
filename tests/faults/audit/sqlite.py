"""The audit of an SQLite store."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.faults.audit import author_of
from tests.faults.history import Ending, History, Write

_TABLE = """
CREATE TABLE IF NOT EXISTS noted (
    number INTEGER PRIMARY KEY,
    now INTEGER NOT NULL,
    id TEXT NOT NULL,
    lane INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    old_state TEXT,
    new_state TEXT,
    old_generation INTEGER,
    generation INTEGER,
    old_lease INTEGER,
    lease INTEGER,
    old_nonce TEXT,
    nonce TEXT,
    worker TEXT,
    due INTEGER,
    claimed INTEGER,
    old_expires INTEGER,
    attempt INTEGER,
    abandoned INTEGER,
    crashed INTEGER,
    written TEXT
)
"""

_INSERTED = """
CREATE TRIGGER IF NOT EXISTS audit_inserted AFTER INSERT ON job BEGIN
    INSERT INTO noted (now, id, lane, tenant, new_state, generation, due)
    VALUES (now_ms(), NEW.id, NEW.lane, NEW.tenant, NEW.state, NEW.generation, NEW.due);
END
"""

# An error stays in the row while a job waits, so only a changed one was written just now.
_UPDATED = """
CREATE TRIGGER IF NOT EXISTS audit_updated AFTER UPDATE ON job BEGIN
    INSERT INTO noted (now, id, lane, tenant, old_state, new_state, old_generation, generation,
                       old_lease, lease, old_nonce, nonce, worker, due, claimed, old_expires,
                       attempt, abandoned, crashed, written)
    VALUES (now_ms(), NEW.id, NEW.lane, NEW.tenant, OLD.state, NEW.state, OLD.generation,
            NEW.generation, OLD.lease, NEW.lease, OLD.nonce, NEW.nonce, NEW.worker, NEW.due,
            NEW.claimed, OLD.expires, NEW.attempt,
            NEW.losses > OLD.losses OR (NEW.suspect > OLD.suspect AND NEW.crashes = OLD.crashes),
            NEW.crashes > OLD.crashes,
            CASE WHEN NEW.result IS NOT OLD.result THEN CAST(NEW.result AS TEXT)
                 WHEN NEW.error IS NOT OLD.error THEN NEW.error END);
END
"""

_DELETED = """
CREATE TRIGGER IF NOT EXISTS audit_deleted AFTER DELETE ON job BEGIN
    INSERT INTO noted (now, id, lane, tenant, old_state, old_generation, generation)
    VALUES (now_ms(), OLD.id, OLD.lane, OLD.tenant, OLD.state, OLD.generation, OLD.generation);
END
"""

_WRITES = """
SELECT noted.*, band.queue, band.level
FROM noted
JOIN lane ON lane.id = noted.lane
JOIN band ON band.id = lane.band
ORDER BY noted.number
"""

_ENDINGS = """
SELECT job.id, lane.type, job.tenant, job.state, job.attempt, job.crashes, job.losses, job.reason,
       job.suspect, job.lease, job.error
FROM job JOIN lane ON lane.id = job.lane
"""


class SqliteAuditor:
    """Installs the triggers in a file, and reads what they noted."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def install(self) -> None:
        with self._open() as connection:
            for statement in (_TABLE, _INSERTED, _UPDATED, _DELETED):
                connection.execute(statement)

    def unfinished(self) -> int:
        return self._number(
            "SELECT count(*) FROM job WHERE state IN ('waiting','running','blocked')"
        )

    def ended(self, job_ids: Collection[str]) -> int:
        marks = ",".join("?" * len(job_ids))
        states = "'succeeded','dead','cancelled','expired'"
        return self._number(
            f"SELECT count(*) FROM job WHERE state IN ({states}) AND id IN ({marks})", *job_ids
        )

    def first_ends(self, since_ms: int) -> dict[str, int]:
        with self._open() as connection:
            return dict(
                connection.execute(
                    "SELECT worker, min(finished) FROM job "
                    "WHERE claimed >= ? AND finished IS NOT NULL GROUP BY worker",
                    (since_ms,),
                )
            )

    def now_ms(self) -> int:
        return self._number("SELECT now_ms()")

    def running_under(self, prefix: str) -> list[str]:
        with self._open() as connection:
            rows = connection.execute(
                "SELECT id FROM job WHERE state = 'running' AND substr(worker, 1, ?) = ?",
                (len(prefix), prefix),
            )
            return [row[0] for row in rows]

    def read_into(self, history: History) -> None:
        with self._open() as connection:
            connection.row_factory = sqlite3.Row
            history.writes = [_write(row) for row in connection.execute(_WRITES)]
            for row in connection.execute(_ENDINGS):
                history.endings[row["id"]] = Ending(
                    job_id=row["id"],
                    type=row["type"],
                    tenant=row["tenant"],
                    state=row["state"],
                    attempt=row["attempt"],
                    crashes=row["crashes"],
                    losses=row["losses"],
                    reason=row["reason"],
                    suspect=bool(row["suspect"]),
                    lease=row["lease"],
                    error=row["error"],
                )
            for row in connection.execute("SELECT tenant, key, job_id FROM idempotency"):
                history.keyed.setdefault((row["tenant"], row["key"]), []).append(row["job_id"])

    def faults(self) -> list[str]:
        """What a database keeps true itself is not looked at again."""
        return []

    def _number(self, statement: str, *values: object) -> int:
        with self._open() as connection:
            return connection.execute(statement, values).fetchone()[0]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, timeout=30, isolation_level=None)
        with closing(connection):
            connection.create_function("now_ms", 0, lambda: time.time_ns() // 1_000_000)
            yield connection


def _write(row: sqlite3.Row) -> Write:
    return Write(
        number=row["number"],
        job_id=row["id"],
        old_state=row["old_state"],
        new_state=row["new_state"],
        now_ms=row["now"],
        tenant=row["tenant"],
        queue=row["queue"],
        level=row["level"],
        generation=row["generation"] or 0,
        old_generation=row["old_generation"] or 0,
        lease=row["lease"] or 0,
        old_lease=row["old_lease"] or 0,
        nonce=row["nonce"],
        old_nonce=row["old_nonce"],
        worker=row["worker"],
        due_ms=row["due"] or 0,
        claimed_ms=row["claimed"],
        old_expires_ms=row["old_expires"],
        attempt=row["attempt"] or 0,
        abandoned=bool(row["abandoned"]),
        crashed=bool(row["crashed"]),
        author=author_of(row["written"]),
    )
