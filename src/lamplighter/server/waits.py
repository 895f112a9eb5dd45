"""Requests that wait for the end of a job: so many at once, and each looks now and then."""

from __future__ import annotations

from collections import Counter

from lamplighter import runtime
from lamplighter.client import Client
from lamplighter.config import Settings
from lamplighter.model.counts import counted
from lamplighter.model.job import TERMINAL, JobRecord
from lamplighter.model.names import shown
from lamplighter.port.store import FINISHED_TOPIC
from lamplighter.server.auth import Principal
from lamplighter.server.errors import TooManyListeners

LONGEST_WAIT = 60.0
"""Seconds that a request may ask for."""
OF_THE_TIME = 0.8
"""Part of the time of a whole request, `http_timeout`, that it waits at most."""
_APART = 0.1
"""Seconds between two reads of one job, however much news there is."""
_POLL = 1.0
"""Seconds after which a job is read again without any news."""


class Waits:
    """Waits on behalf of callers."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._most = settings.http_events_each
        self._longest = settings.http_timeout * OF_THE_TIME
        self._waiting: Counter[str] = Counter()

    async def until_ended(
        self, record: JobRecord, seconds: float, principal: Principal
    ) -> JobRecord:
        """Return a job when it has ended, or as it is when the time is over."""
        name = principal.name
        if self._waiting[name] >= self._most:
            raise TooManyListeners(
                f"{shown(name)} waits for {counted(self._most, 'job')} already",
                hint="wait for fewer at once, or listen to GET /v1/events; the setting "
                "`http_events_each` has the limit",
                value=self._most,
                headers={"Retry-After": "1"},
            )
        self._waiting[name] += 1
        try:
            return await self._wait(record, min(seconds, self._longest))
        finally:
            self._waiting[name] -= 1
            if not self._waiting[name]:
                del self._waiting[name]

    async def _wait(self, record: JobRecord, seconds: float) -> JobRecord:
        ends = runtime.monotonic() + seconds
        wakeup = (await self._client.engine()).wakeup
        while record.state not in TERMINAL:
            left = ends - runtime.monotonic()
            if left <= 0:
                break
            await runtime.sleep(min(_APART, left))
            await wakeup.wait([FINISHED_TOPIC], min(_POLL, max(0.0, left - _APART)))
            record = await self._client.record(record.job.id)
        return record
