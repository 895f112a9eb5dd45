"""Every statement is served by an index, and the SQL files say what they take."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import pytest

from lamplighter.engines.sqlite import database
from lamplighter.engines.sqlite.statements import Statement, load

if TYPE_CHECKING:
    from pathlib import Path

SCANS_ALLOWED = {
    ("rescue", "ahead"),  # the running jobs, all of them: few
    ("rescue", "cut"),
    ("rescue", "claims_of"),
    ("claim", "still_running"),
    ("inspect", "running_lanes"),
    ("inspect", "running_tenants"),
    ("inspect", "tenants"),
    ("inspect", "counts"),  # bounded by a limit
    ("prune", "how_many"),  # counts narrow indexes
    ("prune", "requests"),  # the running jobs again
    ("inspect", "jobs"),  # by sequence, bounded by a limit
}


def every_statement() -> list[tuple[str, str, Statement]]:
    folder = resources.files("lamplighter.engines.sqlite").joinpath("sql")
    verbs = sorted(entry.name.removesuffix(".sql") for entry in folder.iterdir())
    return [(verb, name, st) for verb in verbs for name, st in load(verb).items()]


def test_there_are_files_for_all_write_verbs() -> None:
    verbs = {verb for verb, _, _ in every_statement()}
    assert verbs >= {
        "submit", "claim", "renew", "settle", "rescue", "cancel", "hold", "unhold", "retry",
        "replay", "purge", "prune", "record",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "name", "statement"),
    every_statement(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_statement_scans_jobs_turns_or_what_attempts_said(
    verb: str, name: str, statement: Statement, tmp_path: Path
) -> None:
    path = tmp_path / "plan.db"
    database.prepare(path, lambda: 0, migrate=False)
    connection = database.open_connection(path, lambda: 0, writer=True)
    values = (None,) * len(statement.names)
    plan = [
        row[3]
        for row in connection.execute("EXPLAIN QUERY PLAN " + statement.text, values).fetchall()
    ]
    connection.close()
    large = ("job", "turn", "log", "progress", "attempt")
    scans = [line for line in plan if line.startswith(tuple(f"SCAN {table}" for table in large))]
    assert not scans or (verb, name) in SCANS_ALLOWED, plan


@pytest.mark.parametrize(
    ("verb", "name", "index"),
    [
        ("claim", "waiting", "job_waiting"),
        ("claim", "in_line", "turn_in_line"),
        ("claim", "asleep", "turn_asleep"),
        ("claim", "longest", "turn_longest"),
        ("settle", "current", "job_id"),
        ("renew", "renew", "job_id"),
        ("record", "held", "job_id"),
        ("record", "drop", "autoindex_log"),
        ("purge", "log", "autoindex_log"),
        ("purge", "progress", "PRIMARY KEY (job_id=?)"),
        ("prune", "pieces", "autoindex_log"),
        ("inspect", "job", "SEARCH progress USING PRIMARY KEY (job_id=?)"),
        ("inspect", "jobs", "SEARCH progress USING PRIMARY KEY (job_id=?)"),
        ("inspect", "logs", "(job_id=? AND (lease,number)>(?,?))"),
        ("inspect", "attempts", "SEARCH attempt USING PRIMARY KEY (job_id=?)"),
        ("inspect", "attempts", "job_id (id=?)"),
        ("rescue", "expired", "job_running"),
        ("prune", "finished", "job_succeeded"),
        ("prune", "dead", "job_dead"),
        ("inspect", "dead", "job_dead"),
    ],
)
def test_the_intended_index_serves(verb: str, name: str, index: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.db"
    database.prepare(path, lambda: 0, migrate=False)
    connection = database.open_connection(path, lambda: 0, writer=True)
    statement = load(verb)[name]
    plan = connection.execute(
        "EXPLAIN QUERY PLAN " + statement.text, (None,) * len(statement.names)
    ).fetchall()
    connection.close()
    lines = [row[3] for row in plan]
    assert any(index in line for line in lines), lines
    if verb == "claim" or name == "logs":
        assert not any("TEMP B-TREE" in line for line in lines), lines
