"""Metrics: what there is, how it is kept, and how it is written."""

import re

import pytest

from lamplighter.observability import metrics
from lamplighter.observability.exposition import text_of
from lamplighter.observability.meter import Classes, Meter
from lamplighter.observability.metrics import METRICS, Kind

NAMES = [
    "lamplighter_build_info",
    "lamplighter_store_call_seconds",
    "lamplighter_store_errors_total",
    "lamplighter_start_lag_seconds",
    "lamplighter_run_seconds",
    "lamplighter_jobs_ended_total",
    "lamplighter_retries_total",
    "lamplighter_jobs_dead_total",
    "lamplighter_leases_expired_total",
    "lamplighter_stale_settles_total",
    "lamplighter_output_dropped_lines_total",
    "lamplighter_slots",
    "lamplighter_slots_busy",
    "lamplighter_utilisation_ratio",
    "lamplighter_child_processes",
    "lamplighter_loop_idle_seconds",
    "lamplighter_loop_restarts_total",
    "lamplighter_worker_well",
    "lamplighter_fire_lag_seconds",
    "lamplighter_schedules_fired_total",
    "lamplighter_schedules_skipped_total",
    "lamplighter_queue_waiting_jobs",
    "lamplighter_queue_ready_jobs",
    "lamplighter_queue_running_jobs",
    "lamplighter_queue_oldest_seconds",
    "lamplighter_jobs",
    "lamplighter_dead_letters",
    "lamplighter_held_jobs",
    "lamplighter_workers",
    "lamplighter_schedule_lag_seconds",
    "lamplighter_http_requests_total",
    "lamplighter_http_request_seconds",
]
"""People build alerts on these: a name that goes breaks them."""


def test_the_list_of_metrics_is_this_one():
    assert [metric.name for metric in METRICS] == NAMES


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_declared_as_the_format_has_it(metric):
    assert re.fullmatch(r"[a-z_]+", metric.name)
    assert (metric.kind is Kind.COUNTER) == metric.name.endswith("_total")
    assert bool(metric.bounds) == (metric.kind is Kind.HISTOGRAM)
    assert list(metric.bounds) == sorted(set(metric.bounds))
    assert all(re.fullmatch(r"[a-z]+", label) for label in metric.labels)
    assert metric.help[-1] in ".:"


def test_no_metric_tells_tenants_apart():
    assert not any("tenant" in label for metric in METRICS for label in metric.labels)


def test_counters_and_gauges_are_written_with_their_help():
    meter = Meter()
    meter.add(metrics.RETRIES, 2, "mail")
    meter.add(metrics.RETRIES, 1, "mail")
    meter.set(metrics.UTILISATION, 0.25)
    assert text_of(meter) == (
        "# HELP lamplighter_retries_total Failures after which a job is tried again.\n"
        "# TYPE lamplighter_retries_total counter\n"
        'lamplighter_retries_total{type="mail"} 3\n'
        "# HELP lamplighter_utilisation_ratio Its busy slots as a part of all, 0 to 1.\n"
        "# TYPE lamplighter_utilisation_ratio gauge\n"
        "lamplighter_utilisation_ratio 0.25\n"
    )


def test_histograms_are_cumulative_and_end_with_sum_and_count():
    meter = Meter()
    classes = meter.classes(metrics.RUN_SECONDS, "mail")
    for seconds in (0.005, 0.006, 5_000):
        classes.observe(seconds)
    lines = text_of(meter).splitlines()
    assert lines[2:4] == [
        'lamplighter_run_seconds_bucket{type="mail",le="0.005"} 1',
        'lamplighter_run_seconds_bucket{type="mail",le="0.01"} 2',
    ]
    assert lines[-3:] == [
        'lamplighter_run_seconds_bucket{type="mail",le="+Inf"} 3',
        'lamplighter_run_seconds_sum{type="mail"} 5000.011',
        'lamplighter_run_seconds_count{type="mail"} 3',
    ]


def test_what_nobody_counted_is_left_out():
    assert text_of(Meter()) == ""


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ('a"b', r"a\"b"),
        ("a\\b", r"a\\b"),
        ("a\nb", r"a\nb"),
        ("naïve €", "naïve €"),
        ("\ud800", "?"),
        ('x"} 1\nforged 9', r"x\"} 1\nforged 9"),
    ],
)
def test_no_name_can_leave_its_label(name, written):
    meter = Meter()
    meter.add(metrics.RETRIES, 1, name)
    *_, line = text_of(meter).splitlines()
    assert line == f'lamplighter_retries_total{{type="{written}"}} 1'


def test_names_beyond_the_bound_are_not_told_apart():
    meter = Meter(most=2)
    for number in range(1_000):
        meter.add(metrics.RETRIES, 1, f"type {number}")
        meter.classes(metrics.RUN_SECONDS, f"type {number}").observe(1)
    assert meter.numbers(metrics.RETRIES) == {("type 0",): 1, ("type 1",): 1, ("other",): 998}
    assert set(meter.histograms(metrics.RUN_SECONDS)) == {("type 0",), ("type 1",), ("other",)}
    assert sum(meter.histograms(metrics.RUN_SECONDS)["other",].counts) == 998


def test_gauges_of_names_beyond_the_bound_are_put_together():
    meter = Meter(most=1)
    for number in range(3):
        meter.rise(metrics.QUEUE_READY, 10, f"q{number}")
        meter.peak(metrics.QUEUE_OLDEST_SECONDS, number, f"q{number}", "high")
    assert meter.numbers(metrics.QUEUE_READY) == {("q0",): 10, ("other",): 20}
    assert meter.numbers(metrics.QUEUE_OLDEST_SECONDS) == {("q0", "high"): 0, ("other", "high"): 2}
    meter.clear(metrics.QUEUE_READY)
    assert meter.numbers(metrics.QUEUE_READY) == {}


def test_a_name_that_is_forgotten_leaves_its_place_to_another():
    meter = Meter(most=2)
    for name in ("q0", "q1", "q2"):
        meter.rise(metrics.QUEUE_READY, 1, name)
    meter.clear(metrics.QUEUE_READY)
    meter.keep("queue", {"q1", "q2"})
    for name in ("q0", "q1", "q2"):
        meter.rise(metrics.QUEUE_READY, 1, name)
    assert meter.numbers(metrics.QUEUE_READY) == {("q0",): 1, ("q1",): 1, ("other",): 1}
    meter.clear(metrics.QUEUE_READY)
    meter.keep("queue", {"q2"})
    meter.rise(metrics.QUEUE_READY, 1, "q2")
    assert meter.numbers(metrics.QUEUE_READY) == {("q2",): 1}


def test_a_name_that_has_series_is_not_forgotten():
    meter = Meter(most=1)
    meter.add(metrics.RETRIES, 1, "charge")
    meter.keep("type", ())
    meter.add(metrics.RETRIES, 1, "mail")
    assert meter.numbers(metrics.RETRIES) == {("charge",): 1, ("other",): 1}


def test_a_series_with_other_labels_than_declared_is_refused():
    with pytest.raises(ValueError, match="lamplighter_retries_total"):
        Meter().add(metrics.RETRIES, 1, "a", "b")


def test_classes_that_others_have_counted_are_added():
    mine, theirs = Classes((1, 2)), Classes((1, 2))
    for value in (0.5, 1, 1.5, 9):
        mine.observe(value)
        theirs.observe(value)
    mine.add(theirs.counts, theirs.sum)
    assert (mine.counts, mine.sum) == ([4, 2, 2], 24)
