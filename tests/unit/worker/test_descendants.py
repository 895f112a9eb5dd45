"""Ending what a dead process has started."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamplighter import runtime
from lamplighter.worker import descendants
from tests.unit.worker.slot_pool import is_alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these")

SLEEP = [sys.executable, "-c", "import time; time.sleep(120)"]


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen]]:
    processes: list[subprocess.Popen] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def start(started: list, mark: str, argv: list[str], **options) -> subprocess.Popen:
    name, _, value = mark.partition("=")
    env = {**os.environ, name: value}
    started.append(subprocess.Popen(argv, env=env, **options))
    return started[-1]


def wait_for(condition) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def marked(pid: int, mark: str) -> bool:
    return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes()


def test_processes_with_the_mark_are_killed_and_no_others(started: list):
    mark, other = f"LAMPLIGHTER_SLOT={runtime.nonce()}", f"LAMPLIGHTER_SLOT={runtime.nonce()}"
    near = start(started, mark, SLEEP)
    far = start(started, mark, SLEEP, start_new_session=True)
    longer = start(started, f"{mark}x", SLEEP)
    foreign = start(started, other, SLEEP)
    wait_for(lambda: marked(foreign.pid, other))

    assert descendants.kill_marked(mark) == 2

    assert near.wait(10) == far.wait(10) == -9
    assert longer.poll() is None
    assert foreign.poll() is None
    assert descendants.kill_marked(mark) == 0


def test_a_grandchild_in_its_own_session_whose_parent_has_ended_is_killed(started: list):
    mark = f"LAMPLIGHTER_SLOT={runtime.nonce()}"
    shell = "setsid sleep 120 >/dev/null 2>&1 & echo $!"
    parent = start(started, mark, ["sh", "-c", shell], stdout=subprocess.PIPE)
    orphan = int(parent.stdout.readline())
    parent.wait(10)
    wait_for(lambda: marked(orphan, mark))

    assert descendants.kill_marked(mark) == 1

    wait_for(lambda: not is_alive(orphan))


def test_processes_that_start_others_all_the_time_are_ended(started: list):
    mark = f"LAMPLIGHTER_SLOT={runtime.nonce()}"
    program = (
        "import os, time\n"
        "print('go', flush=True)\n"
        "for _ in range(200):\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid(); time.sleep(0.002)\n"
        "time.sleep(120)"
    )
    parent = start(started, mark, [sys.executable, "-c", program], stdout=subprocess.PIPE)
    parent.stdout.readline()

    descendants.kill_marked(mark)

    wanted = f"\0{mark}\0".encode()
    wait_for(lambda: descendants._look_for(wanted) == (set(), False))


def test_one_that_is_being_replaced_by_another_program_is_waited_for(
    started: list, monkeypatch: pytest.MonkeyPatch
):
    mark = f"LAMPLIGHTER_SLOT={runtime.nonce()}"
    process = start(started, mark, ["sleep", "120"])
    wait_for(lambda: marked(process.pid, mark))
    # In exec for longer than rounds would last: the machine is busy.
    read, looks = descendants._environment, iter(range(2 * descendants.ROUNDS))
    hidden = lambda pid: pid == process.pid and next(looks, None) is not None  # noqa: E731
    monkeypatch.setattr(
        descendants, "_environment", lambda pid: b"\0" if hidden(pid) else read(pid)
    )
    monkeypatch.setattr(descendants, "_is_in_exec", lambda pid: pid == process.pid)

    assert descendants.kill_marked(mark) == 1

    assert process.wait(10) == -9


def test_a_program_without_variables_and_the_dead_are_not_taken_for_one_in_exec(started: list):
    bare = subprocess.Popen(["sleep", "120"], env={})
    started.append(bare)
    dead = subprocess.Popen(["true"])
    started.append(dead)
    wait_for(lambda: not is_alive(dead.pid))
    wait_for(lambda: Path(f"/proc/{bare.pid}/cmdline").read_bytes().startswith(b"sleep"))

    assert not any(map(descendants._is_in_exec, (bare.pid, dead.pid, os.getpid())))


def test_the_caller_itself_is_spared(monkeypatch: pytest.MonkeyPatch):
    mark = Path(f"/proc/{os.getpid()}/environ").read_bytes().split(b"\0")[0].decode()
    assert os.getpid() not in descendants._pids()
    assert f"\0{mark}\0".encode() in (descendants._environment(os.getpid()) or b"")


def test_looking_at_two_hundred_processes_is_quick(started: list):
    started.extend(subprocess.Popen(["sleep", "60"]) for _ in range(120))
    begun = time.process_time()
    descendants.kill_marked(f"LAMPLIGHTER_SLOT={runtime.nonce()}")
    assert time.process_time() - begun < 0.05


def test_children_are_killed_but_for_those_that_are_spared():
    program = (
        "import subprocess, time\n"
        "from lamplighter.worker import descendants\n"
        "descendants.adopt_orphans()\n"
        "descendants.kill_children(())\n"
        "kept = subprocess.Popen(['sleep', '120'])\n"
        "spared = descendants.children()\n"
        "subprocess.run(['sh', '-c', '(setsid sleep 120 & setsid sleep 120 &) >/dev/null'])\n"
        "subprocess.Popen(['sh', '-c', 'sleep 120 & sleep 120'])\n"
        "assert spared == {kept.pid}, spared\n"
        "descendants.kill_children(spared)\n"
        "assert descendants.children() == {kept.pid}\n"
        "assert kept.poll() is None\n"
        "descendants.kill_children(())\n"
        "assert descendants.children() == set()\n"
        "print('good')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.stdout == "good\n", done.stderr


def test_elsewhere_nothing_is_looked_for(monkeypatch: pytest.MonkeyPatch, started: list):
    mark = f"LAMPLIGHTER_SLOT={runtime.nonce()}"
    process = start(started, mark, ["sleep", "120"])
    monkeypatch.setattr("sys.platform", "darwin")
    assert descendants.kill_marked(mark) == 0
    assert process.poll() is None
    descendants.kill_group(2**22 - 1)


def test_what_a_killed_supervisor_has_left_is_ended_and_what_lives_is_not():
    boot = runtime.boot_id()
    with subprocess.Popen(["sleep", "0"]) as gone:
        gone.wait()
    marks = [f"host-{boot}-{pid}-0a0a0a0a/p0" for pid in (gone.pid, os.getpid())]
    sleepers = [
        subprocess.Popen(["sleep", "60"], env={descendants.CHILD: mark}, start_new_session=True)
        for mark in (*marks, f"host-otherboot-{gone.pid}-0a0a0a0a/p0", "nonsense")
    ]
    try:
        assert descendants.kill_abandoned(boot) >= 1
        assert sleepers[0].wait(10) == -signal.SIGKILL
        assert [sleeper.poll() for sleeper in sleepers[1:]] == [None, None, None]
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
