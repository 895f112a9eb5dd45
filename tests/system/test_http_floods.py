"""Floods against a real `lamplighter serve`: refused with a reason, while others are served as ever
and the service's memory stays as it was.

`LAMPLIGHTER_FLOOD=1`, as `make hostile` sets it, floods in full, and compares how long others wait
with how long they waited before. It needs a machine that has nothing else to do.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.figures import percentile

ROOT = Path(__file__).parents[2]
FULL = os.environ.get("LAMPLIGHTER_FLOOD") == "1"
SOCKETS = 2_000 if FULL else 300
CONNECTIONS = 1_000 if FULL else 150
"""What the service takes at once; the default in full."""
SECONDS = 5.0 if FULL else 0.5
"""How long each large body is sent again and again, several at once."""
AT_ONCE = 4
MEMORY = (AT_ONCE * 16 + 32) * 2**20
"""Bytes by which the service may grow, however much is sent: by default a batch may have 16 MiB."""
CALM_MS = 250.0
"""What the 99th percentile of others may be in any case: two cores serve, flood and measure."""
CALM_TIMES = 5.0
"""And otherwise this many times what it was before."""
PATIENCE = 60.0
TIMES = 3 if FULL else 1
"""Seconds that the service gives to a head, a body and the reading of an answer."""
LONGEST = 40.0
"""Seconds after which no slow socket may be left."""
HEAD = b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n"
JSON, LINES = b"application/json", b"application/x-ndjson"

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="memory is found through /proc"),
    pytest.mark.timeout(300),
]


@dataclass(frozen=True)
class Service:
    port: int
    pid: int

    def memory(self) -> int:
        """Give the bytes that it holds, in its own pages."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        (line,) = (line for line in text.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def connect(self, **options: int) -> socket.socket:
        made = socket.socket()
        if "buffer" in options:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options["buffer"])
        made.settimeout(PATIENCE)
        made.connect(("127.0.0.1", self.port))
        return made


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("floods")
    settings = {
        "LAMPLIGHTER_URL": f"sqlite:///{folder}/jobs.db",
        "LAMPLIGHTER_HTTP_UNKNOWN_TYPES": "1",
        "LAMPLIGHTER_HTTP_CONNECTIONS": str(CONNECTIONS),
        "LAMPLIGHTER_HTTP_HEADER_TIMEOUT": str(TIMES),
        "LAMPLIGHTER_HTTP_BODY_TIMEOUT": str(TIMES),
        "LAMPLIGHTER_HTTP_WRITE_TIMEOUT": str(TIMES),
        "LAMPLIGHTER_GRACE": "1",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "lamplighter", "serve", "--port", "0", "--json"],
        cwd=folder,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
    ) as process:
        try:
            url = json.loads(process.stdout.readline())["url"]
            made = Service(int(url.rpartition(":")[2]), process.pid)
            # Whatever is made once is made now.
            for body in (b'{"type": "calm"}', b"[" * 1000):
                send_body(made, b"/v1/jobs", JSON, body)
            yield made
        finally:
            process.terminate()


class Calm:
    """What became of a calm client's requests."""

    def __init__(self, service: Service) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.system.calm_client", str(service.port)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._process.stdout.readline()
        self.p99_ms = 0.0
        self.wrong: list[str] = []
        self.requests = 0

    def end(self) -> None:
        said, _ = self._process.communicate(b"")
        found = json.loads(said)
        self.wrong, self.requests = found["wrong"], len(found["took"])
        self.p99_ms = percentile(found["took"], 99) * 1000


def calm_for(service: Service, flood: Callable[[], object]) -> tuple[Calm, object]:
    calm = Calm(service)
    try:
        found = flood()
    finally:
        calm.end()
    return calm, found


@contextmanager
def flat(service: Service) -> Iterator[list[int]]:
    """Look at the memory while something happens, and afterwards; it must not have grown."""
    before, seen = service.memory(), [0]
    yield seen
    seen.append(service.memory())
    assert max(seen) - before <= MEMORY, (before >> 20, max(seen) >> 20)


def unharmed(service: Service, flood: Callable[[], object]) -> object:
    """Flood, with a calm client beside: its answers must be good, and come as they always did."""
    usual = calm_for(service, lambda: time.sleep(SECONDS))[0] if FULL else None
    with flat(service) as seen:

        def watched() -> object:
            with ThreadPoolExecutor(1) as pool:
                doing = pool.submit(flood)
                while not doing.done():
                    seen.append(service.memory())
                    time.sleep(0.1)
                return doing.result()

        flooded, found = calm_for(service, watched)
    memory = f"memory {seen[1] >> 20} to {max(seen) >> 20} MiB"
    print(f"p99 {flooded.p99_ms:.0f} ms of {flooded.requests}; {memory}; {found}")
    assert flooded.requests
    assert not flooded.wrong, Counter(flooded.wrong)
    if usual is not None:
        print(f"p99 {usual.p99_ms:.0f} ms before")
        assert not usual.wrong
        assert flooded.p99_ms <= max(CALM_MS, CALM_TIMES * usual.p99_ms)
    return found


def send_body(
    service: Service, path: bytes, media: bytes, body: bytes, *, chunked: bool = False
) -> tuple[int, str]:
    """Send a body as far as it is taken; gives status and code of the answer."""
    head = HEAD % (b"POST", path, media)
    if chunked:
        head += b"Transfer-Encoding: chunked\r\n\r\n"
        pieces = [b"%x\r\n%b\r\n" % (len(p), p) for p in _pieces(body)] + [b"0\r\n\r\n"]
    else:
        head += b"Content-Length: %d\r\n\r\n" % len(body)
        pieces = _pieces(body)
    with service.connect() as line:
        with suppress(OSError):  # it has answered, and takes no more
            line.sendall(head)
            for piece in pieces:
                line.sendall(piece)
        return answer(line)


def _pieces(body: bytes) -> list[bytes]:
    return [body[at : at + 65_536] for at in range(0, len(body), 65_536)]


def answer(line: socket.socket) -> tuple[int, str]:
    """Read an answer: its status, and its code if it is a refusal."""
    said = b""
    with suppress(OSError):
        while piece := line.recv(65_536):
            said += piece
            head, _, body = said.partition(b"\r\n\r\n")
            if body.endswith(b"}"):
                break
    head, _, body = said.partition(b"\r\n\r\n")
    if not head:
        return 0, "closed"
    return int(head[9:12]), json.loads(body).get("code", "") if body else ""


def job(arguments: bytes) -> bytes:
    return b'{"type": "calm", "arguments": ' + arguments + b"}"


MANY_KEYS = b"{" + b",".join(b'"k%d":0' % n for n in range(1_000_000)) + b"}"
BODIES = {
    "50 MB": (b"/v1/jobs", JSON, b" " * 50_000_000, False, "body-too-large"),
    "50 MB in chunks": (b"/v1/jobs", JSON, b" " * 50_000_000, True, "body-too-large"),
    "50 MB of lines": (b"/v1/jobs:batch", LINES, job(b"{}\n") * 2_000_000, True, "body-too-large"),
    "deep": (b"/v1/jobs", JSON, b"[" * 100_000 + b"]" * 100_000, False, "limit-exceeded"),
    "deep in a batch": (
        *(b"/v1/jobs:batch", JSON, b'{"a":' * 100_000 + b"1" + b"}" * 100_000, False),
        "limit-exceeded",
    ),
    "keys": (b"/v1/jobs:batch", JSON, b"[" + job(MANY_KEYS) + b"]", False, "limit-exceeded"),
    "text": (b"/v1/jobs", JSON, job(b'{"a":"' + b"x" * 200_000 + b'"}'), False, "limit-exceeded"),
    "number": (b"/v1/jobs", JSON, job(b'{"a":' + b"9" * 200_000 + b"}"), False, "limit-exceeded"),
    "lines": (b"/v1/jobs:batch", LINES, job(b"{}") + b"\n", False, "limit-exceeded"),
    "items": (b"/v1/jobs:batch", JSON, job(b"{}") + b",", False, "limit-exceeded"),
}


@pytest.mark.parametrize("kind", BODIES)
def test_a_flood_of_bodies_is_refused_and_nobody_else_is_harmed(service, kind):
    path, media, body, chunked, code = BODIES[kind]
    if kind == "lines":
        body *= 100_000
    if kind == "items":
        body = b"[" + (body * 100_000)[:-1] + b"]"

    def flood_on_one_line(end: float) -> Counter[tuple[int, str]]:
        found: Counter[tuple[int, str]] = Counter()
        while time.monotonic() < end:
            found[send_body(service, path, media, body, chunked=chunked)] += 1
        return found

    def flood() -> Counter[tuple[int, str]]:
        ends = [time.monotonic() + SECONDS] * AT_ONCE
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return sum(pool.map(flood_on_one_line, ends), Counter())

    assert set(unharmed(service, flood)) == {(413, code)}


def test_heads_of_a_megabyte_are_refused(service):
    def flood() -> Counter[tuple[int, str]]:
        found: Counter[tuple[int, str]] = Counter()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with service.connect() as line:
                line.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n")
                with suppress(OSError):
                    for place in range(1024):
                        line.sendall(b"x-%d: %b\r\n" % (place, b"x" * 1010))
                    line.sendall(b"\r\n")
                found[answer(line)] += 1
        return found

    found = unharmed(service, flood)
    assert set(found) <= {(431, "headers-too-large"), (0, "closed")}
    assert found[431, "headers-too-large"] > 0


class Slow:
    """Many sockets of which each says as little as it can."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._drips: dict[socket.socket, Iterator[int]] = {}
        self.refused: Counter[tuple[int, str]] = Counter()
        self.closed = 0

    def open(self) -> None:
        head = HEAD % (b"POST", b"/v1/jobs", JSON) + b"X-Slow: " + b"x" * 1000
        body = HEAD % (b"POST", b"/v1/jobs", JSON) + b"Content-Length: 10000\r\n\r\n"
        unread = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 8
        for number in range(SOCKETS):
            line = self._service.connect(buffer=4096)
            with suppress(OSError):
                if number % 10 == 0:
                    line.sendall(unread)
                elif number % 10 == 1:
                    line.sendall(body)
            line.setblocking(False)
            self._drips[line] = iter(head if number % 10 > 1 else b" " * 1000)

    def drip(self) -> None:
        """Send one byte after the other on each, until all of them are closed."""
        end = time.monotonic() + LONGEST
        while self._drips and time.monotonic() < end:
            for line, rest in tuple(self._drips.items()):
                try:
                    line.send(bytes([next(rest)]))
                except BlockingIOError:
                    pass
                except OSError:
                    self.closed += 1
                    del self._drips[line]
                    line.close()
            time.sleep(0.2)

    def close(self) -> int:
        left = len(self._drips)
        for line in self._drips:
            line.close()
        return left


def test_slow_sockets_keep_nobody_out(service):
    def flood() -> tuple[int, int]:
        slow = Slow(service)
        slow.open()
        slow.drip()
        return slow.closed, slow.close()

    closed, left = unharmed(service, flood)
    # Every one of them has had its time, whatever it said: none may be there for ever.
    assert (closed, left) == (SOCKETS, 0)
