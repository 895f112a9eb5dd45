"""The load of the HTTP benchmark, on a small server, and what is made of its figures."""

import contextlib
import socketserver
import threading
import time

import pytest

from benchmarks.http.load import Load, Order, Refused, carry_out
from benchmarks.http.page import Found, Run, Taken, musts, written

ANSWER = b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}"
REQUEST = "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"


@contextlib.contextmanager
def server(*parts: bytes):
    """Answer each request with these parts, each sent alone; gives the port."""

    class Conversation(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                while line := self.rfile.readline():
                    if line == b"\r\n":
                        for part in parts:
                            self.wfile.write(part)
                            time.sleep(0.001)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Conversation) as listening:
        threading.Thread(target=listening.serve_forever, args=(0.01,)).start()
        yield listening.server_address[1]
        listening.shutdown()


def order(port: int, **more) -> Order:
    usual = {"connections": 3, "seconds": 0.2}
    return Order(host="127.0.0.1", port=port, request=REQUEST, **{**usual, **more})


def test_each_connection_sends_when_it_was_answered():
    with server(ANSWER[:9], ANSWER[9:]) as port:
        load = carry_out(order(port))
    assert load.requests > 10
    assert 0 < load.p50_ms <= load.p99_ms <= load.longest_ms < 1000
    assert load.seconds >= 0.2


def test_a_steady_load_sends_just_so_many():
    with server(ANSWER) as port:
        load = carry_out(order(port, rate=200.0, seconds=0.5))
    assert load.requests == 100


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 500 Oh\r\ncontent-length: 4\r\n\r\nno!!", "no!!"),
        (b"HTTP/1.1 201 Created\r\n\r\n", "without a length"),
    ],
)
def test_what_is_not_taken_is_an_error(answer, told):
    with server(answer) as port, pytest.raises(Refused, match=told):
        carry_out(order(port))


def taken(per_s: float, cpu_us: float, p99_ms: float = 5.0, jobs: int = 1000) -> Taken:
    load = Load(
        requests=jobs, seconds=jobs / per_s, p50_ms=1, p99_ms=p99_ms, longest_ms=9, cpu_s=0.1
    )
    return Taken(
        load, jobs, {"service": int(cpu_us * 900 * jobs), "store": int(cpu_us * 100 * jobs)}
    )


def test_what_has_to_be_so_is_said_of_each_peer():
    run = Run(
        found=[
            Found("Ours", [taken(9000, 100)], taken(4500, 120, p99_ms=21.0)),
            Found("Fast", [taken(3100, 290)]),
            Found("Slow", [taken(1000, 900)]),
        ],
        batches=[taken(31_000, 20)],
        server="Valkey",
        others=0.1,
        connections=64,
        processes=1,
    )
    kept = [must.kept for must in musts(run)]
    assert kept == [False, False, True, True, True, False]
    text = written(run)
    assert "| Slow |" in text
    assert "9.00 ×, at least 3: ok" in text
