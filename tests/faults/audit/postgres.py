"""The audit of a PostgreSQL store.

A job that ends leaves one table and enters another. Both happen in one transaction, so when the
notes are read, the two are made one change again. What entered and left within a transaction was
never there for anybody.

Numbers come from a sequence: for one job, and for the claims of one queue, they are in the order
of the commits, because whoever comes second waits for the first. Beyond that they are not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from lamplighter.engines.postgres import ids
from tests.faults.audit import author_of
from tests.faults.history import Ending, History, Write

SCHEMA = "lamplighter"
PATIENCE = 60.0
"""Seconds for which a server that is being hurt may leave us without an answer."""

_INSTALL = """
CREATE SCHEMA audit;
CREATE TABLE audit.note (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    transaction bigint NOT NULL,
    now bigint NOT NULL,
    place text NOT NULL,
    old jsonb,
    new jsonb
);
CREATE FUNCTION audit.take_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit.note (transaction, now, place, old, new)
    VALUES (pg_current_xact_id()::text::bigint,
            lamplighter.now_ms(),
            TG_ARGV[0],
            CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) - 'args' END,
            CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) - 'args' END);
    RETURN NULL;
END
$$;
"""

_TRIGGER = """
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON lamplighter.{table}
FOR EACH ROW EXECUTE FUNCTION audit.take_note('{table}')
"""

_TABLES = ("job", "done", "dead")
"""Together they hold each job once. Partitions of `done` inherit its trigger."""

_NOTES = """
SELECT note.number, note.transaction, note.now, note.place, note.old, note.new, lane.queue,
       lane.level
FROM audit.note
JOIN lamplighter.lane ON lane.id = (coalesce(note.new, note.old) ->> 'lane')::integer
ORDER BY note.number
"""

_ENDINGS = """
SELECT found.id, lane.type, found.tenant, found.state, found.attempt, found.crashes, found.losses,
       found.reason, found.suspect, found.lease, found.error
FROM (
    SELECT id, lane, tenant, state, attempt, crashes, losses, NULL AS reason, suspect, lease, error
    FROM lamplighter.job
    UNION ALL
    SELECT id, lane, tenant, state, attempt, crashes, losses, reason, suspect, lease, error
    FROM lamplighter.done
    UNION ALL
    SELECT id, lane, tenant, state, attempt, crashes, losses, reason, suspect, lease, error
    FROM lamplighter.dead
) AS found
JOIN lamplighter.lane ON lane.id = found.lane
"""

_ENDED = """
SELECT count(DISTINCT id)
FROM (SELECT id FROM lamplighter.done UNION ALL SELECT id FROM lamplighter.dead) AS found
WHERE id = ANY (%s)
"""

_FIRST_ENDS = """
SELECT worker, min(finished)
FROM (
    SELECT worker, claimed, finished FROM lamplighter.done
    UNION ALL
    SELECT worker, claimed, finished FROM lamplighter.dead
) AS found
WHERE claimed >= %s
GROUP BY worker
"""


@dataclass(slots=True)
class Change:
    """One row that changed, was added or was removed."""

    number: int
    now: int
    place: str
    old: dict[str, Any] | None
    new: dict[str, Any] | None
    queue: str = "default"
    level: int = 2

    @property
    def job_id(self) -> str:
        row = self.new or self.old or {}
        return ids.text(UUID(row["id"]).bytes)


class PostgresAuditor:
    """Installs the triggers in a database, and reads what they noted.

    Outlives restarts of the server; after a failover it has to be told where to ask.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection | None = None

    def move(self, url: str) -> None:
        """Ask another server from now on."""
        self.close()
        self._url = url

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def install(self) -> None:
        self._connected().execute(_INSTALL)
        for table in _TABLES:
            self._connected().execute(_TRIGGER.format(table=table).encode())

    def unfinished(self) -> int:
        return self._rows("SELECT count(*) FROM lamplighter.job")[0][0]

    def ended(self, job_ids: Collection[str]) -> int:
        uuids = [UUID(bytes=bytes(ids.uuid(job_id) or b"")) for job_id in job_ids]
        return self._rows(_ENDED, (uuids,))[0][0]

    def first_ends(self, since_ms: int) -> dict[str, int]:
        return dict(self._rows(_FIRST_ENDS, (since_ms,)))

    def now_ms(self) -> int:
        return self._rows("SELECT lamplighter.now_ms()")[0][0]

    def running_under(self, prefix: str) -> list[str]:
        rows = self._rows(
            "SELECT id FROM lamplighter.job WHERE state = 'running' AND starts_with(worker, %s)",
            (prefix,),
        )
        return [ids.text(row[0].bytes) for row in rows]

    def read_into(self, history: History) -> None:
        history.writes = [_write(change) for change in joined(self._rows(_NOTES))]
        for job_id, *fields in self._rows(_ENDINGS):
            ending = _ending(ids.text(job_id.bytes), fields)
            if ending.job_id in history.endings:
                history.doubled.append(ending.job_id)
            history.endings[ending.job_id] = ending
        rows = self._rows("SELECT tenant, key, job_id FROM lamplighter.idempotency")
        for tenant, key, job_id in rows:
            history.keyed.setdefault((tenant, key), []).append(ids.text(job_id.bytes))

    def faults(self) -> list[str]:
        """What a database keeps true itself is not looked at again."""
        return []

    def keep(self, path: Path) -> None:
        """Write the notes to a file: the server's data will be gone when somebody looks."""
        with path.open("w", encoding="utf-8") as file:
            for row in self._rows(_NOTES):
                file.write(json.dumps(row) + "\n")

    def _rows(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Ask until the server answers; it may be away for a while."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self._connected().execute(statement.encode(), parameters).fetchall()
            except psycopg.OperationalError:
                self.close()
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def _connected(self) -> psycopg.Connection:
        if self._connection is None:
            # Under another name than ours: whoever hurts connections of workers spares this one.
            self._connection = psycopg.connect(
                self._url, autocommit=True, application_name="auditor", connect_timeout=5
            )
        return self._connection


def joined(notes: Iterable[Sequence[Any]]) -> list[Change]:
    """Make one change of what left one table and entered another in the same transaction."""
    found: dict[int, Change] = {}
    halves: dict[tuple[int, str], Change] = {}
    for number, transaction, *rest in notes:
        change = Change(number, *rest)
        found[number] = change
        if change.old is not None and change.new is not None:
            continue
        other = halves.pop((transaction, change.job_id), None)
        if other is None:
            halves[transaction, change.job_id] = change
            continue
        del found[number]
        if other.place == change.place:
            # Stored, found to be known already, and taken back.
            del found[other.number]
        else:
            other.old, other.new = other.old or change.old, other.new or change.new
    return list(found.values())


def _write(change: Change) -> Write:
    old, new = change.old or {}, change.new or {}
    losses, crashes = _grew(old, new, "losses"), _grew(old, new, "crashes")
    return Write(
        number=change.number,
        job_id=change.job_id,
        old_state=old.get("state"),
        new_state=new.get("state"),
        now_ms=change.now,
        tenant=(new or old)["tenant"],
        queue=change.queue,
        level=change.level,
        generation=(new or old)["generation"],
        old_generation=old.get("generation") or 0,
        lease=new.get("lease") or 0,
        old_lease=old.get("lease") or 0,
        nonce=new.get("nonce"),
        old_nonce=old.get("nonce"),
        worker=new.get("worker"),
        due_ms=new.get("due") or 0,
        claimed_ms=new.get("claimed"),
        old_expires_ms=old.get("expires"),
        attempt=new.get("attempt") or 0,
        abandoned=losses or (_grew(old, new, "suspect") and not crashes),
        crashed=crashes,
        author=author_of(_written(old, new)),
    )


def _grew(old: dict[str, Any], new: dict[str, Any], name: str) -> bool:
    return bool(old) and bool(new) and new[name] > old[name]


def _written(old: dict[str, Any], new: dict[str, Any]) -> str | None:
    """Give the result or the error that came with a change."""
    result = new.get("result")
    if result is not None and result != old.get("result"):
        return bytes.fromhex(result.removeprefix("\\x")).decode()
    # An error stays in the row while a job waits, so only a changed one was written just now.
    error = new.get("error")
    return error if old and error != old.get("error") else None


def _ending(job_id: str, fields: Sequence[Any]) -> Ending:
    type, tenant, state, attempt, crashes, losses, reason, suspect, lease, error = fields
    return Ending(
        job_id=job_id,
        type=type,
        tenant=tenant,
        state=state,
        attempt=attempt,
        crashes=crashes,
        losses=losses,
        reason=reason,
        suspect=suspect,
        lease=lease,
        error=error,
    )
