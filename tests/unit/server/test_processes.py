"""`lamplighter serve --processes`: several at one address, replaced when they die."""

import http.client
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Self

import pytest

from lamplighter import runtime
from lamplighter.server import processes
from tests.unit.server.test_serve import DEADLINE, PROGRAM, ask, rest, serving, wait_until_closed
from tests.unit.worker.fakes import Clock


def children(pid: int) -> set[int]:
    """Give the living child processes of a process."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.add(int(stat.parent.name))
    return found


def listeners(port: int) -> int:
    """Count the sockets that listen on a port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


def until(condition) -> None:
    end = runtime.monotonic() + DEADLINE
    while not condition():
        assert runtime.monotonic() < end, "waited in vain"
        time.sleep(0.01)


class Crowd:
    """Callers that ask all the time, and count what they are answered."""

    def __init__(self, address, count: int = 4) -> None:
        self.answers = 0
        self.wrong: list[object] = []
        self.broken: list[tuple[float, float]] = []
        """When requests began and broke whose process died under them, or before it took them."""
        self._address = address
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(count)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._stop.is_set():
            began = runtime.monotonic()
            try:
                status, _ = ask(self._address, "GET", "/healthz")
            except (OSError, http.client.HTTPException):
                self.broken.append((began, runtime.monotonic()))
                continue
            self.answers += 1
            if status != 200:
                self.wrong.append(status)


@pytest.fixture
def program(tmp_path):
    (tmp_path / "shop.py").write_text(PROGRAM)
    return tmp_path


def test_several_processes_serve_one_address_and_read_each_others_cursors(program):
    with serving(program, "shop:app", "--processes", "3") as (process, address):
        assert len(children(process.pid)) == 3
        for number in range(6):
            body = {"type": "greet", "arguments": {"name": str(number)}, "delay": 3600}
            assert ask(address, "POST", "/v1/jobs", body)[0] == 201
        seen, cursor = set(), ""
        # Every request comes on a connection of its own, so that all processes have their turn.
        while cursor is not None:
            more = f"&cursor={cursor}" if cursor else ""
            status, page = ask(address, "GET", f"/v1/jobs?limit=1{more}")
            assert status == 200, page
            seen |= {job["id"] for job in page["jobs"]}
            cursor = page["next"]
        assert len(seen) == 6
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
        assert process.stderr.read() == ""


def exists(pid: int) -> bool:
    """Tell whether a process has not been reaped yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_that_is_killed_is_replaced_and_requests_are_served_on(tmp_path):
    with serving(tmp_path, "--processes", "2") as (process, address):
        before, deaths = children(process.pid), []
        with Crowd(address) as crowd:
            for _ in range(2):
                victim = min(children(process.pid))
                killed_at = runtime.monotonic()
                os.kill(victim, signal.SIGKILL)
                # Its threads end after it, and the socket with the last of them: then it is reaped.
                until(lambda victim=victim: not exists(victim))
                deaths.append((killed_at, runtime.monotonic()))
                answered = crowd.answers
                until(lambda answered=answered: crowd.answers > answered + 50)
                until(lambda: listeners(address.port) == 2)
        assert not crowd.wrong
        # A request may die with its process; those that come after it are not disturbed.
        for began, broke in crowd.broken:
            assert any(began <= gone_at and broke >= killed_at for killed_at, gone_at in deaths)
        assert children(process.pid) != before
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
        errors = process.stderr.read()
    assert errors.count("has ended by signal 9; another one is started") == 2


def test_told_to_stop_all_finish_what_is_under_way(tmp_path):
    with serving(tmp_path, "--processes", "2") as (process, address):
        pids = children(process.pid)
        body = b'{"type": "nobody"}'
        opened = []
        for _ in range(6):
            connection = socket.create_connection((address.hostname, address.port), DEADLINE)
            connection.sendall(
                b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            assert connection.recv(1024).startswith(b"HTTP/1.1 100")
            opened.append(connection)
        process.send_signal(signal.SIGTERM)
        wait_until_closed(address)
        for connection in opened:
            connection.sendall(body)
            assert b"unknown-type" in rest(connection)
            connection.close()
        assert process.wait(DEADLINE) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("count", ["1", "2"])
def test_told_twice_they_end_at_once(tmp_path, count):
    with (
        serving(tmp_path, "--processes", count) as (process, address),
        socket.create_connection((address.hostname, address.port), DEADLINE) as connection,
    ):
        connection.sendall(
            b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n"
        )
        assert connection.recv(1024).startswith(b"HTTP/1.1 100")
        process.send_signal(signal.SIGTERM)
        wait_until_closed(address)
        begun = runtime.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
        # The body may take ten seconds to come, and the grace has thirty.
        assert runtime.monotonic() - begun < 5


def test_when_the_parent_is_killed_the_others_end_too(tmp_path):
    with serving(tmp_path, "--processes", "2") as (process, address):
        pids = children(process.pid)
        process.kill()
        process.wait(DEADLINE)
        until(lambda: not any(running(pid) for pid in pids))
        with pytest.raises(OSError, match=r"refused"):
            ask(address, "GET", "/healthz")


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_keeps_all_from_starting_is_told_once(tmp_path):
    settings = {"LAMPLIGHTER_URL": "sqlite:///no/such/folder/jobs.db"}
    with (
        pytest.raises(AssertionError, match="the folder") as raised,
        serving(tmp_path, "--processes", "3", **settings),
    ):
        pass
    assert str(raised.value).count("error: ") == 1
    assert "Traceback" not in str(raised.value)


def test_an_address_that_is_taken_is_named_though_it_could_be_shared(tmp_path):
    with serving(tmp_path, "--processes", "2") as (_, address):
        with (
            pytest.raises(AssertionError, match="cannot be used"),
            serving(tmp_path, "--processes", "2", "--port", str(address.port)),
        ):
            pass
        assert ask(address, "GET", "/healthz")[0] == 200


def test_a_listener_is_let_go_at_the_end(tmp_path):
    with serving(tmp_path, "--processes", "2") as (process, address):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=DEADLINE)
        connection.request("GET", "/v1/events?topic=queues")
        response = connection.getresponse()
        assert response.readline() == b"retry: 2000\n"
        process.send_signal(signal.SIGTERM)
        told = response.read().decode()
        connection.close()
        assert json.loads(told.partition("data: ")[2].partition("\n")[0]) == {"queues": []}
        assert process.wait(DEADLINE) == 0


def test_one_that_dies_again_and_again_is_replaced_ever_more_slowly():
    told = []
    parent = processes.Parent(2, lambda _: 0, grace=1, tell=told.append)
    pauses = []
    with runtime.install(Clock()):
        now = runtime.monotonic()
        for pid in range(12):
            parent._replace(processes.Child(pid, now, 0, ready=True), -9)
            pauses.append(parent._start_at - now)
        parent._replace(processes.Child(99, now - processes.LIVED - 1, 0, ready=True), 3)
        assert parent._start_at == now
    assert pauses[0] == pytest.approx(processes.BACKOFF.first)
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(processes.BACKOFF.longest)
    assert told[-1] == "the process 99 has ended with code 3; another one is started"
