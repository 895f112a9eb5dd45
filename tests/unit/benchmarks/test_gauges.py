import json
import os
import tempfile
from pathlib import Path

from benchmarks.engines import ENGINES, fresh_store, working_folder
from benchmarks.gauges import Gauge, Gauges
from benchmarks.jobs import PAYLOAD, declare, own_gauge
from lamplighter import App
from lamplighter.worker import descendants


def test_the_driver_sees_what_a_child_counts(tmp_path):
    gauges = Gauges(tmp_path)
    assert gauges.pids() == []
    gauge = Gauge(tmp_path)

    gauge.count[0] += 3

    assert gauges.pids() == [os.getpid()]
    assert gauges.counts() == [3]
    assert gauges.total() == 3


def test_each_start_is_read_once(tmp_path):
    gauge, gauges = Gauge(tmp_path), Gauges(tmp_path)
    gauge.note_start(1)
    gauge.note_start(2)

    assert [start.number for start in gauges.new_starts()] == [1, 2]
    gauge.note_start(3)
    assert [start.number for start in gauges.new_starts()] == [3]
    assert gauges.new_starts() == []


def test_a_process_for_one_job_is_not_taken_for_a_child(tmp_path, monkeypatch):
    gauges = Gauges(tmp_path)
    monkeypatch.setenv(descendants.SLOT, "token")
    gauge = own_gauge(tmp_path)

    assert gauges.pids() == []
    assert gauges.slot_pids() == [os.getpid()]
    gauge.count[0] += 2
    assert gauges.counts() == []
    assert gauges.total() == 2


def test_a_start_tells_its_process(tmp_path):
    gauge, gauges = Gauge(tmp_path), Gauges(tmp_path)
    gauge.note_start(1)

    assert [start.pid for start in gauges.new_starts()] == [os.getpid()]


def test_the_payload_is_a_hundred_bytes_in_the_store():
    program = declare(App("sqlite:///unused.db"))

    args = program.count.call(PAYLOAD).new.args

    assert len(args) == 100
    assert json.loads(args) == {"payload": PAYLOAD}


def test_a_worker_knows_no_other_types_than_those_it_is_measured_with():
    usual, more = App("sqlite:///unused.db"), App("sqlite:///unused.db")
    declare(usual, extra=())
    declare(more, extra=["say"])

    assert set(usual.registry.names()) == {"count", "note"}
    assert set(more.registry.names()) == {"count", "note", "say"}


def test_a_store_and_its_folder_are_gone_after_use(tmp_path):
    for engine in ENGINES:
        with fresh_store(engine, tmp_path) as store:
            assert store.url.startswith(engine)
            assert store.server_cpu_ns() >= 0
    assert list(tmp_path.iterdir()) == []


def test_stores_are_not_made_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("benchmarks.engines._file_system", lambda _folder: "tmpfs")

    with working_folder(None) as folder:
        assert folder.parent == Path.cwd() / "build"
    assert not folder.exists()
