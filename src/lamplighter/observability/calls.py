"""How long calls of the store take in this process, once somebody wants to know."""

from __future__ import annotations

from lamplighter.observability.meter import Classes, Meter
from lamplighter.observability.metrics import CALL_BOUNDS, STORE_CALL_SECONDS, STORE_ERRORS


class Calls:
    """Times and errors per verb since they were last taken."""

    def __init__(self) -> None:
        self.times: dict[str, Classes] = {}
        self.errors: dict[str, int] = {}

    def answered(self, verb: str, seconds: float) -> None:
        """Count a call that was answered."""
        classes = self.times.get(verb)
        if classes is None:
            classes = self.times[verb] = Classes(CALL_BOUNDS)
        classes.observe(seconds)

    def failed(self, verb: str) -> None:
        """Count a call that failed."""
        self.errors[verb] = self.errors.get(verb, 0) + 1

    def take(self) -> tuple[dict[str, Classes], dict[str, int]]:
        """Return what was counted, and begin anew."""
        taken = self.times, self.errors
        self.times, self.errors = {}, {}
        return taken

    def pour(self, meter: Meter) -> None:
        """Put what was counted into the metrics, and begin anew."""
        times, errors = self.take()
        for verb, classes in times.items():
            meter.classes(STORE_CALL_SECONDS, verb).add(classes.counts, classes.sum)
        for verb, count in errors.items():
            meter.add(STORE_ERRORS, count, verb)


_watching: Calls | None = None


def watching() -> Calls | None:
    """Return who counts; None: nobody wants to know."""
    return _watching


def watch() -> Calls:
    """Count from now on; there is one count for a process."""
    global _watching  # noqa: PLW0603 - a process has one store
    if _watching is None:
        _watching = Calls()
    return _watching
