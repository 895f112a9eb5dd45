import dataclasses
import json

import pytest

from benchmarks import report
from benchmarks.__main__ import PARTS, main
from benchmarks.errors import BenchmarkError
from benchmarks.gauges import Start
from benchmarks.parts.delayed import summary
from benchmarks.scale import QUICK

COST = {"jobs_per_s": 1000.0, "cpu_us": 30.0, "cpu_us_by_role": {"producer": 30.0}}
RESULTS = {
    "submit_bulk": COST,
    "submit_single": COST,
    "claim": COST,
    "settle": COST,
    "drain": COST,
    "isolated": {**COST, "cpu_us": 410.0},
    "said": COST,
    "once": COST,
    "instrumented": {"ratio": 1.02},
    "latency": {"p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 6.5, "fsync_p99_ms": 0.5},
    "delayed": {"early": 0, "first_ms": 2.0, "p99_ms": 300.0, "jobs": 100},
    "burst": {"early": 0, "first_ms": 2.0, "urgent_p99_ms": 20.0},
    "growth": {"drain_ratio": 1.6, "sizes": [1_000, 100_000]},
    "tenants": {"drain_ratio": 1.1, "ratio_to_one": 1.4, "tenants": [1, 1_000, 10_000]},
    "memory": {"bytes_per_job": 250.0},
    "flood": {
        "mib": 64,
        "beside": {"seconds": 2.0, "child_mib": 70.0, "p99_ratio": 9.0, "log_kib": 250.0},
        "alone": {
            "seconds": 2.0,
            "child_mib": 1.0,
            "slot_mib": 2.0,
            "p99_ratio": 5.5,
            "log_kib": 240.0,
        },
    },
    "pinned": {"p99_ratio": 1.2},
    "floor": {"share": 0.7},
    "slow": {"share": 0.0},
    "idle": {"core_share": 0.05},
    "leases": {"core_share": 0.05},
    "shards": {"ratios": [1.0, 1.1, 1.2]},
    "schedules_put": {"put": {"cpu_us": 30.0}},
    "schedules_rest": {"tick_ratio": 1.1},
    "schedules_due": {"fired_s": 4.0},
    "schedules_missed": {"p99_ms": 2.0},
}


def shown():
    return report.document("sqlite", quick=True, results=RESULTS, cores=2)


def marks():
    return {line.what: line.mark for line in report.lines(shown())}


def test_the_document_has_the_names_that_others_read():
    found = shown()

    assert found["engine"] == "sqlite"
    assert found["quick"] is True
    assert found["fsync_p99_ms"] == 0.5
    assert set(PARTS) <= set(found)


def test_a_document_of_some_parts_has_no_empty_others():
    found = report.document("sqlite", quick=False, results={"drain": COST}, cores=2)

    assert set(found) == {"engine", "quick", "cores", "drain"}
    assert len(report.lines(found)) == 2


def test_a_missed_budget_is_marked():
    found = marks()

    assert found["drain with 100,000 waiting / 1,000 (quick)"] == "MISSED"
    assert found["drain with 10,000 tenants / 1,000 (quick)"] == "ok"
    assert found["drain with 10,000 tenants / 1 (quick)"] == "ok"


def test_a_process_of_its_own_has_a_budget_of_its_own():
    cpu = [line for line in report.lines(shown()) if line.what == "  CPU per job, all processes"]

    assert [(line.budget, line.mark) for line in cpu] == [
        (40.0, "ok"),
        (None, ""),
        (None, ""),
        (None, ""),
        (200.0, "ok"),
        (400.0, "MISSED"),
        (None, ""),
        (None, ""),
    ]


def test_a_flood_may_cost_little_memory_and_hurt_nobody_from_a_process_of_its_own():
    found = report.lines({"engine": "sqlite", "quick": True, "flood": RESULTS["flood"]})

    assert [(line.found, line.mark) for line in found if "grew" in line.what] == [
        ("70 MiB", "MISSED"),
        ("2 MiB", "ok"),
        ("1 MiB", "ok"),
    ]
    assert [(line.found, line.mark) for line in found if "p99" in line.what] == [
        ("9 ×", ""),
        ("5.5 ×", "MISSED"),
    ]


def test_the_latency_may_take_what_the_disk_takes():
    assert report.latency_budget_ms(0.5) == 6.0
    assert marks()["  p99"] == "MISSED"


def test_what_has_no_budget_has_no_mark():
    assert marks()["a waiting job takes"] == ""
    assert marks()["latency, idle worker, p50"] == ""


def test_redis_promises_more():
    found = report.document("redis", quick=True, results=RESULTS, cores=2)
    wanted = {line.what: line.wanted for line in report.lines(found) if line.wanted}

    assert wanted["latency, idle worker, p50"] == "≤ 1.5 ms"
    assert wanted["  p99"] == "≤ 3 ms"
    assert wanted["  first late by"] == "≤ 50 ms"
    assert wanted["a waiting job takes"] == "≤ 600 bytes"
    assert wanted["  CPU per job, all processes"] == "≤ 90 µs (aim 60)"
    assert wanted["drain with 10,000 tenants / 1 (quick)"] == "≤ 1.5"


def test_a_part_that_makes_no_sense_for_an_engine_is_refused(capsys):
    assert main(["--engine", "sqlite", "--only", "drain,slow"]) == 2
    assert "not for sqlite: slow" in capsys.readouterr().err
    assert main(["--engine", "redis", "--only", "pinned"]) == 2


def test_the_table_has_a_row_for_each_line_under_a_heading():
    table = report.table(report.lines(shown())).splitlines()

    assert table[0].split() == ["measured", "found", "budget"]
    assert len(table) == len(report.lines(shown())) + 2


def test_the_profile_names_every_process():
    drained = {**COST, "cpu_us_by_role": {"supervisor": 5.0, "children": 60.0}}
    found = shown() | {"drain": drained | {"cpu_us_children_loops": 20.0}}

    text = report.profile(found)

    assert "supervisor 5 µs" in text
    assert "event loop 20 µs, threads 40 µs" in text


def test_a_busy_machine_is_remarked():
    busy = report.document("sqlite", quick=True, results=RESULTS, cores=2, others=0.4567)
    quiet = report.document("sqlite", quick=True, results=RESULTS, cores=2, others=0.01)

    assert busy["others_cpu_share"] == 0.457
    assert "46%" in report.remark(busy)
    assert report.remark(quiet) == ""
    assert report.remark(shown()) == ""


def starts(*offsets_ms):
    return [Start(n, 0, (1_000_000 + ms) * 1_000_000) for n, ms in enumerate(offsets_ms)]


def test_a_start_before_the_due_time_is_early():
    found = summary(starts(5, -1, 20), 3, 1_000_000)

    assert found["early"] == 1
    assert found["first_ms"] == -1
    assert found["p99_ms"] == 20


def test_a_start_at_the_due_time_is_not_early():
    assert summary(starts(0), 1, 1_000_000)["early"] == 0


def test_a_job_that_did_not_start_makes_the_measurement_worthless():
    with pytest.raises(BenchmarkError, match="3 jobs were due, 2 handlers started"):
        summary(starts(1, 2), 3, 1_000_000)


def test_an_unknown_part_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "drain,speed"])
    assert "unknown: speed" in capsys.readouterr().err


def test_early_jobs_are_an_error_even_though_the_numbers_are_shown(tmp_path, monkeypatch, capsys):
    async def early(_bench):
        return {**RESULTS["delayed"], "early": 2}

    monkeypatch.setattr("benchmarks.__main__.PARTS", {"delayed": early})

    assert main(["--quick", "--json", str(tmp_path / "b.json")]) == 1
    assert json.loads((tmp_path / "b.json").read_text())["delayed"]["early"] == 2
    assert "before they were due" in capsys.readouterr().err


def test_a_worthless_measurement_is_an_error(monkeypatch, capsys):
    async def lose(_bench):
        raise BenchmarkError("5 jobs were lost")

    monkeypatch.setattr("benchmarks.__main__.PARTS", {"drain": lose})

    assert main(["--quick"]) == 1
    assert "5 jobs were lost" in capsys.readouterr().err


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Measure parts with very few jobs; only the file of the numbers may be left behind."""
    tiny = dataclasses.replace(
        QUICK,
        bulk_jobs=1_000,
        bulk_rounds=1,
        single_jobs=5,
        port_jobs=200,
        port_rounds=1,
        drain_jobs=100,
        drain_rounds=1,
        isolated_jobs=20,
        isolated_rounds=1,
        said_jobs=20,
        said_rounds=1,
        once_jobs=20,
        once_rounds=1,
        instrumented_jobs=50,
        instrumented_pairs=1,
        latency_jobs=5,
        memory_jobs=100,
        flood_mib=2,
        flood_quiet_jobs=5,
    )
    monkeypatch.setattr("benchmarks.__main__.QUICK", tiny)
    file = tmp_path / "bench.json"

    def measure(*chosen: str):
        code = main(
            ["--quick", "--json", str(file), "--folder", str(tmp_path), "--only", ",".join(chosen)]
        )
        found = json.loads(file.read_text())
        assert code == 0
        named = {"engine", "quick", "cores"}
        if "latency" in chosen:
            named.add("fsync_p99_ms")
        assert set(found) - {"others_cpu_share"} == {*chosen} | named
        assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]
        return found

    return measure


def test_a_run_gives_what_jobs_cost(measured):
    costs = ["submit_bulk", "submit_single", "claim", "settle", "drain", "isolated", "said", "once"]

    found = measured(*costs)

    for part in costs:
        assert set(found[part]) >= {"jobs_per_s", "cpu_us"}
        assert found[part]["cpu_us"] > 0
    assert found["isolated"]["processes"] > 0
    assert found["isolated"]["cpu_us_by_role"]["slots"] > 0


def test_a_run_gives_the_other_numbers_it_promises(measured):
    found = measured("instrumented", "latency", "memory", "flood")

    assert found["instrumented"]["ratio"] > 0
    assert set(found["flood"]["beside"]) >= {"seconds", "child_mib", "p99_ratio", "log_kib"}
    assert set(found["flood"]["alone"]) >= set(found["flood"]["beside"]) | {"slot_mib"}
    assert set(found["latency"]) >= {"p50_ms", "p95_ms", "p99_ms"}
    assert found["memory"]["bytes_per_job"] > 100
