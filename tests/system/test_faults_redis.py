"""The fault run in small, on Redis: its server is hurt in every way, and workers go on.

Each scenario starts a server of its own. `make faults ENGINE=redis` plays them long.
"""

import sys

import pytest

from tests.faults import mutants
from tests.faults.places import REDIS, SHARDED
from tests.faults.report import summary
from tests.faults.scenarios import (
    clock,
    load,
    memory,
    network,
    redis_failover,
    redis_server,
    schedules,
    schedules_clock,
    schedules_takeover,
)
from tests.faults.scenarios.outage import SMALL

LEASE = 1.5

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found through /proc"),
    pytest.mark.timeout(150),
]


def held(verdict):
    assert not verdict.violations, summary([verdict])


@pytest.mark.parametrize("ground", [REDIS, SHARDED], ids=["one shard", "four shards"])
def test_kills_under_load_lose_and_repeat_nothing(tmp_path, ground):
    plan = load.Plan(
        lease=LEASE, seconds=5, children=1, kill_rate=2.0, backlog=60, rate=8.0, drain=90
    )

    verdict = load.run(tmp_path / "load", "small", plan, ground=ground)

    held(verdict)
    assert sum(verdict.kills.values()) >= 3


def test_nothing_acknowledged_is_lost_with_a_server_that_was_killed(tmp_path):
    held(redis_server.run_kill(tmp_path / "kill", "small", rounds=2, longest_down=1.0, plan=SMALL))


def test_only_what_waited_for_a_slow_disk_is_lost_with_a_server_that_was_killed(tmp_path):
    held(redis_server.run_slow_disk(tmp_path / "disk", "small", plan=SMALL))


def test_work_goes_on_after_the_server_put_off_all_commands(tmp_path):
    held(redis_server.run_pause(tmp_path / "pause", "small", lengths=[1.0, 3.0], plan=SMALL))


def test_work_goes_on_after_one_command_kept_the_server_busy(tmp_path):
    held(redis_server.run_busy(tmp_path / "busy", "small", lengths=[1.0, 3.0], plan=SMALL))


def test_a_server_that_forgets_its_scripts_is_told_them_again(tmp_path):
    held(redis_server.run_forgetting(tmp_path / "forget", "small", seconds=3, plan=SMALL))


@pytest.mark.parametrize("ground", [REDIS, SHARDED], ids=["one shard", "four shards"])
def test_an_answer_lost_after_its_script_ran_changes_nothing(tmp_path, ground):
    folder = tmp_path / "cut"

    held(network.run_cut(folder, "small", seconds=4, chance=0.3, plan=SMALL, ground=ground))


def test_work_goes_on_after_the_server_said_nothing_for_a_while(tmp_path):
    held(network.run_hang(tmp_path / "hang", "small", seconds=2, plan=SMALL, ground=REDIS))


def test_only_what_the_replica_had_not_received_is_lost(tmp_path):
    held(redis_failover.run_asynchronous(tmp_path / "failover", "small", plan=SMALL))


def test_clients_leave_a_server_that_was_made_a_replica(tmp_path):
    held(redis_failover.run_demoted(tmp_path / "demoted", "small", plan=SMALL))


def test_nothing_is_lost_where_each_write_waits_for_the_replica(tmp_path):
    held(redis_failover.run_replicated(tmp_path / "failover", "small", plan=SMALL))


def test_full_memory_is_told_and_outlived(tmp_path):
    held(memory.run(tmp_path / "memory", "small", seconds=1, plan=memory.SMALL))


def test_work_goes_on_after_the_clock_of_the_server_jumped(tmp_path):
    held(clock.run(tmp_path / "clock", "small", plan=SMALL))


@pytest.mark.parametrize("ground", [REDIS, SHARDED], ids=["one shard", "four shards"])
def test_every_occurrence_is_resolved_once_by_coordinators_that_each_believe_to_be_alone(
    tmp_path, ground
):
    held(schedules.run(tmp_path / "schedules", "small", schedules.SMALL, ground=ground))


def test_what_a_killed_coordinator_had_in_hand_is_fired_soon(tmp_path):
    held(schedules_takeover.run(tmp_path / "takeover", ground=REDIS))


def test_what_a_killed_coordinator_had_in_hand_is_fired_soon_by_one_of_many(tmp_path):
    held(schedules_takeover.run_many(tmp_path / "takeover", ground=REDIS))


def test_schedules_go_on_after_the_clock_jumped(tmp_path):
    held(schedules_clock.run(tmp_path / "clock", ground=REDIS))


def test_every_bug_planted_in_the_engine_is_noticed(tmp_path):
    told = []

    survivors = mutants.hunt(tmp_path, engine="redis", processes=False, say=told.append)

    assert survivors == [], "\n".join(told)
