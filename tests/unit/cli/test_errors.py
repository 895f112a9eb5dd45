"""Wrong things typed: each gives a clear error and a hint on stderr, and no traceback."""

import os
import sqlite3

import pytest


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["dev", "nosuch_module:app"], "there is no module `nosuch_module`"),
        (["worker", "nosuch_module"], "does not name an app"),
        (["worker", "json:nope"], "the module `json` has no `nope`"),
        (["dev", "json:dumps"], "not an App"),
        (["jobs", "list", "--url", "mysql://host/db"], "unknown engine `mysql`"),
        (["jobs", "list", "--url", "http://host"], "address of a service, not of a store"),
        (["jobs", "list", "--url", "sqlite://"], "does not name a database file"),
        (["jobs", "list", "--url", "sqlite:///no/such/folder.db"], "does not exist"),
        (["jobs", "list", "--url", "sqlite:///."], "is a folder"),
        (["migrate", "--url", "sqlite:////proc/lamplighter.db"], "/proc/lamplighter.db"),
        (["jobs", "list", "--status", "funny"], "unknown status `funny`"),
        (["jobs", "list", "--cursor", "x"], "cursor `x`"),
        (["jobs", "list", "--type", ""], "the job type is empty"),
        (["jobs", "list", "--queue", "x" * 65], "the limit is 64"),
        (["jobs", "list", "--tag", ""], "the tag is empty"),
        (["dlq", "list", "--fingerprint", ""], "the fingerprint is empty"),
        (["dlq", "purge", "--tenant", "", "--yes"], "the tenant is empty"),
        (["schedules", "list", "--tenant", ""], "the tenant is empty"),
        (["jobs", "show", "123"], "`123` is not a job id"),
        (["why", "not-an-id"], "`not-an-id` is not a job id"),
        (["dlq", "list", "--after", "noon"], "--after `noon` is not a time"),
        (["dlq", "list", "--after", "99999999999d"], "--after `99999999999d` is before the year"),
        (["dlq", "list", "--before", "0001-01-01T00:00:00Z"], "is before the year 1970"),
        (["dlq", "list", "--after", "9" * 400], "is not a time"),
        (["queues", "set", "x" * 65, "--hold"], "the limit is 64"),
        (["queues", "set", "q", "--max-wait", "0"], "the longest wait `0`"),
        (["queues", "set", "q", "--max-wait", "99999999999999999d"], "more than a year"),
        (["submit", "x", "--force", "--delay", "9" * 400], "is not a duration"),
        (["submit", "x", "--force", "--retry", '{"no_retry_on": 5}'], "no_retry_on is `5`"),
        (["worker", "json:dumps", "--queues", "a=1,b"], "some of the queues"),
        (["worker", "json:dumps", "--lease", "-1"], "the lease `-1` is negative"),
        (["worker", "json:dumps", "--slots", "0"], "`slots`"),
        (["dev", "json:dumps", "--speed", "0"], "`speed`"),
    ],
)
def test_a_wrong_value_is_an_error_with_a_hint(lamplighter, store, arguments, cause):
    result = lamplighter(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert cause in result.stderr
    assert "\nhint: " in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuch"],
        ["jobs", "nosuch"],
        ["jobs", "list", "--nosuch"],
        ["jobs", "list", "--limit", "0"],
        ["jobs", "show"],
        ["worker"],
        ["dev", "a:b", "--speed", "fast"],
    ],
)
def test_misuse_points_to_the_help(lamplighter, home, arguments):
    result = lamplighter(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "--help`" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (["migrate", "--grant-run"], "lamplighter migrate"),
        (["jobs", "list", "--type"], "lamplighter jobs list"),
        (["jobs", "nosuch"], "lamplighter jobs"),
        (["nosuch"], "lamplighter"),
    ],
)
def test_misuse_points_to_the_help_of_its_command(lamplighter, home, arguments, path):
    assert f"try `{path} --help`" in lamplighter(*arguments).stderr


def test_a_group_without_a_command_shows_its_help(lamplighter, home):
    result = lamplighter("cron")
    assert result.exit_code == 2
    assert "Explain cron expressions" in result.output


def test_an_app_without_job_types_has_nothing_to_run(lamplighter, home):
    (home / "cli_empty.py").write_text("from lamplighter import App\napp = App()\n")
    result = lamplighter("worker", "cli_empty:app")
    assert result.exit_code == 1
    assert "has no job types" in result.stderr


def test_a_program_that_cannot_be_imported_shows_its_own_error(lamplighter, home):
    (home / "cli_broken.py").write_text("import nosuch_dependency\n")
    result = lamplighter("dev", "cli_broken:app")
    assert result.exit_code == 1
    assert "nosuch_dependency" in result.stderr
    assert "cli_broken.py" in result.stderr


def test_a_foreign_database_is_left_alone(lamplighter, home):
    with sqlite3.connect(home / "foreign.db") as connection:
        connection.execute("CREATE TABLE album (title TEXT)")
    connection.close()
    result = lamplighter("queues", "--url", "sqlite:///foreign.db")
    assert result.exit_code == 1
    assert "belongs to another program" in result.stderr
    (home / "text.db").write_text("this is a letter, not a database, and it is long enough")
    assert "not an SQLite database" in lamplighter("queues", "--url", "sqlite:///text.db").stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read and write everything")
def test_a_folder_that_may_not_be_used_is_named(lamplighter, home):
    (home / "closed").mkdir(mode=0o000)
    for command in (["migrate"], ["jobs", "list"]):
        result = lamplighter(*command, "--url", "sqlite:///closed/jobs.db")
        assert result.exit_code == 1
        assert "closed" in result.stderr
        assert "Traceback" not in result.stderr


def test_a_command_that_only_looks_makes_no_store(lamplighter, home):
    for command in (["jobs", "list"], ["queues"], ["submit", "charge"], ["workers"]):
        result = lamplighter(*command)
        assert result.exit_code == 1
        assert "there is no store `jobs.db` yet" in result.stderr
    assert list(home.iterdir()) == []


def test_the_help_names_the_commands_in_the_order_in_which_people_meet_them(lamplighter, home):
    lines = lamplighter("--help").stdout.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines][:4] == ["dev", "worker", "serve", "submit"]
    assert not [line for line in lines if line.endswith("...")], "each line is a whole sentence"


def test_the_version_is_told(lamplighter, home):
    assert lamplighter("--version").stdout.startswith("lamplighter 0.")
