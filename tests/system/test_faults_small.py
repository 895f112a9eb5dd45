"""The fault run in small: every scenario once, on short leases. `make faults` plays it long."""

import sys
from dataclasses import replace

import pytest

from tests.faults.places import SQLITE
from tests.faults.report import summary
from tests.faults.scenarios import (
    busy,
    exhaustion,
    group,
    load,
    poison,
    rescue,
    schedules,
    schedules_clock,
    schedules_takeover,
    sigterm,
    stopped,
    throughput,
)

LEASE = 1.5
SLOW_CHILD = """
import os, time
if "/c" in os.environ.get("LAMPLIGHTER_CHILD", ""):
    time.sleep(4)
"""
"""Run by every interpreter before anything else: a machine on which children start slowly."""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found through /proc"),
    pytest.mark.timeout(150),
]


def held(verdict):
    assert not verdict.violations, summary([verdict])


def test_kills_under_load_lose_and_repeat_nothing(tmp_path):
    plan = load.Plan(
        lease=LEASE, seconds=7, children=2, kill_rate=2.0, backlog=60, rate=8.0, drain=90
    )

    verdict = load.run(tmp_path / "load", "small", plan)

    held(verdict)
    assert sum(verdict.kills.values()) >= 3


def test_a_stopped_child_keeps_its_jobs(tmp_path):
    held(stopped.run_child(tmp_path / "child", LEASE))


def test_late_writes_of_a_stopped_worker_are_refused(tmp_path):
    held(stopped.run_worker(tmp_path / "worker", LEASE))


def test_children_of_a_stopped_supervisor_stop_by_themselves(tmp_path):
    held(stopped.run_supervisor(tmp_path / "supervisor", LEASE))


def test_what_may_run_once_is_not_run_again_after_a_stop(tmp_path):
    held(stopped.run_alone(tmp_path / "alone", LEASE))


def test_what_may_run_once_and_kills_its_process_at_the_start_is_not_run_again(tmp_path):
    held(stopped.run_killers(tmp_path / "killers", LEASE))


def test_jobs_of_a_killed_worker_are_claimable_soon(tmp_path):
    held(rescue.run(tmp_path / "rescue", LEASE))


def test_handlers_that_block_their_process_run_once(tmp_path):
    held(busy.run(tmp_path / "busy", LEASE))


def test_late_writes_of_a_stopped_worker_and_all_its_processes_are_refused(tmp_path):
    held(group.run(tmp_path / "group", LEASE))


def test_a_slot_comes_back_from_a_lost_handler_that_hangs(tmp_path):
    held(group.run_hanging(tmp_path / "hanging", LEASE))


def test_a_second_sigterm_hurries_a_worker_and_charges_nobody(tmp_path):
    held(sigterm.run(tmp_path / "sigterm", LEASE, "small", rounds=2, longest=2.0))


def test_other_jobs_go_on_when_processes_threads_or_both_are_used_up(tmp_path):
    held(exhaustion.run(tmp_path / "exhaustion", LEASE))


def test_harm_is_paid_for_by_who_did_it_and_leaves_no_process_behind(tmp_path):
    held(poison.run_harm(tmp_path / "harm", LEASE))


@pytest.mark.parametrize("kind", ["hang", "stall"])
def test_what_hangs_keeps_others_from_running_for_a_moment_only(tmp_path, kind):
    held(poison.run_capacity(tmp_path / "capacity", LEASE, hanging=(kind,)))


def test_how_long_a_child_takes_to_start_is_not_held_against_what_replaces_it(tmp_path):
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text(SLOW_CHILD)
    ground = replace(SQLITE, source=slow)
    plan = poison.Plan(
        lease=LEASE, kinds=(), hanging=("stall",), back=poison.CAPACITY_BACK * 1.5, patience=60
    )

    verdict = poison.run(tmp_path / "capacity", "small", plan, ground=ground)

    held(verdict)


def test_every_occurrence_is_resolved_once_by_coordinators_that_each_believe_to_be_alone(tmp_path):
    held(schedules.run(tmp_path / "schedules", "small", schedules.SMALL))


def test_what_a_killed_coordinator_had_in_hand_is_fired_soon(tmp_path):
    held(schedules_takeover.run(tmp_path / "takeover"))


def test_what_a_killed_coordinator_had_in_hand_is_fired_soon_by_one_of_many(tmp_path):
    held(schedules_takeover.run_many(tmp_path / "takeover"))


def test_schedules_go_on_after_the_clock_jumped(tmp_path):
    held(schedules_clock.run(tmp_path / "clock"))


def test_a_type_with_killers_among_its_jobs_soon_runs_alone(tmp_path):
    plan = throughput.Plan(lease=LEASE, jobs=228, ms=300, share=None)

    held(throughput.run(tmp_path / "throughput", "small", plan))
