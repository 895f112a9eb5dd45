"""What an open console costs while nothing happens."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.pages.visits import PATIENCE

TOPICS = ("overview", "workers")
_SETTLING = 10.0
"""Seconds in which what was just opened comes to rest: the service looks ever more rarely."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Shares of one core, while somebody listens and nothing changes."""

    service: float
    store: float
    events: int
    seconds: float


def listen(
    port: int, seconds: float, service_ns: Callable[[], int], store_ns: Callable[[], int]
) -> Idle:
    """Listen to what the overview listens to, and see what that costs."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    line.request("GET", "/v1/events?" + "&".join(f"topic={topic}" for topic in TOPICS))
    stream = line.getresponse()
    _read(stream, _SETTLING)
    before, began = (service_ns(), store_ns()), time.monotonic()
    events = _read(stream, seconds)
    took = time.monotonic() - began
    line.close()
    spent = [after - then for after, then in zip((service_ns(), store_ns()), before, strict=True)]
    return Idle(spent[0] / 1e9 / took, spent[1] / 1e9 / took, events, took)


def _read(stream: http.client.HTTPResponse, seconds: float) -> int:
    """Read for so long, or a little longer: a comment comes when nothing else does."""
    end, events = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        events += stream.readline().startswith(b"event:")
    return events
