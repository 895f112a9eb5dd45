"""Whoever does not read what was asked for loses the connection."""

import http.client
import socket
import time
from pathlib import Path

from lamplighter import runtime
from tests.unit.server.test_processes import until
from tests.unit.server.test_serve import DEADLINE, ask, serving

ASKED = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"


def sockets(pid: int) -> int:
    """Count the open sockets of a process."""
    count = 0
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            count += str(file.readlink()).startswith("socket:")
        except OSError:
            continue
    return count


def slow(address) -> socket.socket:
    """Connect with a buffer so small that an answer does not fit into it."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(DEADLINE)
    made.connect((address.hostname, address.port))
    return made


def test_an_answer_that_is_not_read_ends_the_connection(tmp_path):
    settings = {"LAMPLIGHTER_HTTP_WRITE_TIMEOUT": "0.5"}
    with serving(tmp_path, **settings) as (process, address):
        before = sockets(process.pid)
        with slow(address) as connection:
            for _ in range(16):
                connection.sendall(ASKED)
            until(lambda: sockets(process.pid) > before)
            until(lambda: sockets(process.pid) == before)
        assert ask(address, "GET", "/healthz")[0] == 200


def test_who_reads_slowly_but_reads_gets_all_of_it(tmp_path):
    settings = {"LAMPLIGHTER_HTTP_WRITE_TIMEOUT": "1"}
    with serving(tmp_path, **settings) as (_, address):
        whole = len(ask_raw(address))
        start = runtime.monotonic()
        read = 0
        with slow(address) as connection:
            connection.sendall(ASKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            while more := connection.recv(1024):
                read += len(more)
                # Slower than the limit in all, never slower than it in between.
                time.sleep(max(0.0, start + 2.5 * read / whole - runtime.monotonic()))
        assert read == whole


def ask_raw(address) -> bytes:
    with socket.create_connection((address.hostname, address.port), DEADLINE) as connection:
        connection.sendall(ASKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        read = b""
        while more := connection.recv(65_536):
            read += more
        return read


def listening(address) -> http.client.HTTPConnection | None:
    """Listen to changes; None: there is no room."""
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=DEADLINE)
    connection.request("GET", "/v1/events?topic=queues")
    response = connection.getresponse()
    if response.status == 200:
        assert response.readline() == b"retry: 2000\n"
        # It keeps the connection open for as long as it lives.
        connection.response = response
        return connection
    response.close()
    connection.close()
    return None


def test_a_listener_who_goes_makes_room(tmp_path):
    settings = {"LAMPLIGHTER_HTTP_EVENTS_EACH": "1"}
    with serving(tmp_path, **settings) as (_, address):
        first = listening(address)
        assert first is not None
        assert listening(address) is None
        first.response.close()
        first.close()
        found: list[http.client.HTTPConnection] = []

        def room() -> bool:
            found.extend(filter(None, [listening(address)]))
            return bool(found)

        until(room)
        found[0].response.close()
        found[0].close()
