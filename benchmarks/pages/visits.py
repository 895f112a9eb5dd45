"""What the pages of the console ask, and how long each answer takes."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from benchmarks.errors import BenchmarkError
from benchmarks.figures import percentile
from benchmarks.pages.filling import Filled, tenant_name

PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a page."""

    page: str
    path: str
    body: object = None


@dataclass(slots=True)
class Seen:
    """What came of asking it again and again."""

    visit: Visit
    size: int = 0
    more: bool = False
    """Whether the answer has a cursor: the page is not the last, and may be short."""
    items: int = 0
    times_ms: list[float] = field(default_factory=list[float])

    @property
    def p50_ms(self) -> float:
        return percentile(self.times_ms, 50)

    @property
    def longest_ms(self) -> float:
        return max(self.times_ms)


def visits(filled: Filled) -> list[Visit]:
    """Give all requests of all pages."""
    schedule = f"/v1/schedules/{quote(filled.schedule, safe='')}"
    owner = urlencode({"tenant": tenant_name(0)})
    dead, waiting = f"/v1/jobs/{filled.dead}", f"/v1/jobs/{filled.waiting}"
    times = {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}
    return [
        Visit("overview", "/v1/overview"),
        Visit("overview", "/v1/stats?minutes=60"),
        Visit("overview", "/v1/dlq"),
        Visit("any", "/v1/me"),
        Visit("any", "/v1/types"),
        *(Visit("jobs", f"/v1/jobs?{urlencode(each)}") for each in _FILTERS),
        *(Visit("job", f"{dead}{part}") for part in ("", "/input", "/attempts", "/logs?limit=100")),
        *(Visit("job", f"{waiting}{part}") for part in ("", "/why")),
        *(Visit("dead letters", f"/v1/dlq?{urlencode(each)}") for each in _DEAD),
        Visit("dead letters", "/v1/jobs?status=dead&fingerprint=f-03&limit=50"),
        Visit("dead letters", "/v1/dlq:replay", {"all": True, "dry_run": True}),
        Visit("schedules", "/v1/schedules"),
        Visit("schedules", "/v1/schedules?type=type-00&limit=50"),
        Visit("schedules", "/v1/schedules?tenant=tenant-999&limit=50"),
        Visit("schedule", f"{schedule}?{owner}"),
        Visit("schedule", f"{schedule}/preview?count=10&{owner}"),
        Visit("schedule", f"{schedule}/runs?{owner}"),
        Visit("schedule", "/v1/schedules:preview", times),
        Visit("workers", "/v1/workers"),
        Visit("queues", "/v1/queues"),
        Visit("queues", "/v1/queues/queue-03"),
        Visit("tenants", "/v1/tenants"),
        Visit("tenants", "/v1/tenants/tenant-003"),
        Visit("audit", "/v1/audit"),
        Visit("scrape", "/metrics"),
    ]


_FILTERS: Sequence[dict[str, str]] = (
    {},
    {"limit": "500"},
    *(
        {"status": status}
        for status in (
            *("scheduled", "ready", "retrying", "paused", "running", "cancelling"),
            *("succeeded", "dead", "cancelled", "expired", "pending", "failed"),
        )
    ),
    {"type": "type-07"},
    {"queue": "queue-07"},
    {"tenant": "tenant-007"},
    {"tag": "tag-7"},
    {"fingerprint": "f-07"},
    {"type": "nothing"},
    {"tenant": "nobody"},
    {"finished_after": "2020-01-01T00:00:00Z"},
    {"finished_before": "2020-01-01T00:00:00Z"},
    {"status": "ready", "type": "type-07"},
    {"status": "running", "queue": "queue-07"},
    {"status": "succeeded", "tenant": "tenant-007"},
    {"status": "dead", "tenant": "tenant-007"},
    {"status": "dead", "type": "type-07"},
    {"status": "dead", "type": "nothing"},
    {"type": "type-07", "tenant": "tenant-007"},
    {"type": "type-07", "queue": "queue-08"},
    {"queue": "queue-07", "tenant": "tenant-007"},
    {"tag": "tag-7", "tenant": "tenant-007"},
)
_DEAD: Sequence[dict[str, str]] = (
    {"type": "type-07"},
    {"tenant": "tenant-007"},
    {"fingerprint": "f-07"},
    {"tenant": "nobody"},
)


def ask(port: int, asked: Sequence[Visit], rounds: int) -> list[Seen]:
    """Ask everything, round after round, one request at a time on one connection.

    What is measured is the time until the last byte of the answer: that of the service, and a
    fraction of a millisecond on the way. The first round does not count.
    """
    found = [Seen(visit) for visit in asked]
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    for number in range(rounds + 1):
        for seen in found:
            took = _once(line, seen)
            if number:
                seen.times_ms.append(took)
    line.close()
    return found


def _once(line: http.client.HTTPConnection, seen: Seen) -> float:
    visit = seen.visit
    body = None if visit.body is None else json.dumps(visit.body)
    began = time.perf_counter()
    line.request(
        "GET" if body is None else "POST",
        visit.path,
        body,
        {} if body is None else {"Content-Type": "application/json"},
    )
    answer = line.getresponse()
    text = answer.read()
    took = (time.perf_counter() - began) * 1000
    if answer.status != 200:
        raise BenchmarkError(f"{visit.path} was answered {answer.status}: {text[:500]!r}")
    seen.size = len(text)
    if answer.headers["Content-Type"] == "application/json":
        shape = json.loads(text)
        seen.more = bool(shape.get("next"))
        seen.items = max(
            (len(each) for each in shape.values() if isinstance(each, list)), default=0
        )
    return took
