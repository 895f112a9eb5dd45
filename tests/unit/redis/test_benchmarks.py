"""The benchmarks on a real server: small, but every part that Redis has for itself."""

import dataclasses
import json

import pytest

from benchmarks.__main__ import main
from benchmarks.engines import fresh_redis
from benchmarks.parts import slow
from benchmarks.scale import QUICK

TINY = dataclasses.replace(
    QUICK,
    bulk_jobs=1_000,
    bulk_rounds=1,
    drain_jobs=100,
    drain_rounds=1,
    memory_jobs=1_000,
    slow_jobs=500,
    idle_workers=8,
    idle_seconds=0.5,
    idle_submits=2,
    leases=500,
    lease_seconds=2.0,
    shard_jobs=100,
    shard_rounds=1,
)


@pytest.mark.timeout(300)  # it starts six servers and four workers
def test_a_run_gives_the_numbers_it_promises_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.__main__.QUICK", TINY)
    chosen = ["submit_bulk", "drain", "memory", "slow", "idle", "leases", "shards"]
    file = tmp_path / "bench.json"

    options = [
        "--quick",
        "--json",
        str(file),
        "--folder",
        str(tmp_path),
        "--only",
        ",".join(chosen),
    ]
    code = main(["--engine", "redis", *options])

    found = json.loads(file.read_text())
    assert code == 0
    assert found["drain"]["cpu_us_by_role"]["store"] > 0
    assert 100 < found["memory"]["bytes_per_job"] < 2_000
    assert found["slow"]["scripts"] > 0
    assert found["idle"]["core_share"] > 0
    assert found["idle"]["woken_most"] >= 1
    assert found["leases"]["renewals_per_s"] > 0
    assert len(found["shards"]["ratios"]) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_the_server_is_set_up_as_is_said(tmp_path):
    with fresh_redis(tmp_path) as store:
        said = {
            name: store.command("CONFIG GET", name)[name]
            for name in ("appendonly", "appendfsync", "maxmemory-policy", "save", "dir")
        }

    assert said["appendonly"] == "yes"
    assert said["appendfsync"] == "everysec"
    assert said["maxmemory-policy"] == "noeviction"
    assert said["dir"].startswith(str(tmp_path))


def test_a_script_that_takes_long_is_seen(tmp_path):
    busy = "local n = 0 for i = 1, 30000000 do n = n + i end return 1"
    with fresh_redis(tmp_path) as store:
        slow.watch(store)
        store.command("EVAL", "return 1", 0)
        store.command("EVAL", busy, 0)
        found = slow.seen(store)

    assert found["scripts"] == 2
    assert found["slow"] == 1
    assert found["slowest_ms"] > slow.LIMIT_MS
