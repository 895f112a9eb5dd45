import json

from benchmarks.compare import main, rows


def test_numbers_that_both_runs_have_are_compared():
    before = {"drain": {"cpu_us": 100.0}, "fsync_p99_ms": 1.0, "latency": {"p99_ms": 3.0}}
    after = {"drain": {"cpu_us": 50.0}, "fsync_p99_ms": 2.0}

    assert list(rows(before, after)) == [("drain.cpu_us", 100.0, 50.0), ("fsync_p99_ms", 1.0, 2.0)]


def test_runs_that_do_not_compare_are_pointed_out(tmp_path, capsys):
    one, other = tmp_path / "a.json", tmp_path / "b.json"
    one.write_text(json.dumps({"engine": "sqlite", "quick": True, "drain": {"cpu_us": 80.0}}))
    other.write_text(json.dumps({"engine": "sqlite", "quick": False, "drain": {"cpu_us": 100.0}}))

    assert main([str(one), str(other)]) == 0

    told = capsys.readouterr()
    assert "`quick` differs" in told.err
    assert "1.25 ×" in told.out


def test_two_files_are_needed(capsys):
    assert main(["one.json"]) == 2
    assert "BEFORE.json AFTER.json" in capsys.readouterr().err
