"""What this process measures of itself and of its store, as metrics."""

from __future__ import annotations

from collections.abc import Iterable

from lamplighter.config import Settings
from lamplighter.observability import calls, metrics
from lamplighter.observability.exposition import text_of
from lamplighter.observability.meter import Classes, Meter, tell_build
from lamplighter.port.store import VERBS, Engine
from lamplighter.port.values import QueueInfo, WorkerInfo
from lamplighter.server import overview
from lamplighter.server.overview import Seen
from lamplighter.server.route import Route

NO_ROUTE = "none"
_STORE = (
    metrics.QUEUE_WAITING,
    metrics.QUEUE_READY,
    metrics.QUEUE_RUNNING,
    metrics.QUEUE_OLDEST_SECONDS,
)
_STATES = ("alive", "suspect", "dead")
_TROUBLE = frozenset({500, 503})


class Measures:
    """Counts answers as they go out, and looks at the store when it is asked."""

    def __init__(self, settings: Settings) -> None:
        self.meter = Meter(settings.metrics_names)
        tell_build(self.meter)
        self._counts = bool(settings.metrics)
        self._calls = calls.watch() if self._counts else calls.Calls()
        self._routes: dict[tuple[str, str], Classes] = {}
        if self._counts:
            for verb in VERBS:
                self.meter.begin(metrics.STORE_ERRORS, verb)

    def expect(self, routes: Iterable[Route]) -> None:
        """Begin the counts of routes: of their good answers, and of those for which one is woken.

        All that could be answered would be many series, of which most stay at 0.
        """
        if self._counts:
            self.meter.begin(metrics.HTTP_REQUESTS, "other", NO_ROUTE, "404")
            for route in routes:
                for status in sorted({*route.statuses, *_TROUBLE}):
                    self.meter.begin(metrics.HTTP_REQUESTS, route.method, route.path, str(status))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer; whatever a caller invents leads to no series of its own."""
        if not self._counts:
            return
        key = (method, route)
        classes = self._routes.get(key)
        if classes is None:
            classes = self._routes[key] = self.meter.classes(metrics.HTTP_SECONDS, method, route)
        classes.observe(seconds)
        self.meter.add(metrics.HTTP_REQUESTS, 1, method, route, str(status))

    async def text(self, engine: Engine) -> str:
        """Write all metrics."""
        seen = await overview.look(engine)
        self._calls.pour(self.meter)
        self._note_store(seen)
        return text_of(self.meter)

    def _note_store(self, seen: Seen) -> None:
        meter = self.meter
        meter.clear(*_STORE)
        meter.keep("queue", {queue.name for queue in seen.queues if _has_jobs(queue)})
        for queue in sorted(seen.queues, key=_has_jobs, reverse=True):
            self._note_queue(queue)
        for state, count in seen.counts.items():
            meter.set(metrics.JOBS, count, state)
        self._note_workers(seen.workers)
        meter.set(metrics.DEAD_LETTERS, seen.counts["dead"])
        meter.set(metrics.HELD_JOBS, seen.standing.held)
        meter.set(metrics.SCHEDULE_LAG_SECONDS, seen.standing.fire_lag_ms / 1000)

    def _note_queue(self, queue: QueueInfo) -> None:
        meter = self.meter
        meter.rise(metrics.QUEUE_READY, queue.ready, queue.name)
        meter.rise(metrics.QUEUE_RUNNING, queue.running, queue.name)
        for level, count in queue.by_level.items():
            name = level.name.lower()
            oldest = queue.oldest_by_level.get(level, 0)
            meter.rise(metrics.QUEUE_WAITING, count, queue.name, name)
            meter.peak(metrics.QUEUE_OLDEST_SECONDS, oldest / 1000, queue.name, name)

    def _note_workers(self, workers: list[WorkerInfo]) -> None:
        for state in _STATES:
            count = sum(worker.state == state for worker in workers)
            self.meter.set(metrics.WORKERS, count, state)


def _has_jobs(queue: QueueInfo) -> bool:
    return queue.running > 0 or any(queue.by_level.values())
