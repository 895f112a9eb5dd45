"""Writes metrics in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from lamplighter.observability.meter import Classes, Labels, Meter, is_histogram
from lamplighter.observability.metrics import METRICS, Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def text_of(meter: Meter, metrics: Iterable[Metric] = METRICS) -> str:
    """Write what a meter has; a metric without values is left out."""
    lines: list[str] = []
    for metric in metrics:
        lines += _histogram(metric, meter) if is_histogram(metric) else _numbers(metric, meter)
    return "\n".join(lines) + "\n" if lines else ""


def _numbers(metric: Metric, meter: Meter) -> Iterator[str]:
    series = meter.numbers(metric)
    if series:
        yield from _head(metric)
    for labels, value in sorted(series.items()):
        yield f"{metric.name}{_labels(metric.labels, labels)} {_number(value)}"


def _histogram(metric: Metric, meter: Meter) -> Iterator[str]:
    series = meter.histograms(metric)
    if series:
        yield from _head(metric)
    for labels, classes in sorted(series.items(), key=lambda pair: pair[0]):
        yield from _classes(metric, labels, classes)


def _classes(metric: Metric, labels: Labels, classes: Classes) -> Iterator[str]:
    names = (*metric.labels, "le")
    bounds = (*(_number(bound) for bound in metric.bounds), "+Inf")
    total = 0
    for bound, total in zip(bounds, accumulate(classes.counts), strict=True):
        yield f"{metric.name}_bucket{_labels(names, (*labels, bound))} {total}"
    own = _labels(metric.labels, labels)
    yield f"{metric.name}_sum{own} {_number(classes.sum)}"
    yield f"{metric.name}_count{own} {total}"


def _head(metric: Metric) -> Iterator[str]:
    told = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {metric.name} {told}"
    yield f"# TYPE {metric.name} {metric.kind.value}"


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    """Write a label's value; what cannot be written as UTF-8 is replaced."""
    text = value.encode("utf-8", "replace").decode()
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return str(int(value)) if whole else repr(value)
