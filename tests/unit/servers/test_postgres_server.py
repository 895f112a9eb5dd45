"""The tests' own PostgreSQL servers start, die, come back and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests.faults.processes import identify, tree_of
from tests.servers import postgres, programs, stores
from tests.servers.launchers import launchers
from tests.servers.postgres import (
    Binaries,
    ServerFailed,
    ServerMissing,
    find_servers,
    newest_server,
    standby,
    start,
)

ROOT = Path(__file__).parents[3]
PATIENCE = 20.0


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)


def value(url, statement):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement).fetchone()[0]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A durable server that tests may kill if they bring it back."""
    with start(newest_server(), tmp_path_factory.mktemp("log")) as server:
        yield server


@pytest.fixture
def own_stores(monkeypatch):
    """Stores on a server that ends with the test."""
    shared = stores._Shared()
    monkeypatch.setattr(stores, "_shared", shared)
    yield shared
    shared.close()


def test_the_servers_found_are_new_enough_complete_and_the_newest_comes_first():
    found = find_servers()
    assert found
    assert [one.version for one in found] == sorted((one.version for one in found), reverse=True)
    assert len({one.postgres.resolve() for one in found}) == len(found)
    assert all(one.version[0] >= 14 and one.initdb.exists() for one in found)


def test_a_missing_server_is_an_error_with_a_remedy(monkeypatch):
    monkeypatch.setattr(programs, "_folders", lambda: iter([Path("/nowhere")]))
    with pytest.raises(ServerMissing, match=r"hint: .*LAMPLIGHTER_TEST_POSTGRES=postgresql://"):
        newest_server()


@pytest.mark.parametrize("binaries", find_servers(), ids=lambda one: str(one.version[0]))
def test_every_server_found_starts_with_what_tests_expect_of_it(binaries, tmp_path):
    with start(binaries, tmp_path, settings={"work_mem": "5MB"}, fast=True) as server:
        shown = {
            name: value(server.url(), f"SHOW {name}")
            for name in ("server_encoding", "listen_addresses", "fsync", "work_mem")
        }
        assert shown == {
            "server_encoding": "UTF8",
            "listen_addresses": "127.0.0.1",
            "fsync": "off",
            "work_mem": "5MB",
        }
        collate = "SELECT datcollate FROM pg_database WHERE datname = 'postgres'"
        assert value(server.url(), collate) == "C.UTF-8"
        version = value(server.url(), "SHOW server_version_num")
        assert int(version) // 10000 == binaries.version[0]


def test_a_server_is_durable_unless_told_otherwise(server):
    assert value(server.url(), "SHOW fsync") == "on"
    assert value(server.url(), "SHOW synchronous_commit") == "on"


def test_a_database_can_be_made_and_its_address_carries_options(server):
    url = server.create_database("shop & co")
    assert value(url, "SELECT current_database()") == "shop & co"
    named = server.url("shop & co", application_name="a b")
    assert value(named, "SHOW application_name") == "a b"


def test_what_was_committed_survives_kill_9(server):
    with server.connect() as connection:
        connection.execute("CREATE TABLE kept (n int)")
        connection.execute("INSERT INTO kept SELECT generate_series(1, 1000)")
        processes = [identify(server.pid), *tree_of(server.pid)]
        port = server.port
        server.kill9()
        assert not any(one.alive() for one in processes)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        server.connect()
    with pytest.raises(ServerFailed, match=r"restart\(\)"):
        _ = server.pid
    server.restart()
    assert server.port == port
    assert value(server.url(), "SELECT count(*) FROM kept") == 1000


def test_a_running_server_can_be_restarted_with_other_settings(server):
    before = server.pid
    server.configure({"max_connections": "50", "application_name": "it's"})
    server.restart()
    assert server.pid != before
    assert value(server.url(), "SHOW max_connections") == "50"
    assert value(server.url(), "SHOW application_name") == "it's"


def test_two_servers_run_side_by_side_and_leave_nothing_behind(server, tmp_path):
    with start(newest_server(), tmp_path, fast=True) as other:
        assert other.port != server.port
        other.create_database("only_here")
        listed = "SELECT count(*) FROM pg_database WHERE datname = 'only_here'"
        assert (value(other.url(), listed), value(server.url(), listed)) == (1, 0)
        processes = [identify(other.pid), *tree_of(other.pid)]
        assert len(processes) > 1
    until(lambda: not any(one.alive() for one in processes), "the end of all processes")
    assert not other.home.exists()
    assert "database system is shut down" in other.log.read_text()
    assert value(server.url(), "SELECT 1") == 1


def test_a_port_in_use_is_explained_with_the_servers_own_words(server, tmp_path):
    taken = start(newest_server(), tmp_path, port=server.port, fast=True)
    with pytest.raises(ServerFailed, match="Address already in use") as caught, taken:
        pass
    assert str(tmp_path) in str(caught.value)
    assert list(tmp_path.iterdir())


@pytest.mark.parametrize("launcher", launchers(), ids=lambda one: one.name)
def test_each_way_to_start_a_server_works_here(launcher, tmp_path, monkeypatch):
    monkeypatch.setattr(postgres, "launchers", lambda: [launcher])
    with start(newest_server(), tmp_path, fast=True) as server:
        assert value(server.url(), "SELECT 1") == 1
        server.kill9()
        server.restart()
        assert value(server.url(), "SELECT 1") == 1


def hidden(binaries: Binaries, folder: Path) -> Binaries:
    """The same programs, by a path that only their owner may follow."""
    folder = folder / "private"
    folder.mkdir(mode=0o700)
    (folder / "bin").symlink_to(binaries.folder)
    return Binaries(binaries.version, folder / "bin")


def test_programs_in_a_private_folder_can_be_used_without_opening_it(tmp_path):
    binaries = hidden(newest_server(), tmp_path)
    with start(binaries, tmp_path, fast=True) as server:
        assert value(server.url(), "SELECT 1") == 1
        if os.geteuid() == 0:
            assert "namespace" in server.launcher.name
    assert binaries.folder.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user needs no other way")
def test_root_is_told_all_that_was_tried_when_nothing_works(tmp_path, monkeypatch):
    plain = postgres.Launcher("as root itself")
    monkeypatch.setattr(postgres, "launchers", lambda: [launchers()[0], plain])
    with (
        pytest.raises(ServerFailed) as caught,
        start(hidden(newest_server(), tmp_path), tmp_path),
    ):
        pass
    said = str(caught.value)
    assert "- as nobody: [Errno 13] Permission denied" in said
    assert "- as root itself: initdb: error: cannot be run as root" in said
    assert "hint: " in said


def test_a_standby_follows_and_can_take_over(server):
    with server.connect() as connection:
        connection.execute("CREATE TABLE followed AS SELECT 1 AS n")
    with standby(server) as copy:
        assert value(copy.url(), "SELECT pg_is_in_recovery()") is True
        with server.connect() as connection:
            connection.execute("INSERT INTO followed VALUES (2)")
        until(lambda: value(copy.url(), "SELECT sum(n) FROM followed") == 3, "the second row")
        copy.promote()
        with copy.connect() as connection:
            connection.execute("INSERT INTO followed VALUES (3)")
        assert value(copy.url(), "SELECT sum(n) FROM followed") == 6
        assert value(server.url(), "SELECT sum(n) FROM followed") == 3


def test_a_server_ends_with_tests_that_are_killed(tmp_path):
    program = (
        "import sys, pathlib, tests.servers.postgres as p\n"
        "with p.start(p.newest_server(), pathlib.Path(sys.argv[1]), fast=True) as server:\n"
        "    print(server.pid, server.home, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as tests:
        pid, home = tests.stdout.readline().split()
        found = identify(int(pid))
        assert found.alive()
        tests.send_signal(signal.SIGKILL)
    until(lambda: not found.alive(), "the end of the server")
    until(lambda: not Path(home).exists(), "the end of its folder")


def test_each_store_is_a_new_schema_that_goes_away(own_stores, tmp_path, monkeypatch):
    monkeypatch.delenv(stores.GIVEN, raising=False)
    with stores.postgres_schemas(tmp_path) as fresh:
        first, second = fresh(), fresh()
        assert first.endswith("/postgres?durability=none&schema=s_1")
        assert second.endswith("/postgres?durability=none&schema=s_2")
        server = stores._shared.url()
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA s_1 CREATE TABLE jobs (id int)")
    with stores.postgres_schemas(tmp_path) as fresh:
        assert fresh().endswith("&schema=s_3")
        assert stores._shared.url() == server
    assert value(server, "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^s_'") == 0
    own_stores.close()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server)


def test_a_given_server_gets_a_database_for_the_run_only(server, own_stores, tmp_path, monkeypatch):
    monkeypatch.setenv(stores.GIVEN, server.url(application_name="ours"))
    with stores.postgres_schemas(tmp_path) as fresh:
        url = fresh()
        assert f":{server.port}/lamplighter_test_" in url
        assert url.endswith("?application_name=ours&schema=s_1")
        name = value(own_stores.url(), "SELECT current_database()")
    listed = f"SELECT count(*) FROM pg_database WHERE datname = '{name}'"
    assert value(server.url(), listed) == 1
    own_stores.close()
    assert value(server.url(), listed) == 0


def test_a_given_server_that_does_not_answer_is_an_error_with_a_remedy(
    own_stores, tmp_path, monkeypatch
):
    monkeypatch.setenv(stores.GIVEN, "postgresql://postgres@127.0.0.1:1/postgres")
    with (
        stores.postgres_schemas(tmp_path) as fresh,
        pytest.raises(ServerFailed, match=r"(?s)LAMPLIGHTER_TEST_POSTGRES.*hint: "),
    ):
        fresh()
