"""`lamplighter serve` as a process, spoken to over the network."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from lamplighter import runtime
from lamplighter.cli.main import main

KEY = "k" * 32
PROGRAM = """
from lamplighter import App

app = App("sqlite:///jobs.db")

@app.job
async def greet(name: str) -> str:
    return f"Hello, {name}"
"""
DEADLINE = 30.0


@contextmanager
def serving(folder, *arguments: str, **settings: str):
    """Start the service on a free port; gives the process and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lamplighter", "serve", "--port", "0", "--json", *arguments],
        cwd=folder,
        env={**os.environ, "LAMPLIGHTER_URL": "sqlite:///jobs.db", **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield process, urlsplit(json.loads(line)["url"])
    finally:
        process.kill()
        process.communicate()


def ask(address, method: str, path: str, body: object = None, **headers: str):
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=DEADLINE)
    try:
        sent = None if body is None else json.dumps(body)
        kind = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, path, sent, {**kind, **headers})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def closed_after(address, sent: bytes) -> float:
    """Send the beginning of a request; tell after how many seconds the connection is closed."""
    start = runtime.monotonic()
    with socket.create_connection((address.hostname, address.port), DEADLINE) as connection:
        connection.sendall(sent)
        rest(connection)
    return runtime.monotonic() - start


def rest(connection: socket.socket) -> bytes:
    """Read until the other side has closed the connection."""
    read = b""
    with suppress(ConnectionResetError):  # closed with something unread
        while more := connection.recv(65_536):
            read += more
    return read


def wait_until_closed(address) -> None:
    """Knock until nobody opens."""
    end = runtime.monotonic() + DEADLINE
    while runtime.monotonic() < end:
        try:
            socket.create_connection((address.hostname, address.port), 1).close()
        except OSError:
            return
    raise AssertionError("it still takes connections")


def test_a_job_goes_in_and_comes_out_over_the_network(tmp_path):
    (tmp_path / "shop.py").write_text(PROGRAM)
    with serving(tmp_path, "shop:app") as (process, address):
        status, created = ask(
            address,
            "POST",
            "/v1/jobs",
            {"type": "greet", "arguments": {"name": "Ada"}, "delay": 3600},
        )
        assert status == 201
        assert ask(address, "GET", f"/v1/jobs/{created['id']}")[1]["status"] == "scheduled"
        assert ask(address, "DELETE", f"/v1/jobs/{created['id']}")[0] == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
        assert process.stderr.read() == ""


def test_an_id_with_a_slash_travels_over_the_network(tmp_path):
    (tmp_path / "shop.py").write_text(PROGRAM)
    with serving(tmp_path, "shop:app") as (_, address):
        body = {"id": "t-1/daily", "type": "greet", "arguments": {"name": "Ada"}, "every": 60}
        assert ask(address, "POST", "/v1/schedules", body)[0] == 201
        for path in ("/v1/schedules/t-1%2Fdaily", "/v1/schedules/t-1%2fdaily"):
            status, found = ask(address, "GET", path)
            assert (status, found["id"]) == (200, "t-1/daily")
        assert ask(address, "GET", "/v1/schedules/t-1/daily")[1]["code"] == "unknown-path"


def test_told_to_stop_it_finishes_what_is_under_way(tmp_path):
    with serving(tmp_path) as (process, address):
        with socket.create_connection((address.hostname, address.port), DEADLINE) as connection:
            body = b'{"type": "nobody"}'
            connection.sendall(
                b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            # It has begun: the service asks for the body.
            assert connection.recv(1024).startswith(b"HTTP/1.1 100")
            process.send_signal(signal.SIGTERM)
            wait_until_closed(address)
            connection.sendall(body)
            assert b"unknown-type" in rest(connection)
        assert process.wait(DEADLINE) == 0


def test_with_a_key_file_a_key_is_needed(tmp_path):
    (tmp_path / "keys").write_text(KEY)
    with serving(tmp_path, "--key-file", "keys", "--host", "0.0.0.0") as (_, address):
        here = address._replace(netloc=f"127.0.0.1:{address.port}")
        assert ask(here, "GET", "/healthz") == (200, {"status": "ok"})
        assert ask(here, "GET", "/v1/jobs")[1]["code"] == "missing-token"
        assert ask(here, "GET", "/v1/jobs", Authorization=f"Bearer {KEY}")[0] == 200


def test_sockets_that_send_nothing_are_closed(tmp_path):
    with serving(tmp_path, LAMPLIGHTER_HTTP_HEADER_TIMEOUT="0.5") as (_, address):
        assert closed_after(address, b"") < DEADLINE / 2
        assert closed_after(address, b"GET /healthz HTTP/1.1\r\nHost: local") < DEADLINE / 2


def test_many_silent_sockets_keep_nobody_out(tmp_path):
    limits = {"LAMPLIGHTER_HTTP_CONNECTIONS": "20", "LAMPLIGHTER_HTTP_HEADER_TIMEOUT": "3000"}
    with serving(tmp_path, **limits) as (_, address):
        opened = [socket.create_connection((address.hostname, address.port)) for _ in range(100)]
        try:
            for connection in opened:
                with suppress(OSError):  # closed already, as too old
                    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
            for _ in range(10):
                assert ask(address, "GET", "/healthz")[0] == 200
            assert rest(opened[0]) == b""
        finally:
            for connection in opened:
                connection.close()


def test_a_large_body_is_refused_while_it_is_being_sent(tmp_path):
    with serving(tmp_path) as (_, address):
        with socket.create_connection((address.hostname, address.port), DEADLINE) as connection:
            connection.sendall(
                b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 52428800\r\n\r\n" + b" " * 65_536
            )
            assert connection.recv(65_536).startswith(b"HTTP/1.1 413")
        assert ask(address, "GET", "/healthz")[0] == 200


def test_an_address_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(main, ["serve", "--port", port])
    assert result.exit_code == 1
    assert f"127.0.0.1:{port}" in result.stderr
    assert "--port" in result.stderr


def test_an_address_beyond_this_machine_needs_keys():
    result = CliRunner().invoke(main, ["serve", "--host", "0.0.0.0"])
    assert result.exit_code == 1
    assert "authentication" in result.stderr
    assert "--key-file" in result.stderr


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"starlette", "uvicorn", "jsonschema_rs"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import lamplighter
from lamplighter.cli.main import main
main()
"""


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [(["serve"], 1, "pip install '.[server]'"), (["--help"], 0, "")],
)
def test_without_the_extra_everything_else_works(tmp_path, arguments, code, told):
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == code, ended.stderr
    assert told in ended.stderr
