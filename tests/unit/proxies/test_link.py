"""The link to a server breaks on demand, exactly where it is told to."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

import psycopg
import pytest

from lamplighter.connect import connect as open_store
from lamplighter.model.job import JobState
from lamplighter.model.lifecycle import settle_all
from lamplighter.model.outcome import Succeeded
from lamplighter.port.conformance.builders import claim_one, new_job
from tests.proxies.addresses import target_of, through
from tests.proxies.link import Link

Until = Callable[[Callable[[], object]], None]
SOON = 0.2
WRITE = "INSERT INTO public.note VALUES (%s)"


@pytest.fixture
def connect(link: Link, url: str) -> Iterator[Callable[[], psycopg.Connection]]:
    """Connect through the link; each statement commits by itself."""
    opened: list[psycopg.Connection] = []

    def one() -> psycopg.Connection:
        address = through(url, link.port)
        opened.append(psycopg.connect(address, autocommit=True, connect_timeout=5))
        return opened[-1]

    yield one
    for connection in opened:
        connection.close()


def notes(admin: psycopg.Connection) -> list[int]:
    return [n for (n,) in admin.execute("SELECT n FROM public.note ORDER BY n").fetchall()]


@contextmanager
def answering(word: bytes) -> Iterator[tuple[str, int]]:
    """A server that says one word to whoever connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    visitor, _ = server.accept()
                except OSError:
                    return
                with visitor:
                    visitor.sendall(word)
                    visitor.recv(1)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()
        server.shutdown(socket.SHUT_RDWR)


def word_of(link: Link) -> bytes:
    with socket.create_connection((link.host, link.port), timeout=5) as visitor:
        return visitor.recv(10)


def test_what_is_asked_and_answered_arrives_whole(connect):
    connection = connect()
    large = "x" * 3_000_000

    assert connection.execute("SELECT %s", (large,)).fetchone() == (large,)
    assert len(connection.execute("SELECT generate_series(1, 50000)").fetchall()) == 50_000


def test_an_answer_is_lost_after_the_commit(link, connect, admin):
    connection = connect()
    link.cut_replies(1)

    with pytest.raises(psycopg.OperationalError):
        connection.execute(WRITE, (1,))

    assert connection.closed
    assert notes(admin) == [1]
    (cut,) = link.cuts
    assert b"INSERT INTO public.note" in cut.request


def test_a_commit_is_cut_but_no_statement_before_it(link, connect, admin):
    connection = connect()
    link.cut_replies(1)

    connection.execute("BEGIN")
    connection.execute(WRITE, (1,))
    connection.execute(WRITE, (2,))
    with pytest.raises(psycopg.OperationalError):
        connection.execute("COMMIT")

    assert notes(admin) == [1, 2]
    assert b"COMMIT" in link.cuts[0].request


def test_a_request_that_failed_gets_its_answer_and_the_next_one_is_cut(link, connect):
    connection = connect()
    link.cut_replies(1)

    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("SELECT 1 / 0")
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 2")

    assert len(link.cuts) == 1


def test_only_requests_that_are_chosen_lose_their_answer(link, connect, admin):
    connection = connect()
    link.cut_replies(when=lambda request: b"INSERT" in request)

    assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError):
        connection.execute(WRITE, (1,))
    link.heal()
    connect().execute(WRITE, (2,))

    assert notes(admin) == [1, 2]
    assert len(link.cuts) == 1


def test_as_many_answers_are_lost_as_were_ordered(link, connect):
    link.cut_replies(3)
    for _ in range(3):
        connection = connect()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")

    assert connect().execute("SELECT 1").fetchone() == (1,)
    assert len(link.cuts) == 3


def test_the_same_seed_loses_the_same_answers(link, connect):
    def lost() -> list[int]:
        link.cut_replies(chance=0.3, seed=7)
        found: list[int] = []
        connection = connect()
        for number in range(30):
            try:
                connection.execute("SELECT 1")
            except psycopg.OperationalError:
                found.append(number)
                connection = connect()
        return found

    first = lost()

    assert first == lost()
    assert 0 < len(first) < 30


def test_answers_before_the_one_that_is_cut_arrive(link, connect):
    connection = connect()
    link.cut_replies(when=lambda request: b"SELECT 2" in request)

    with suppress(psycopg.OperationalError), connection.pipeline() as pipeline:
        first = connection.execute("SELECT 1")
        pipeline.sync()
        connection.execute("SELECT 2")

    assert first.fetchone() == (1,)
    assert connection.closed
    assert len(link.cuts) == 1


def test_without_knowing_the_protocol_no_answer_can_be_cut(url):
    with Link(target_of(url)) as link, pytest.raises(RuntimeError, match="wire"):
        link.cut_replies(1)


def test_while_it_hangs_nothing_moves_and_afterwards_all_goes_on(link, connect, url, admin):
    old = connect()
    link.hang()
    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(old.execute, WRITE, (1,))
        new = threads.submit(connect)
        with pytest.raises(TimeoutError):
            waiting.result(SOON)
        assert not new.done()
        assert notes(admin) == []

        link.heal()

        waiting.result(20)
        new.result(20).execute(WRITE, (2,))
    assert notes(admin) == [1, 2]


def test_an_answer_that_was_under_way_comes_after_the_link_is_healed(link, connect, admin, until):
    connection = connect()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(
            connection.execute, "INSERT INTO public.note SELECT 1 FROM pg_sleep(0.3)"
        )
        until(lambda: _runs(admin, "pg_sleep(0.3)"))
        link.hang()
        until(lambda: notes(admin) == [1])
        assert not waiting.done()

        link.heal()

        assert waiting.result(20).rowcount == 1


def test_what_hung_can_be_closed_instead_of_going_on(link, connect):
    old = connect()
    link.hang()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(old.execute, "SELECT 1")
        with pytest.raises(TimeoutError):
            waiting.result(SOON)

        link.heal(close=True)

        with pytest.raises(psycopg.OperationalError):
            waiting.result(20)
    assert connect().execute("SELECT 1").fetchone() == (1,)


def test_while_it_refuses_nobody_gets_in_and_the_port_stays_its_own(link, connect):
    old = connect()
    port = link.port
    link.refuse()

    with pytest.raises(psycopg.OperationalError):
        old.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="refused"):
        connect()

    link.heal()
    assert connect().execute("SELECT 1").fetchone() == (1,)
    assert link.port == port


def test_all_connections_can_be_cut_at_once(link, connect, until):
    old = [connect() for _ in range(5)]
    link.cut_all()

    for connection in old:
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    assert connect().execute("SELECT 1").fetchone() == (1,)
    until(lambda: link.connections == 1)


def test_new_connections_go_to_the_new_target_and_old_ones_stay():
    with (
        answering(b"old") as old,
        answering(b"new") as new,
        Link(old) as link,
        socket.create_connection((link.host, link.port), timeout=5) as visitor,
    ):
        assert visitor.recv(10) == b"old"
        link.target = new

        assert word_of(link) == b"new"
        assert link.connections >= 1
        visitor.settimeout(SOON)
        with pytest.raises(TimeoutError):
            visitor.recv(1)


def test_without_a_server_behind_it_a_client_is_sent_away():
    with closing(socket.socket()) as nobody:
        nobody.bind(("127.0.0.1", 0))
        with Link(nobody.getsockname()) as link:
            assert word_of(link) == b""


async def test_a_store_repeats_what_lost_its_answer(link, store_url):
    engine = open_store(through(store_url, link.port))
    await engine.open()
    try:
        link.cut_replies(1, when=lambda request: b'"submit_' in request)
        await engine.jobs.submit([new_job()])
        link.cut_replies(1, when=lambda request: b'"claim"' in request)
        claim = await claim_one(engine)
        link.cut_replies(1, when=lambda request: b'"settle"' in request)
        (settled,) = await engine.jobs.settle(settle_all([claim], Succeeded()))
    finally:
        await engine.close()

    assert settled.state is JobState.SUCCEEDED
    assert len(link.cuts) == 3


def test_other_processes_may_use_it(link, url):
    script = (
        "import psycopg, sys\n"
        "with psycopg.connect(sys.argv[1]) as connection:\n"
        "    print(connection.execute('SELECT 7').fetchone())"
    )
    said = subprocess.run(
        [sys.executable, "-c", script, through(url, link.port)],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    ).stdout

    assert said.strip() == "(7,)"


def _runs(admin: psycopg.Connection, text: str) -> bool:
    found = admin.execute(
        "SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s "
        "AND pid <> pg_backend_pid()",
        (f"%{text}%",),
    )
    return found.fetchone() is not None
