"""The pooler never lends a connection twice in a row, and finds what is left in sessions."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise

import psycopg
import pytest

from lamplighter.connect import connect as open_store
from tests.proxies import session
from tests.proxies.rotation import Rotation
from tests.servers.stores import with_parts

WRITES = ("default_transaction_read_only", "in_hot_standby")
PID = "SELECT pg_backend_pid()"
Connect = Callable[..., psycopg.Connection]


@pytest.fixture
def connect(rotation: Rotation, url: str) -> Iterator[Connect]:
    """Connect through the pooler; each statement commits by itself."""
    opened: list[psycopg.Connection] = []

    def one(**options: str) -> psycopg.Connection:
        address = with_parts(rotation.through(url), **options)
        opened.append(psycopg.connect(address, autocommit=True, prepare_threshold=None))
        return opened[-1]

    yield one
    for connection in opened:
        connection.close()


def pid_of(connection: psycopg.Connection) -> int:
    row = connection.execute(PID).fetchone()
    assert row is not None
    return row[0]


def found(rotation: Rotation) -> list[str]:
    return [leak.what for leak in rotation.leaks()]


def test_every_transaction_runs_on_another_server_connection(rotation: Rotation, connect: Connect):
    connection = connect()
    pids = [pid_of(connection) for _ in range(20)]

    assert all(before != after for before, after in pairwise(pids))
    assert len(set(pids)) >= 3
    rotation.verify()


def test_a_transaction_stays_on_its_connection_until_its_end(connect: Connect, rotation: Rotation):
    connection = connect()
    with connection.transaction():
        first = {pid_of(connection) for _ in range(5)}
        with pytest.raises(psycopg.errors.DivisionByZero), connection.transaction():
            connection.execute("SELECT 1 / 0")
        first.add(pid_of(connection))

    assert len(first) == 1
    assert pid_of(connection) not in first
    rotation.verify()


def test_many_clients_share_few_connections(url: str):
    with ExitStack() as stack:
        rotation = stack.enter_context(Rotation(url, most=5))
        clients = [
            stack.enter_context(
                psycopg.connect(rotation.through(url), autocommit=True, prepare_threshold=None)
            )
            for _ in range(12)
        ]
        threads = stack.enter_context(ThreadPoolExecutor(12))

        pids = set(threads.map(pid_of, clients * 20))

        assert 3 <= len(pids) <= 5
        rotation.verify()


def test_who_finds_all_connections_lent_waits_for_one(url: str):
    with (
        Rotation(url, least=2, most=2) as rotation,
        psycopg.connect(rotation.through(url), autocommit=True) as one,
        psycopg.connect(rotation.through(url), autocommit=True) as other,
        psycopg.connect(rotation.through(url), autocommit=True) as third,
        ThreadPoolExecutor(1) as threads,
    ):
        one.execute("BEGIN")
        other.execute("BEGIN")
        waiting = threads.submit(third.execute, "SELECT 3")
        with pytest.raises(TimeoutError):
            waiting.result(0.2)

        one.execute("COMMIT")

        assert waiting.result(20).fetchone() == (3,)
        other.execute("COMMIT")


def test_large_answers_and_copies_go_through(connect: Connect, admin: psycopg.Connection):
    connection = connect()
    large = "x" * 3_000_000
    assert connection.execute("SELECT %s", (large,)).fetchone() == (large,)
    with connection.cursor().copy("COPY public.note FROM STDIN") as copy:
        for number in range(1000):
            copy.write_row((number,))

    assert pid_of(connection) != pid_of(connection)
    assert connection.execute("SELECT count(*) FROM public.note").fetchone() == (1000,)


def test_several_requests_may_be_sent_before_the_first_answer(connect: Connect):
    connection = connect()
    with connection.pipeline():
        cursors = [connection.execute("SELECT %s::integer", (n,)) for n in range(50)]

    assert [cursor.fetchone() for cursor in cursors] == [(n,) for n in range(50)]


def test_a_client_that_leaves_in_a_transaction_leaves_nothing_of_it(
    connect: Connect, admin: psycopg.Connection, rotation: Rotation, until
):
    connection = connect()
    connection.execute("BEGIN")
    connection.execute("INSERT INTO public.note VALUES (1)")
    pid = pid_of(connection)
    connection.close()

    until(
        lambda: not admin.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchall()
    )

    other = connect()
    assert all(pid_of(other) != pid for _ in range(6))
    assert admin.execute("SELECT count(*) FROM public.note").fetchone() == (0,)


def test_a_client_whose_server_connection_dies_is_closed_and_the_next_gets_another(
    connect: Connect, admin: psycopg.Connection
):
    connection = connect()
    connection.execute("BEGIN")
    admin.execute("SELECT pg_terminate_backend(%s)", (pid_of(connection),))

    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")

    assert connection.closed
    assert pid_of(connect())


def test_a_cancel_reaches_the_statement_of_the_client_that_sent_it(connect: Connect, until, admin):
    connection, other = connect(), connect()
    with ThreadPoolExecutor(1) as threads:
        sleeping = threads.submit(connection.execute, "SELECT pg_sleep(60)")
        until(
            lambda: admin.execute(
                "SELECT FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'"
            ).fetchall()
        )

        connection.cancel_safe(timeout=10)

        with pytest.raises(psycopg.errors.QueryCanceled):
            sleeping.result(20)
    assert pid_of(connection)
    assert pid_of(other)


def test_the_server_introduces_itself_and_knows_what_the_client_sent(
    connect: Connect, admin: psycopg.Connection
):
    connection = connect(application_name="asked", client_encoding="LATIN1")

    assert connection.execute("SHOW application_name").fetchone() == ("asked",)
    assert connection.info.parameter_status("client_encoding") == "LATIN1"
    assert connection.info.server_version == admin.info.server_version


@pytest.mark.parametrize(
    "parameters",
    [
        {"options": "-c statement_timeout=5s"},
        {"options": "-c search_path=elsewhere"},
        {"replication": "database"},
    ],
)
def test_a_start_up_parameter_that_a_pooler_does_not_know_is_refused(
    connect: Connect, parameters: dict[str, str]
):
    with pytest.raises(psycopg.OperationalError) as refused:
        connect(**parameters)

    assert f"unsupported startup parameter: {next(iter(parameters))}" in str(refused.value)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("PREPARE mine AS SELECT 1", "prepared statement mine"),
        ("SELECT pg_advisory_lock(3, 4)", "advisory lock (3, 4)"),
        ("LISTEN news", "LISTEN news"),
        ("SET search_path = elsewhere", "SET search_path = elsewhere"),
        ("SET synchronous_commit = off", "SET synchronous_commit = off"),
        ("SET statement_timeout = 5000", "SET statement_timeout = 5000"),
        ("SET lamplighter.now = 5", "SET lamplighter.now = 5"),
        ("SET ROLE pg_monitor", "SET ROLE pg_monitor"),
        ("CREATE TEMPORARY TABLE mine ()", "temporary table mine"),
        ("DECLARE mine CURSOR WITH HOLD FOR SELECT 1", "cursor mine"),
    ],
)
def test_what_is_left_in_a_session_is_found(
    rotation: Rotation, connect: Connect, statement: str, what: str
):
    connection = connect()
    pid_of(connection)
    connection.execute(statement)

    (leak,) = rotation.leaks()

    assert leak.what == what
    assert leak.statements == (statement,)
    with pytest.raises(AssertionError, match="not left clean"):
        rotation.verify()


def test_a_statement_that_the_driver_prepares_is_left_behind_and_found(
    rotation: Rotation, connect: Connect
):
    connection = connect()
    connection.prepare_threshold = 5  # None, as the engine has it, also overrules `prepare`
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        connection.execute("SELECT 1", prepare=True)

    assert len(found(rotation)) == 1
    assert "prepared statement" in found(rotation)[0]


def test_what_is_left_is_seen_by_the_next_and_told_once(rotation: Rotation, connect: Connect):
    connection = connect()
    connection.execute("SET statement_timeout = 5000")
    seen = set[object]()
    for _ in range(500):  # the connection is looked at before it is lent again, which takes a while
        seen.add(connection.execute("SHOW statement_timeout").fetchone())
        if len(seen) > 1:
            break

    assert seen == {("0",), ("5s",)}
    assert found(rotation) == ["SET statement_timeout = 5000"]


def test_what_ends_with_its_transaction_is_no_leak(rotation: Rotation, connect: Connect):
    connection = connect()
    for _ in range(4):
        with connection.transaction():
            connection.execute(
                "SELECT pg_advisory_xact_lock(1), set_config('search_path', 'elsewhere', true), "
                "set_config('lamplighter.now', '5', true)"
            )

    assert rotation.leaks() == []
    rotation.verify()


def test_without_two_transactions_nothing_is_proven(rotation: Rotation, connect: Connect):
    pid_of(connect())

    with pytest.raises(AssertionError, match="nothing is proven"):
        rotation.verify()


async def test_a_store_that_listens_all_the_same_works_and_only_its_ear_is_found(
    rotation: Rotation, store_url: str
):
    engine = open_store(rotation.through(store_url))
    await engine.open()
    try:
        assert not await engine.wakeup.wait(["queue"], 0.2)
        assert await engine.inspector.counts() is not None
        await engine.wakeup.notify("queue")
        assert await engine.wakeup.wait(["queue"], 5)
    finally:
        await engine.close()

    assert all(what.startswith("LISTEN lamplighter_") for what in found(rotation))
    assert found(rotation)


async def test_a_store_opens_where_the_pooler_does_not_say_whether_the_server_writes(
    rotation: Rotation, store_url: str, monkeypatch: pytest.MonkeyPatch
):
    # Then the driver has to ask, each time it connects.
    told = [name for name in session.REPORTED if name not in WRITES]
    monkeypatch.setattr(session, "REPORTED", told)
    engine = open_store(with_parts(rotation.through(store_url), listen="off"))
    await engine.open()
    try:
        assert await engine.inspector.counts() is not None
    finally:
        await engine.close()

    rotation.verify()
