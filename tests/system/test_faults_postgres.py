"""The fault run in small, on PostgreSQL: its server is hurt in every way, and workers go on.

Each scenario starts a server of its own. `make faults ENGINE=postgres` plays them long.
"""

import sys

import pytest

from tests.faults import mutants
from tests.faults.places import POSTGRES
from tests.faults.report import summary
from tests.faults.scenarios import (
    disk,
    failover,
    load,
    network,
    schedules,
    schedules_clock,
    schedules_takeover,
    server,
)
from tests.faults.scenarios.outage import SMALL

LEASE = 1.5

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found through /proc"),
    pytest.mark.timeout(150),
]


def held(verdict):
    assert not verdict.violations, summary([verdict])


def test_kills_under_load_lose_and_repeat_nothing(tmp_path):
    plan = load.Plan(
        lease=LEASE, seconds=5, children=1, kill_rate=2.0, backlog=55, rate=8.0, drain=90
    )

    verdict = load.run(tmp_path / "load", "small", plan, ground=POSTGRES)

    held(verdict)
    assert sum(verdict.kills.values()) >= 3


def test_work_goes_on_after_the_server_was_killed(tmp_path):
    held(server.run_kill(tmp_path / "kill", "small", rounds=2, longest_down=1.0, plan=SMALL))


def test_work_goes_on_after_connections_were_ended(tmp_path):
    held(server.run_terminated(tmp_path / "terminated", "small", seconds=3, plan=SMALL))


def test_an_answer_lost_after_its_commit_changes_nothing(tmp_path):
    held(network.run_cut(tmp_path / "cut", "small", seconds=4, chance=0.3, plan=SMALL))


def test_work_goes_on_after_the_server_said_nothing_for_a_while(tmp_path):
    held(network.run_hang(tmp_path / "hang", "small", seconds=2, plan=SMALL))


def test_only_what_the_standby_had_not_received_is_lost(tmp_path):
    held(failover.run_asynchronous(tmp_path / "failover", "small", plan=SMALL))


def test_nothing_is_lost_with_a_standby_that_every_commit_waits_for(tmp_path):
    held(failover.run_synchronous(tmp_path / "failover", "small", behind=0.5, plan=SMALL))


def test_a_full_disk_is_told_and_outlived(tmp_path):
    held(disk.run(tmp_path / "disk", "small", seconds=1, plan=disk.SMALL))


def test_every_occurrence_is_resolved_once_by_coordinators_that_each_believe_to_be_alone(tmp_path):
    held(schedules.run(tmp_path / "schedules", "small", schedules.SMALL, ground=POSTGRES))


def test_what_a_killed_coordinator_had_in_hand_is_fired_soon(tmp_path):
    held(schedules_takeover.run(tmp_path / "takeover", ground=POSTGRES))


def test_what_a_killed_coordinator_had_in_hand_is_fired_soon_by_one_of_many(tmp_path):
    held(schedules_takeover.run_many(tmp_path / "takeover", ground=POSTGRES))


def test_schedules_go_on_after_the_clock_jumped(tmp_path):
    held(schedules_clock.run(tmp_path / "clock", ground=POSTGRES))


def test_every_bug_planted_in_the_engine_is_noticed(tmp_path):
    told = []

    survivors = mutants.hunt(tmp_path, engine="postgres", processes=False, say=told.append)

    assert survivors == [], "\n".join(told)
