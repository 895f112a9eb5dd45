"""Keeps the values of metrics in a process."""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from lamplighter.observability.metrics import BUILD_INFO, CAPPED, OTHER, Kind, Metric

MOST = 200
"""Queues, and types, that are told apart."""

Labels = tuple[str, ...]


@dataclass(slots=True)
class Classes:
    """How often values fell between bounds, and their sum."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list[int])
    sum: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def add(self, counts: Sequence[int], total: float) -> None:
        """Count what somebody else has sorted by the same bounds."""
        mine = self.counts
        for place, count in enumerate(counts):
            if count:
                mine[place] += count
        self.sum += total


class Meter:
    """The values of all metrics that have any.

    At most ``most`` different queues, and as many types, get series of their own; what comes later
    is counted as `other`. So nobody can make a process, or whoever scrapes it, keep a series for
    each of a million names.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[str, set[str]] = {label: set() for label in CAPPED}
        self._numbers: dict[Metric, dict[Labels, float]] = {}
        self._classes: dict[Metric, dict[Labels, Classes]] = {}

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """Let a counter grow."""
        series = self._numbers.setdefault(metric, {})
        key = labels if labels in series else self._key(metric, labels)
        series[key] = series.get(key, 0) + amount

    def begin(self, metric: Metric, *labels: str) -> None:
        """Bring a counter or histogram into being before its first event.

        Whoever watches how it grows sees that event too, and not only those that follow it.
        """
        if is_histogram(metric):
            self.classes(metric, *labels)
        else:
            self.add(metric, 0, *labels)

    def has_room(self, label: str, names: Collection[str]) -> bool:
        """Tell whether all these names can be told apart, beside those that are already."""
        return len(self._known[label].union(names)) <= self._most

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Say what a gauge shows, or how far a counter has come that somebody else keeps."""
        series = self._numbers.setdefault(metric, {})
        series[labels if labels in series else self._key(metric, labels)] = value

    def rise(self, metric: Metric, value: float, *labels: str) -> None:
        """Say what a gauge shows; of names that share a series, the sum."""
        series = self._numbers.setdefault(metric, {})
        key = self._key(metric, labels)
        series[key] = series.get(key, 0) + value

    def peak(self, metric: Metric, value: float, *labels: str) -> None:
        """Say what a gauge shows; of names that share a series, the highest."""
        series = self._numbers.setdefault(metric, {})
        key = self._key(metric, labels)
        series[key] = max(series.get(key, 0), value)

    def clear(self, *metrics: Metric) -> None:
        """Forget gauges that are about to be read anew: what is gone must not be shown."""
        for metric in metrics:
            self._numbers.pop(metric, None)

    def keep(self, label: str, names: Collection[str]) -> None:
        """Forget names but these, and those that have series: others can have their places."""
        used = {
            key[metric.labels.index(label)]
            for kept in (self._numbers, self._classes)
            for metric, series in kept.items()
            if label in metric.labels
            for key in series
        }
        self._known[label] &= used.union(names)

    def classes(self, metric: Metric, *labels: str) -> Classes:
        """Return a series of a histogram, to count into."""
        series = self._classes.setdefault(metric, {})
        key = labels if labels in series else self._key(metric, labels)
        found = series.get(key)
        if found is None:
            found = series[key] = Classes(metric.bounds)
        return found

    def numbers(self, metric: Metric) -> dict[Labels, float]:
        """Return the values of a counter or gauge."""
        return self._numbers.get(metric, {})

    def histograms(self, metric: Metric) -> dict[Labels, Classes]:
        """Return the series of a histogram."""
        return self._classes.get(metric, {})

    def _key(self, metric: Metric, labels: Labels) -> Labels:
        """Return the labels of a series; a value beyond the bound is not told apart."""
        if len(labels) != len(metric.labels):
            raise ValueError(f"{metric.name} has the labels {metric.labels}, not {labels}")
        return tuple(
            value if name not in CAPPED or self._admitted(name, value) else OTHER
            for name, value in zip(metric.labels, labels, strict=True)
        )

    def _admitted(self, label: str, value: str) -> bool:
        known = self._known[label]
        if value in known:
            return True
        if len(known) >= self._most:
            return False
        known.add(value)
        return True


def tell_build(meter: Meter) -> None:
    """Say what runs here."""
    # A sixth of what a worker's process imports, and most of them tell nobody.
    from importlib import metadata  # noqa: PLC0415 - dear to import

    try:
        version = metadata.version("lamplighter")
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        version = "unknown"
    meter.set(BUILD_INFO, 1, version, platform.python_version())


def is_histogram(metric: Metric) -> bool:
    """Tell whether a metric has classes."""
    return metric.kind is Kind.HISTOGRAM
