"""The load: one request, made ready beforehand, sent over many connections again and again.

`python -m benchmarks.http.load` reads an order as JSON, carries it out and prints what it found.
It waits for sockets by itself and looks at answers only as far as it must, so that most of the
machine is left to who answers.
"""

from __future__ import annotations

import contextlib
import json
import resource
import select
import socket
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass

from benchmarks.figures import percentile

_PATIENCE = 30.0
"""Seconds without any answer after which the service counts as dead."""
_TICK = 0.001
"""Seconds between two looks at the clock while nothing happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to send, and how."""

    host: str
    port: int
    request: str
    """The whole request, as Latin-1 text."""
    connections: int
    seconds: float
    rate: float | None = None
    """Requests per second, whether or not earlier ones are answered; None: as many as can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What came of it."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    longest_ms: float
    cpu_s: float
    """CPU time of the load itself."""

    @property
    def per_s(self) -> float:
        return self.requests / self.seconds


class Refused(Exception):
    """An answer that is none: there is nothing to measure."""


class Connection:
    """A connection with at most one request under way."""

    def __init__(self, stack: contextlib.ExitStack, order: Order) -> None:
        address = (order.host, order.port)
        self.channel = stack.enter_context(socket.create_connection(address, _PATIENCE))
        self.channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.since = 0.0
        self._read = b""

    def answered(self) -> bool:
        """Read what is there; tell whether the answer is complete, and raise if it is a refusal."""
        data = self.channel.recv(1 << 18)
        if not data:
            raise Refused("the connection was closed")
        if self._read:
            data = self._read + data
        head = data.find(b"\r\n\r\n")
        if head < 0 or len(data) < head + 4 + _length(data, head):
            self._read = data
            return False
        self._read = b""
        if data[9:11] != b"20":
            raise Refused(data.decode("latin-1"))
        return True


def _length(data: bytes, head: int) -> int:
    """Read how long the body is; all servers here say so, in small letters."""
    place = data.find(b"content-length: ", 0, head)
    if place < 0:
        raise Refused(f"an answer without a length: {data.decode('latin-1')}")
    return int(data[place + 16 : data.find(b"\r", place)])


def closed(order: Order, connections: dict[int, Connection], poller: select.epoll) -> list[float]:
    """Send on each connection as soon as the last request was answered; gives all latencies."""
    request, clock = order.request.encode("latin-1"), time.perf_counter
    end = clock() + order.seconds
    for each in connections.values():
        each.since = clock()
        each.channel.send(request)
    latencies: list[float] = []
    waiting = len(connections)
    while waiting:
        for number, _ in _polled(poller):
            each = connections[number]
            if not each.answered():
                continue
            now = clock()
            latencies.append(now - each.since)
            if now < end:
                each.since = now
                each.channel.send(request)
            else:
                # It may be closed while the last answers are waited for.
                poller.unregister(number)
                waiting -= 1
    return latencies


def paced(
    order: Order, rate: float, connections: dict[int, Connection], poller: select.epoll
) -> list[float]:
    """Send at a steady rate; latencies count from the instant at which a request was due."""
    request, clock = order.request.encode("latin-1"), time.perf_counter
    idle = deque(connections.values())
    begin = clock()
    total, sent = int(order.seconds * rate), 0
    latencies: list[float] = []
    while len(latencies) < total:
        now = clock()
        while idle and sent < total and (due := begin + sent / rate) <= now:
            each = idle.popleft()
            each.since = due
            each.channel.send(request)
            sent += 1
        for number, _ in poller.poll(_TICK):
            each = connections[number]
            if each.answered():
                latencies.append(clock() - each.since)
                idle.append(each)
        if clock() > begin + order.seconds + _PATIENCE:
            raise Refused(f"{total - len(latencies)} requests have no answer")
    return latencies


def _polled(poller: select.epoll) -> list[tuple[int, int]]:
    found = poller.poll(_PATIENCE)
    if not found:
        raise Refused(f"no answer within {_PATIENCE:g} s")
    return found


def carry_out(order: Order) -> Load:
    """Send the load."""
    before = _cpu_s()
    with contextlib.ExitStack() as stack:
        connections = {
            each.channel.fileno(): each
            for each in (Connection(stack, order) for _ in range(order.connections))
        }
        poller = stack.enter_context(select.epoll())
        for number in connections:
            poller.register(number, select.EPOLLIN)
        began = time.perf_counter()
        if order.rate is None:
            latencies = closed(order, connections, poller)
        else:
            latencies = paced(order, order.rate, connections, poller)
        seconds = time.perf_counter() - began
    return Load(
        requests=len(latencies),
        seconds=seconds,
        p50_ms=percentile(latencies, 50) * 1000,
        p99_ms=percentile(latencies, 99) * 1000,
        longest_ms=max(latencies) * 1000,
        cpu_s=_cpu_s() - before,
    )


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    try:
        print(json.dumps(asdict(carry_out(Order(**json.load(sys.stdin))))))
    except (Refused, OSError) as error:
        sys.exit(f"error: {error}")
