"""Every statement is served by an index, and the SQL files say what they take."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import pytest

from lamplighter.engines.sqlite import database
from lamplighter.engines.sqlite.statements import Statement, load
from lamplighter.model.fields import ATTEMPT, JOB

if TYPE_CHECKING:
    from pathlib import Path

SCANS_ALLOWED = {
    ("rescue", "ahead"),  # the running jobs, all of them: few
    ("rescue", "cut"),
    ("rescue", "claims_of"),
    ("claim", "still_running"),
    ("inspect", "running_lanes"),
    ("inspect", "running_tenants"),
    ("inspect", "running_in_lanes"),
    ("inspect", "one_tenant"),
    ("inspect", "tenants"),
    ("inspect", "waiting_tenants"),  # what waits, by a narrow index
    ("inspect", "counts"),  # bounded by a limit
    ("inspect", "dead_groups"),
    ("activity", "held"),  # the same
    ("settings", "busy"),  # what runs or is held, by narrow indexes, when a queue is removed
    ("prune", "how_many"),  # counts narrow indexes
    ("prune", "requests"),  # the running jobs again
}


def every_statement() -> list[tuple[str, str, Statement]]:
    folder = resources.files("lamplighter.engines.sqlite").joinpath("sql")
    verbs = sorted(entry.name.removesuffix(".sql") for entry in folder.iterdir())
    return [(verb, name, st) for verb in verbs for name, st in load(verb).items()]


def test_there_are_files_for_all_write_verbs() -> None:
    verbs = {verb for verb, _, _ in every_statement()}
    assert verbs >= {
        "submit", "claim", "renew", "settle", "rescue", "change", "prune", "record", "moves",
        "schedules", "fire", "runs", "access", "settings", "membership",
    }  # fmt: skip


def test_every_statement_is_used() -> None:
    root = resources.files("lamplighter.engines.sqlite")
    folders = (root, root.joinpath("verbs"))
    source = "".join(
        entry.read_text()
        for folder in folders
        for entry in folder.iterdir()
        if entry.name.endswith(".py")
    )
    for verb, name, _ in every_statement():
        assert f'load("{verb}")' in source
        assert f'"{name}"' in source or name.startswith("beyond_"), (verb, name)


@pytest.mark.parametrize(
    ("verb", "name", "statement"),
    every_statement(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_statement_scans_a_table_that_grows(
    verb: str, name: str, statement: Statement, tmp_path: Path
) -> None:
    path = tmp_path / "plan.db"
    path.touch()
    database.prepare(path, lambda: 0, migrate=False)
    connection = database.open_connection(path, lambda: 0, writer=True)
    values = (None,) * len(statement.names)
    plan = [
        row[3]
        for row in connection.execute("EXPLAIN QUERY PLAN " + statement.text, values).fetchall()
    ]
    connection.close()
    large = ("job", "turn", "log", "progress", "attempt", "schedule", "run")
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
        ("moves", "remove_log", "autoindex_log"),
        ("moves", "remove_progress", "PRIMARY KEY (job_id=?)"),
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
        ("schedules", "known", "schedule_id (tenant=? AND id=?)"),
        ("fire", "longest", "schedule_awake (wake>? AND wake<?)"),
        ("fire", "longest", "run_backfilling (schedule=?)"),
        ("fire", "newest", "schedule_awake (wake>? AND wake<?)"),
        ("fire", "next", "schedule_awake"),
        ("runs", "standing", "schedule_id (tenant=? AND id=?)"),
        ("runs", "standing", "job_id (id=?)"),
        ("runs", "standing", "run_queued (schedule=?)"),
        ("fire", "skip", "SEARCH run USING PRIMARY KEY (schedule=? AND due>?)"),
        ("fire", "write", "INTEGER PRIMARY KEY"),
        ("fire", "forget_succeeded", "run_succeeded (schedule=?)"),
        ("fire", "forget_succeeded", "SEARCH run USING PRIMARY KEY (schedule=? AND due=?)"),
        ("fire", "forget_failed", "run_failed (schedule=?)"),
        ("fire", "forget_failed", "SEARCH run USING PRIMARY KEY (schedule=? AND due=?)"),
        ("runs", "first_queued", "run_queued (schedule=?)"),
        ("runs", "queued", "run_queued (schedule=?)"),
        ("runs", "end", "run_job (job_id=?)"),
        ("runs", "wake", "run_job (job_id=?)"),
        ("runs", "wake", "INTEGER PRIMARY KEY"),
        ("runs", "again", "run_job (job_id=?)"),
        ("schedules", "earlier", "run_job (job_id=? AND schedule=?)"),
        ("schedules", "earlier", "run_asked (asked=? AND schedule=?)"),
        ("schedules", "taken", "PRIMARY KEY (schedule=? AND due>?)"),
        ("inspect_schedules", "schedules", "schedule_id ((tenant,id)>(?,?))"),
        ("inspect_schedules", "runs", "PRIMARY KEY (schedule=? AND due<?)"),
        ("prune", "runs", "PRIMARY KEY (schedule=? AND due=?)"),
    ],
)
def test_the_intended_index_serves(verb: str, name: str, index: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.db"
    path.touch()
    database.prepare(path, lambda: 0, migrate=False)
    connection = database.open_connection(path, lambda: 0, writer=True)
    statement = load(verb)[name]
    plan = connection.execute(
        "EXPLAIN QUERY PLAN " + statement.text, (None,) * len(statement.names)
    ).fetchall()
    connection.close()
    lines = [row[3] for row in plan]
    assert any(index in line for line in lines), lines
    if verb in {"claim", "inspect_schedules", "runs"} or name in {
        "logs",
        "longest",
        "newest",
        "next",
    }:
        assert not any("TEMP B-TREE" in line for line in lines), lines


def test_the_columns_of_a_group_are_written_where_its_name_stands() -> None:
    insert = load("settle")["history"]
    assert insert.names == ATTEMPT
    assert f"INSERT INTO attempt ({', '.join(ATTEMPT)})" in insert.text

    claimed = load("claim")["in_line"].text
    assert f"SELECT {', '.join(f'job.{name}' for name in JOB)}, job.seq" in claimed
