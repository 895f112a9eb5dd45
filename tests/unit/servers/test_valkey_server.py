"""What the fault runs do to Redis servers: replicas follow and take over, clocks and disks lie."""

import time
from pathlib import Path

import pytest

from tests.servers.valkey import any_program, replica, start
from tests.servers.warp import Warp

PATIENCE = 20.0


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)


@pytest.fixture
def server(tmp_path: Path):
    with start(any_program(), tmp_path) as server:
        yield server


def test_a_replica_has_what_the_primary_had_and_gets_what_follows(server, tmp_path: Path):
    with server.client() as client:
        client.set("before", "1")
    with replica(server, tmp_path) as other, server.client() as client, other.client() as reader:
        client.set("after", "2")
        until(lambda: reader.get("after") == b"2", "the later write")

        assert reader.get("before") == b"1"


def test_a_promoted_replica_is_a_primary_also_after_a_restart(server, tmp_path: Path):
    with server.client() as client:
        client.set("a", "1")
    with replica(server, tmp_path) as other:
        server.kill9()
        other.promote()
        other.restart()
        with other.client() as client:
            assert client.info("replication")["role"] == "master"
            assert client.get("a") == b"1"
            assert client.set("a", "2")


def test_a_changed_setting_outlives_a_restart(server):
    server.configure(maxmemory_policy="noeviction", maxmemory="7000000")
    server.restart()
    with server.client() as client:
        assert client.config_get("maxmemory")["maxmemory"] == "7000000"


def server_time(client) -> float:
    seconds, micros = client.eval("return redis.call('TIME')", 0)
    return int(seconds) + int(micros) / 1e6


@pytest.mark.parametrize("ahead", [3_600_250, -3_600_750])
def test_the_clock_of_a_server_can_be_set(tmp_path: Path, ahead: int):
    warp = Warp(tmp_path)
    started = start(any_program(), tmp_path, environment=warp.environment)
    with started as server, server.client() as client:
        assert abs(server_time(client) - time.time()) < 1
        warp.set_clock(ahead)
        until(
            lambda: abs(server_time(client) - time.time() - ahead / 1000) < 0.1,
            "the clock to be set",
        )
        warp.set_clock(0)
        until(lambda: abs(server_time(client) - time.time()) < 0.1, "the clock to be right")


def test_a_server_answers_while_its_disk_is_slow_and_forgets_that_when_it_is_killed(tmp_path: Path):
    warp = Warp(tmp_path)
    with start(any_program(), tmp_path, environment=warp.environment) as server:
        warp.slow_disk(1.5)
        with server.client() as client:
            count = 0
            deadline = time.monotonic() + PATIENCE
            while not client.info("persistence")["aof_buffer_length"] > 500:
                assert time.monotonic() < deadline
                client.set(f"key-{count}", "value")
                count += 1
        server.kill9()
        warp.slow_disk(0)
        server.run()
        with server.client() as client:
            assert 0 < count - client.dbsize() < count
