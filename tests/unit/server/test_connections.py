"""Connections of `lamplighter serve`: what is read of them, and when they are closed."""

import json
import re
import signal
import socket

import pytest

from lamplighter.server.connections import AHEAD, HEAD
from tests.unit.server.test_serve import DEADLINE, ask, rest, serving

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
POST = (
    b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n"
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("connections")) as (_, address):
        yield address


def sent(address, *texts: bytes) -> bytes:
    """Send texts on one connection, and read until it is closed."""
    with socket.create_connection((address.hostname, address.port), DEADLINE) as connection:
        try:
            for text in texts:
                connection.sendall(text)
        except OSError:  # closed before all was sent
            pass
        return rest(connection)


def statuses(said: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", said)]


def test_requests_that_were_sent_ahead_are_answered_in_order(address):
    unknown = LAST.replace(b"/healthz", b"/nothing")
    assert statuses(sent(address, GET + GET + unknown)) == [200, 200, 404]


def test_one_connection_serves_many_requests(address):
    with socket.create_connection((address.hostname, address.port), DEADLINE) as connection:
        for _ in range(20):
            connection.sendall(GET)
            said = b""
            while not said.endswith(b"}"):
                said += connection.recv(4096)
            assert statuses(said) == [200]


def test_whoever_sends_far_too_many_requests_ahead_is_cut_off(address):
    said = statuses(sent(address, GET * 5_000 + LAST))
    assert len(said) <= AHEAD + 2
    assert ask(address, "GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
    "begin",
    [
        b"GET /" + b"x" * HEAD,
        b"GET / HTTP/1.1\r\nHost: " + b"x" * HEAD,
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (HEAD // 6),
    ],
    ids=["address", "header", "headers"],
)
def test_a_head_without_an_end_is_not_gathered(address, begin):
    said = sent(address, begin, b"x" * HEAD)
    assert statuses(said) in ([431], [])
    assert not said or b'"code":"headers-too-large"' in said
    assert ask(address, "GET", "/healthz")[0] == 200


def test_trailers_are_not_gathered(address):
    body = b"\r\n2\r\n{}\r\n0\r\n"
    said = sent(address, POST + body + b"a: " + b"x" * HEAD, *[b"x" * HEAD] * 8)
    assert 200 not in statuses(said)
    assert ask(address, "GET", "/healthz")[0] == 200


def test_a_trailer_is_no_header(address):
    body = b'{"type": "nobody"}'
    chunks = b"Connection: close\r\n\r\n%x\r\n%b\r\n0\r\nHost: elsewhere\r\n\r\n"
    said = sent(address, POST + chunks % (len(body), body))
    assert statuses(said) == [422]
    assert b"unknown-type" in said


@pytest.mark.parametrize("text", [b"\0\0\0\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"HELLO\r\n\r\n"])
def test_what_is_no_request_is_refused(address, text):
    said = sent(address, text)
    assert statuses(said) == [400]
    assert b"content-type: application/problem+json" in said
    assert b'"code":"malformed-request"' in said


def test_an_address_that_the_parser_cannot_count_is_too_long(address):
    said = sent(address, b"GET /v1/jobs?status=" + b"x" * 65_535 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    assert statuses(said) == [414]
    assert b'"code":"url-too-long"' in said


def test_who_asks_for_another_protocol_is_answered_in_this_one_and_not_logged(tmp_path):
    asking = b"Upgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n"
    with serving(tmp_path) as (process, address):
        assert statuses(sent(address, GET[:-2] + asking)) == [200]
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
        assert process.stderr.read() == ""


LISTEN = b"GET /v1/events?topic=queues HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_at_the_cap_it_says_that_it_lives_and_that_it_is_busy(tmp_path):
    with serving(tmp_path, LAMPLIGHTER_HTTP_CONNECTIONS="2") as (process, address):
        busy = [socket.create_connection((address.hostname, address.port)) for _ in range(2)]
        for each in busy:
            each.settimeout(DEADLINE)
            each.sendall(LISTEN)
            assert b"200 OK" in each.recv(4096)
        assert statuses(sent(address, GET)) == [200]
        refused = [sent(address, GET.replace(b"/healthz", b"/v1/jobs")) for _ in range(20)]
        assert {statuses(each)[0] for each in refused} == {503}
        head, _, body = refused[0].lower().partition(b"\r\n\r\n")
        assert b"content-type: application/problem+json" in head
        assert b"retry-after: 1" in head
        assert json.loads(body)["code"] == "too-busy"
        for each in busy:
            each.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
        told = process.stderr.read().splitlines()
        assert 1 <= len([line for line in told if "connections are in use" in line]) <= 3
