"""Whatever is wrong with address, server or rights is said clearly, and leaves nothing behind."""

import asyncio
import os
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

from lamplighter.cli.main import main
from lamplighter.connect import connect
from lamplighter.engines.postgres import installer, refusal, statements
from lamplighter.engines.postgres.address import parse
from lamplighter.engines.postgres.connection import connect_patiently
from lamplighter.model.errors import StoreUnreachable
from lamplighter.port.checkup import Grade
from tests.servers.postgres import Server, find_servers, newest_server, start
from tests.servers.stores import with_parts

COMMANDS = (["migrate"], ["jobs", "list"], ["queues"], ["doctor"])


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installer, "PATIENCE", 0.2)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with users, passwords, and databases that cannot be used."""
    with start(newest_server(), tmp_path_factory.mktemp("log")) as server:
        with server.connect() as admin:
            admin.execute("CREATE ROLE ada LOGIN PASSWORD 'right'")
            admin.execute("CREATE ROLE bare LOGIN")
            admin.execute("CREATE ROLE shut NOLOGIN")
            admin.execute(
                "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'"
            )
            admin.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
            admin.execute("CREATE DATABASE closed ALLOW_CONNECTIONS false")
            admin.execute("CREATE DATABASE private")
            admin.execute("REVOKE CONNECT ON DATABASE private FROM PUBLIC")
            admin.execute("CREATE DATABASE foreign_one")
        with server.connect("foreign_one") as admin:
            admin.execute("CREATE SCHEMA lamplighter CREATE TABLE album (title text)")
        rules = server.data / "pg_hba.conf"
        rules.write_text("host all ada 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
        server.restart()
        yield server


def say(*arguments: str) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_each_kind_of_bad_input_is_told_with_its_remedy_and_leaves_nothing(busy: Server):
    cases = [
        (busy.url().replace("postgres@", "ada:wrong@"), "password", "user and password"),
        (busy.url().replace("postgres@", "ada@"), "no password", "password"),
        (busy.url().replace("postgres@", "ghost@"), "ghost", "user"),
        (busy.url().replace("postgres@", "shut@"), "log in", "may log in"),
        (busy.url("nowhere"), "nowhere", "create the database"),
        (busy.url("closed"), "closed", "ALLOW_CONNECTIONS"),
        (busy.url("private").replace("postgres@", "bare@"), "private", "bare"),
        (busy.url("ascii"), "SQL_ASCII", "ENCODING 'UTF8'"),
        (busy.url("latin"), "LATIN1", "ENCODING 'UTF8'"),
        (busy.url("foreign_one"), "another program", "another schema"),
        (busy.url().replace("postgres@", "bare@"), "`bare`", "CREATE SCHEMA lamplighter"),
        (busy.url().replace(str(busy.port), "1"), "refused", "host and port"),
        (busy.url().replace("127.0.0.1", "no-such.invalid"), "no-such.invalid", "host"),
        (busy.url(nonsense="1"), "nonsense=1", "options of ours"),
        (busy.url(pool="1"), "pool", "3 to 100"),
        (busy.url(durability="some"), "durability", "durability=none"),
        (busy.url().replace("postgresql:", "postgre:"), "postgre", "postgresql://"),
    ]
    for url, cause, remedy in cases:
        result = say("migrate", "--url", url)
        assert result.exit_code == 1, url
        assert result.stdout == ""
        error, _, hint = result.stderr.partition("\n\nhint: ")
        assert error.startswith("error: "), result.stderr
        assert cause in error, result.stderr
        assert remedy in hint, result.stderr
        assert "wrong" not in result.stderr
    assert schemas(busy, "postgres") == 0
    assert schemas(busy, "ascii") == 0
    assert schemas(busy, "latin") == 0
    with busy.connect("foreign_one") as admin:
        row = admin.execute(
            "SELECT count(*) FROM pg_class WHERE relnamespace = 'lamplighter'::regnamespace "
            "AND relkind = 'r'"
        ).fetchone()
    assert row == (1,)


def schemas(server: Server, database: str) -> int:
    with server.connect(database) as admin:
        row = admin.execute(
            "SELECT count(*) FROM pg_namespace WHERE nspname = 'lamplighter'"
        ).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_tells_it_the_same_way(busy: Server, command: list[str]):
    result = say(*command, "--url", busy.url("nowhere"))

    assert result.exit_code == 1
    assert 'database "nowhere" does not exist' in result.stderr
    assert "Traceback" not in result.stderr


def test_a_command_that_only_looks_makes_no_store(busy: Server):
    for command in (["jobs", "list"], ["queues"], ["workers"], ["dlq", "list"]):
        result = say(*command, "--url", busy.url("template1"))
        assert result.exit_code == 1
        assert "there is no store" in result.stderr
    assert schemas(busy, "template1") == 0


HALF = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'half' AND query LIKE '%pg_sleep%' AND state = 'active'
"""


async def test_a_migration_that_is_killed_half_way_leaves_nothing(
    busy: Server, monkeypatch: pytest.MonkeyPatch, until: Callable[..., Awaitable[None]]
):
    slow = (*statements.migrations(), "SELECT pg_sleep(60)")
    monkeypatch.setattr(statements, "migrations", lambda: slow)
    engine = connect(busy.url(application_name="half"), deadline=1.0)
    making = asyncio.create_task(engine.migrate())
    with busy.connect() as admin:
        # It is begun again, and killed again, until its time is over.
        await until(lambda: admin.execute(HALF).fetchall() is None or making.done())
        with pytest.raises(StoreUnreachable):
            await making

    assert schemas(busy, "postgres") == 0


# ── a server that is too old ─────────────────────────────────────────────────────────────────


class OldServer(threading.Thread):
    """Answers as PostgreSQL 13 would, as far as the first questions."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://ada@127.0.0.1:{self._door.getsockname()[1]}/db?sslmode=disable"

    def run(self) -> None:
        while True:
            try:
                visitor, _ = self._door.accept()
            except OSError:
                return
            with visitor:
                self._serve(visitor)

    def _serve(self, visitor: socket.socket) -> None:
        (length,) = struct.unpack("!i", visitor.recv(4))
        visitor.recv(length - 4)
        version = message(b"S", b"server_version\0" + b"13.4\0")
        encoding = message(b"S", b"client_encoding\0UTF8\0")
        ready = message(b"Z", b"I")
        greeting = message(b"R", struct.pack("!i", 0)) + version + encoding
        visitor.sendall(greeting + message(b"K", struct.pack("!ii", 1, 2)) + ready)
        column = b"x\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0)
        answer = message(b"T", struct.pack("!h", 1) + column)
        answer += message(b"D", struct.pack("!hi", 1, 3) + b"off")
        answer += message(b"C", b"SHOW\0") + ready
        while (asked := visitor.recv(4096)) and asked[:1] == b"Q":
            visitor.sendall(answer)

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


async def test_a_server_that_is_too_old_is_refused_and_looked_at():
    old = OldServer()
    old.start()
    try:
        with pytest.raises(StoreUnreachable, match=r"PostgreSQL 13\.4; 14 or newer"):
            await connect(old.url).open()
        (found,) = (await connect(old.url).check_up()).findings
    finally:
        old.close()
        old.join(5)

    assert (found.check, found.grade) == ("server", Grade.PROBLEM)
    assert "13.4" in found.text


# ── a server that speaks another language ────────────────────────────────────────────────────


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server whose words are German; needs its translations and a locale made for the test."""
    localedef = shutil.which("localedef")
    translated = Path("/usr/share/locale/de/LC_MESSAGES")
    able = [
        one for one in find_servers() if (translated / f"postgres-{one.version[0]}.mo").exists()
    ]
    if localedef is None or not able:
        pytest.skip("no PostgreSQL with German words on this machine")
    folder = Path(f"/tmp/locale-{os.getpid()}")
    folder.mkdir(exist_ok=True)
    made = subprocess.run(
        [localedef, "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")], check=False
    )
    if made.returncode != 0:
        pytest.skip("this system cannot make a German locale")
    monkeypatch.setenv("LOCPATH", str(folder))
    try:
        words = {"lc_messages": "de_DE.UTF-8"}
        with start(able[0], tmp_path, settings=words, fast=True) as server:
            yield server
    finally:
        shutil.rmtree(folder)


async def test_a_refusal_in_another_language_is_understood_by_its_code(german: Server):
    with german.connect() as admin:
        admin.execute("CREATE ROLE ada LOGIN PASSWORD 'richtig'")
    rules = german.data / "pg_hba.conf"
    rules.write_text("host all ada 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
    german.restart()

    with pytest.raises(StoreUnreachable, match="existiert nicht") as refused:
        await connect_patiently(parse(german.url("nirgends")), 60.0)
    assert "create the database" in refused.value.hint
    with pytest.raises(StoreUnreachable, match="Passwort") as refused:
        await connect_patiently(parse(german.url().replace("postgres@", "ada:falsch@")), 60.0)
    assert "password" in refused.value.hint
    assert "falsch" not in str(refused.value)


async def test_what_has_no_code_stays_as_it_is(busy: Server):
    address = parse(with_parts(busy.url(), connect_timeout="2"))
    lost = psycopg.OperationalError("connection failed: Connection refused")
    unknown = psycopg.OperationalError("connection failed: server closed the connection")

    assert await refusal.with_code(lost, address) is lost
    assert await refusal.with_code(unknown, address) is unknown
