"""What a job in a process of its own may use."""

import resource
import subprocess
import sys
from collections.abc import Mapping

import pytest

from lamplighter.model.errors import InvalidOption
from lamplighter.model.isolation import Limits
from lamplighter.model.outcome import AbandonCause, Abandoned, Failed, Succeeded
from lamplighter.worker import limits
from tests.unit.worker.slot_pool import pool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")


async def test_memory_beyond_the_limit_is_a_memory_error_and_the_process_goes_on():
    async with pool(limit=1) as p:
        assert await p.outcome("allocates", megabytes=10) == Succeeded(b"10485760")
        (pid,) = p.slots.pids
        outcome = await p.outcome("allocates", megabytes=1000)
        assert await p.outcome("allocates", megabytes=20) == Succeeded(b"20971520")
        assert p.slots.pids == [pid]

    assert isinstance(outcome, Failed)
    assert outcome.error.type == "MemoryError"


async def test_cpu_time_is_counted_for_each_job_and_its_end_is_named():
    async with pool(limit=1) as p:
        for _ in range(3):
            assert isinstance(await p.outcome("burns", seconds=0.7), Succeeded)
        outcome = await p.outcome("burns", seconds=30.0)

    assert isinstance(outcome, Abandoned)
    assert outcome.cause is AbandonCause.CRASHED_ALONE
    assert outcome.how == "killed by signal 24 (SIGXCPU): it used up its 1 s of CPU time"
    assert "in burns" in outcome.last_words


async def test_files_beyond_the_limit_are_an_error():
    async with pool(limit=1) as p:
        assert await p.outcome("opens", count=5) == Succeeded(b"5")
        outcome = await p.outcome("opens", count=40)
        assert await p.outcome("opens", count=5) == Succeeded(b"5")

    assert outcome.error.type == "OSError"
    assert "Too many open files" in outcome.error.message


def run_limited(program: str) -> str:
    """Run Python code in a process whose own limits it may lower."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout.strip()


def test_limits_are_those_of_the_system():
    shown = run_limited(
        "import resource as r\n"
        "from lamplighter.model.isolation import Limits\n"
        "from lamplighter.worker import limits\n"
        "limits.apply(Limits(memory_mb=500, open_files=64, processes=99))\n"
        "print(r.getrlimit(r.RLIMIT_AS), r.getrlimit(r.RLIMIT_NOFILE),"
        " r.getrlimit(r.RLIMIT_NPROC))"
    )
    assert shown == f"({500 << 20}, {500 << 20}) (64, 64) (99, 99)"


def test_a_group_counts_the_processes_instead_of_the_user():
    shown = run_limited(
        "import resource as r\n"
        "from lamplighter.model.isolation import Limits\n"
        "from lamplighter.worker import limits\n"
        "before = r.getrlimit(r.RLIMIT_NPROC)\n"
        "limits.apply(Limits(processes=99), grouped=True)\n"
        "print(r.getrlimit(r.RLIMIT_NPROC) == before)"
    )
    assert shown == "True"


def test_a_limit_above_that_of_the_worker_is_refused_and_both_are_named():
    shown = run_limited(
        "import resource as r\n"
        "from lamplighter.model.isolation import Limits\n"
        "from lamplighter.worker import limits\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (100, 100))\n"
        "limits.check(Limits(open_files=100))\n"
        "try:\n"
        "    limits.check(Limits(open_files=101), owner='resize')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error.cause)"
    )
    assert shown == (
        f"{InvalidOption.__name__} the limit open_files=101 of `resize` is above the worker's own "
        "hard limit, RLIMIT_NOFILE=100"
    )


@pytest.mark.parametrize("given", [{"memory_mb": 256}, {"cpu_seconds": 5}, {"open_files": 64}])
def test_linux_supports_limits_of_memory_time_and_files(given: Mapping[str, int]):
    assert limits.unsupported(Limits(**given)) == []


def test_a_limit_of_processes_does_nothing_for_root_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (told,) = limits.unsupported(Limits(processes=10))
    assert "the limit processes does nothing here" in told
    assert limits.unsupported(Limits(processes=10), grouped=True) == []
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert limits.unsupported(Limits(processes=10)) == []


def test_a_limit_that_the_system_does_not_have_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(resource, "RLIMIT_AS")
    (told,) = limits.unsupported(Limits(memory_mb=256))
    assert told == "the limit memory_mb does nothing here: this system has no RLIMIT_AS"
    limits.check(Limits(memory_mb=256))


def test_macos_does_not_enforce_a_limit_of_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.platform", "darwin")
    (told,) = limits.unsupported(Limits(memory_mb=256))
    assert "macOS does not enforce" in told
