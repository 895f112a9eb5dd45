"""How many requests each caller may make: a bucket for each, filled with time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lamplighter import runtime
from lamplighter.model.names import shown
from lamplighter.server.errors import RateLimited
from lamplighter.server.remembered import Remembered


@dataclass(slots=True)
class Bucket:
    """What a caller has left."""

    level: float
    at: float

    def take(self, now: float, rate: float, burst: float) -> float:
        """Take one, if there is one; gives the seconds until there is."""
        self.level = min(burst, self.level + (now - self.at) * rate)
        self.at = now
        if self.level < 1:
            return (1 - self.level) / rate
        self.level -= 1
        return 0.0


class Rates:
    """The buckets of all callers of this process."""

    def __init__(self, rate: float, burst: float, *, setting: str = "http_rate") -> None:
        self._rate = rate
        self._burst = burst
        self._setting = setting
        self._buckets = Remembered(lambda: Bucket(burst, runtime.monotonic()))

    def take(self, name: str) -> Bucket | None:
        """Count a request, or refuse it; return what is left, where there is a limit."""
        if not self._rate:
            return None
        bucket = self._buckets[name]
        wait = bucket.take(runtime.monotonic(), self._rate, self._burst)
        if wait:
            raise RateLimited(
                f"{shown(name)} may make {self._rate:g} requests per second",
                hint="wait for the time that Retry-After names; send many jobs in one batch; the "
                f"setting `{self._setting}` has the limit",
                value=name,
                headers={
                    "Retry-After": f"{math.ceil(wait)}",
                    "RateLimit-Limit": f"{self._burst:g}",
                    "RateLimit-Remaining": "0",
                    "RateLimit-Reset": f"{math.ceil(wait)}",
                },
            )
        return bucket
