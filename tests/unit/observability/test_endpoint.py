"""The little responder of a worker: one path, short requests, few connections."""

import asyncio
import contextlib

import pytest

from lamplighter.model.errors import InvalidOption
from lamplighter.observability import endpoint
from lamplighter.observability.endpoint import Endpoint, bound


@pytest.fixture
async def served():
    async def render() -> str:
        return "up 1\n"

    made = Endpoint(bound("127.0.0.1", 0), render)
    await made.start()
    yield made
    await made.close()


def port_of(served: Endpoint) -> int:
    return int(served.url.split(":")[2].split("/")[0])


async def ask(served: Endpoint, request: bytes) -> tuple[bytes, bytes]:
    """Send this, and read until it hangs up: head and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(served))
    try:
        writer.write(request)
        said = await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()
    head, _, body = said.partition(b"\r\n\r\n")
    return head, body


async def test_metrics_are_given_and_the_connection_is_closed(served):
    head, body = await ask(served, b"GET /metrics HTTP/1.1\r\nHost: localhost:1\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"text/plain; version=0.0.4" in head
    assert b"Content-Length: 5" in head
    assert b"Connection: close" in head
    assert body == b"up 1\n"


async def test_a_query_does_no_harm_and_head_has_no_body(served):
    _, body = await ask(served, b"GET /metrics?x=1 HTTP/1.0\r\n\r\n")
    assert body == b"up 1\n"
    head, body = await ask(served, b"HEAD /metrics HTTP/1.1\r\n\r\n")
    assert b"200 OK" in head
    assert b"Content-Length: 5" in head
    assert body == b""


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /metrics/../etc HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi", b"405"),
        (b"hello\r\n\r\n", b"400"),
        (b"GET /metrics SMTP\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x00\r\n\r\n", b"400"),
    ],
)
async def test_everything_else_is_refused(served, request_, status):
    head, _ = await ask(served, request_)
    assert head.split(b" ")[1] == status


@pytest.mark.parametrize("host", [b"evil.example", b"127.0.0.1.evil.example:80", b"", b"["])
async def test_on_the_loopback_no_other_name_is_served(served, host):
    for named in (b"Host: " + host, b"Host: localhost\r\nhost:" + host):
        head, body = await ask(served, b"GET /metrics HTTP/1.1\r\n" + named + b"\r\n\r\n")
        assert head.split(b" ")[1] == b"421"
        assert b"127.0.0.1" in body


async def test_elsewhere_any_name_is_served(served):
    made = Endpoint(bound("0.0.0.0", 0), served._render)
    await made.start()
    head, _ = await ask(made, b"GET /metrics HTTP/1.1\r\nHost: worker-1:9\r\n\r\n")
    await made.close()
    assert b"200 OK" in head


async def test_a_long_head_is_not_read_to_its_end(served):
    head = b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 1_000_000
    # What it has not read may reset the connection before the answer is seen.
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        assert (await ask(served, head + b"\r\n\r\n"))[0].startswith(b"HTTP/1.1 400")
    assert b"200 OK" in (await ask(served, b"GET /metrics HTTP/1.1\r\n\r\n"))[0]


async def test_who_sends_nothing_is_let_go(served, monkeypatch):
    monkeypatch.setattr(endpoint, "SECONDS", 0.05)
    head, body = await ask(served, b"GET /metrics HT")
    assert (head, body) == (b"", b"")


async def test_one_connection_too_many_is_closed_and_the_others_are_served(served, monkeypatch):
    monkeypatch.setattr(endpoint, "MOST", 2)
    silent = [await asyncio.open_connection("127.0.0.1", port_of(served)) for _ in range(2)]
    # Closed before it was read: the system may say so more rudely.
    with contextlib.suppress(ConnectionResetError):
        assert await ask(served, b"GET /metrics HTTP/1.1\r\n\r\n") == (b"", b"")
    for reader, writer in silent:
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert b"200 OK" in await asyncio.wait_for(reader.read(), 10)
        writer.close()


async def test_metrics_that_cannot_be_written_are_an_error_of_the_server(caplog):
    async def render() -> str:
        raise RuntimeError("no")

    made = Endpoint(bound("127.0.0.1", 0), render)
    await made.start()
    head, body = await ask(made, b"GET /metrics HTTP/1.1\r\n\r\n")
    await made.close()
    assert b"500" in head
    assert b"RuntimeError" not in body
    assert "metrics could not be written" in caplog.text


def test_a_port_in_use_is_refused_with_a_remedy():
    with bound("127.0.0.1", 0) as taken, pytest.raises(InvalidOption) as refused:
        bound("127.0.0.1", taken.getsockname()[1])
    assert "--metrics-port" in refused.value.hint
