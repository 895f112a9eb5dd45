"""Processes must be found wherever they have gone, and their deaths be noted."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.faults import history
from tests.faults.census import Census
from tests.faults.history import Journal
from tests.faults.processes import identify, marked, tree_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_who_has_left_its_session_and_its_parents_is_found_by_its_mark(tmp_path):
    mark = f"TEST_MARK={tmp_path}"
    environment = {**os.environ, "TEST_MARK": str(tmp_path)}

    subprocess.run(["sh", "-c", "setsid sleep 60 &"], env=environment, check=True)
    until(lambda: [one.command() for one in marked(mark)] == ["sleep 60"])
    (found,) = marked(mark)

    try:
        assert found in marked("TEST_MARK=")
        assert marked(mark[:-1]) == []
        assert found not in tree_of(os.getpid())
    finally:
        os.kill(found.pid, signal.SIGKILL)
    until(lambda: not found.alive())


def test_the_tree_below_a_process_has_its_grandchildren():
    with subprocess.Popen(["sh", "-c", "sleep 60; true"]) as parent:
        until(lambda: len(tree_of(parent.pid)) == 1)
        (grandchild,) = tree_of(parent.pid)

        pids = [one.pid for one in tree_of(os.getpid())]
        assert pids.index(parent.pid) < pids.index(grandchild.pid)
        os.kill(grandchild.pid, signal.SIGKILL)
        parent.kill()


def test_a_run_ends_when_its_process_is_gone_though_nobody_says_so(tmp_path):
    path = tmp_path / "history.jsonl"
    journal, census = Journal(path), Census(path)
    census.start()
    with subprocess.Popen(["sleep", "60"]) as process:
        found = identify(process.pid)
        about = {"type": "work", "due": 0, "attempt": 1, "pid": found.pid, "born": found.born}
        journal.write("run_started", job="a", lease=1, **about)
        process.kill()
    census.end()
    journal.close()

    (run,) = history.read(path).runs

    assert run.ended is not None
    assert run.ended - run.started < 10
