"""`lamplighter doctor`: one line for each check, what survives, and the exit code."""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from lamplighter import runtime
from lamplighter.engines.sqlite import checkup, database
from lamplighter.engines.sqlite.checkup import Facts
from lamplighter.port.checkup import Finding, Grade, Overdue
from lamplighter.port.conformance.schedule_builders import new_schedule, put

GOOD = Facts(version=2, newest=2)

BAD = [
    (checkup.library, {"sqlite": (3, 36, 0)}, "problem", "3.36.0"),
    (checkup.place, {"system": "nfs4"}, "problem", "nfs4"),
    (checkup.place, {"system": "fuse.sshfs"}, "problem", "fuse.sshfs"),
    (checkup.place, {"system": ""}, "note", "unverified"),
    (checkup.permissions, {"foreign": ("jobs.db-wal",)}, "problem", "jobs.db-wal"),
    (checkup.permissions, {"modes": (("jobs.db", 0o644),)}, "note", "read"),
    (
        checkup.permissions,
        {"modes": (("jobs.db", 0o600), ("jobs.db-wal", 0o666))},
        "warning",
        "write",
    ),
    (checkup.space, {"free": 1 << 20}, "problem", "1 MiB free"),
    (checkup.space, {"free": 200 << 20, "size": 900 << 20}, "warning", "200 MiB free"),
    (checkup.schema, {"there": False}, "problem", "migrate"),
    (checkup.schema, {"version": 0}, "problem", "migrate"),
    (checkup.schema, {"refusal": ("another program", "name another")}, "problem", "name another"),
    (checkup.journal, {"journal": "delete"}, "problem", "journal_mode = WAL"),
    (checkup.journal, {"log": 100 << 20}, "warning", "100 MiB"),
    (checkup.synchronous, {"synchronous": 1}, "problem", "NORMAL"),
    (checkup.integrity, {"damage": "row 7 missing from index"}, "problem", "row 7"),
    (checkup.integrity, {"damage": None}, "note", "too large"),
    (checkup.clock, {"ahead_ms": 60_000}, "warning", "60.0 s ahead"),
    (
        checkup.schedules,
        {"overdue": Overdue(2, 10_500)},
        "warning",
        "2 are due, the first for 10.5",
    ),
    (checkup.schedules, {"overdue": Overdue(1, 60_500)}, "problem", "is a worker running?"),
]


@pytest.mark.parametrize("check", checkup.CHECKS, ids=lambda check: check.__name__)
def test_a_healthy_file_is_found_healthy(check: Callable[[Facts], Finding]):
    assert check(GOOD).grade is Grade.OK


@pytest.mark.parametrize(("check", "change", "grade", "word"), BAD)
def test_each_check_finds_what_it_looks_for(
    check: Callable[[Facts], Finding], change: dict[str, object], grade: str, word: str
):
    found = check(replace(GOOD, **change))

    assert found.grade == grade
    assert word in f"{found.text} {found.remedy}"


def test_there_is_no_check_that_cannot_fail():
    assert {check for check, *_ in BAD} == set(checkup.CHECKS)


def test_the_loss_window_follows_the_settings():
    assert checkup.survives(GOOD)["power loss of the machine"].startswith("yes")
    worse = checkup.survives(replace(GOOD, synchronous=1))
    assert worse["power loss of the machine"].startswith("no")


# ── the command ──────────────────────────────────────────────────────────────────────────────


def grades(answer) -> dict[str, str]:
    return {one["check"]: one["grade"] for one in answer["findings"]}


def test_a_store_that_is_well_gives_exit_code_0(lamplighter, store, home):
    store.submit()
    store.worker("charge")
    (home / "jobs.db").chmod(0o600)

    result = lamplighter("doctor")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert all(line.startswith("ok ") for line in lines[: len(checkup.CHECKS)])
    assert "An acknowledged job survives" in lines
    assert lines[-1] == "no problems, no warnings"


def test_a_store_that_is_not_there_is_a_problem_and_is_not_made(lamplighter, home):
    result = lamplighter("doctor")

    assert result.exit_code == 1
    assert "problem  schema  there is no store" in result.stdout
    assert "migrate" in result.stdout
    assert list(home.iterdir()) == []


def test_programs_get_the_findings_as_data(lamplighter, store, answer):
    store.submit()

    found = answer("doctor")

    assert (found["engine"], found["problems"]) == ("sqlite", 0)
    own = {check(GOOD).check for check in checkup.CHECKS}
    assert set(grades(found)) == own | {"workers", "running"}
    assert {"check", "grade", "text", "remedy"} == set(found["findings"][0])
    assert found["survives"]["death of a process"] == "yes"


def test_another_programs_file_is_named_and_left_alone(lamplighter, home):
    with closing(sqlite3.connect(home / "jobs.db")) as connection:
        connection.execute("CREATE TABLE album (title TEXT)")

    result = lamplighter("doctor")

    assert result.exit_code == 1
    assert "belongs to another program" in result.stdout


def test_a_damaged_file_is_found(lamplighter, store, home):
    store.submit_many(300)
    path = home / "jobs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek(4096 * 12)
        file.write(os.urandom(4096 * 4))

    result = lamplighter("doctor")

    assert result.exit_code == 1
    assert "damaged" in result.stdout


def test_a_clock_that_went_back_is_noticed(lamplighter, store, answer, home):
    store.submit()
    with closing(sqlite3.connect(home / "jobs.db")) as connection:
        connection.execute("UPDATE job SET created = created + 3600000")
        connection.commit()

    assert grades(answer("doctor"))["clock"] == "warning"


def test_a_look_through_a_large_file_ends(lamplighter, store, answer, monkeypatch):
    store.submit()
    monkeypatch.setattr(checkup, "_SECONDS", -1.0)
    monkeypatch.setattr(checkup, "_STEPS", 1)

    assert grades(answer("doctor"))["integrity"] == "note"


def test_a_network_file_system_is_a_problem(lamplighter, store, monkeypatch):
    store.submit()
    monkeypatch.setattr(database, "file_system", lambda _: "nfs4")

    result = lamplighter("doctor")

    assert result.exit_code == 1
    assert "network file system (nfs4)" in result.stdout


def test_another_journal_mode_is_a_problem(lamplighter, store, answer, home):
    store.submit()
    with closing(sqlite3.connect(home / "jobs.db")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")

    result = lamplighter("doctor", "--json")

    assert result.exit_code == 1
    assert '"delete"' in result.stdout or "`delete`" in result.stdout


def test_sqlite_gives_rights_to_nobody(lamplighter, home):
    result = lamplighter("migrate", "--grant-run", "ada")

    assert result.exit_code == 1
    assert "`ada`" in result.stderr
    assert "chmod" in result.stderr
    assert list(home.iterdir()) == []


def test_a_schedule_that_nobody_fires_is_a_problem(lamplighter, store, home):
    now = runtime.now_ms()
    store.run(lambda engine: put(engine, new_schedule("held", due_ms=now - 99_000)))
    store.run(lambda engine: engine.schedules.hold_schedules(["held"], by="ada", reason=""))
    (home / "jobs.db").chmod(0o600)
    assert "ok       schedules    none is overdue" in lamplighter("doctor").stdout

    store.run(lambda engine: put(engine, new_schedule("nightly", due_ms=now - 90_000)))
    result = lamplighter("doctor")

    assert result.exit_code == 1
    (line,) = [line for line in result.stdout.splitlines() if "schedules" in line]
    assert line.startswith("problem  schedules    1 is due, the first for 9")
    assert "is a worker running?" in line


def test_a_store_of_an_older_version_is_not_asked_for_schedules(lamplighter, store, home):
    store.submit()
    with closing(sqlite3.connect(home / "jobs.db")) as connection:
        connection.execute("PRAGMA user_version = 1")
        connection.execute("DROP TABLE run")
        connection.execute("DROP TABLE schedule")

    found = json.loads(lamplighter("doctor", "--json").stdout)

    assert grades(found)["schema"] == "problem"
    assert "schedules" not in grades(found)
