"""The parts that only Redis has: what they count, and what they call too much."""

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.parts import idle, leases, shards, slow
from lamplighter.engines.redis import scripts

CLAIM = f"EVALSHA {scripts.script('claim').sha.decode()} 1 {{lamp:0}}: 7"


def marks(lines):
    return [line.mark for line in lines]


def test_only_scripts_count_as_slow_and_each_is_named():
    found = slow.told(20_000, [(CLAIM, 12.5), ("INFO memory", 30.0), ("EVALSHA 0123 1 x", 11.0)])

    assert found["slow"] == 2
    assert found["share"] == 1 / 10_000
    assert found["slowest_ms"] == 12.5
    assert found["by_script"] == {"claim": 1, "another": 1}


def test_one_slow_script_in_ten_thousand_is_allowed_and_no_more():
    one, two = [(CLAIM, 12.5)], [(CLAIM, 12.5), (CLAIM, 10.1)]

    assert marks(slow.lines(slow.told(10_000, one) | {"jobs": 5})) == ["", "ok", ""]
    assert marks(slow.lines(slow.told(10_000, two) | {"jobs": 5})) == ["", "MISSED", ""]


def test_what_the_machine_makes_slow_is_shown_beside_ours_and_excuses_nothing():
    slow_count = ("EVAL_RO local n = 0 for i", 12.0)
    ours = slow.told(10_000, [(CLAIM, 12.5), (CLAIM, 11.0), slow_count])
    control = {"counts": 5_000, "counts_slow": 1, "counts_mean_ms": 1.02, "jobs": 5}

    assert ours["slow"] == 2
    found = slow.lines(ours | control)
    assert marks(found) == ["", "MISSED", "", ""]
    assert (found[3].what, found[3].found) == (
        "  of 5,000 that only count for 1 ms, in 10,000",
        "2",
    )


def test_a_server_that_ran_nothing_has_nothing_to_tell():
    with pytest.raises(BenchmarkError, match="no script"):
        slow.told(0, [])


def test_idle_workers_may_cost_a_tenth_of_a_core_and_one_job_wakes_four():
    kept = idle.told([1, 4, 2]) | {"workers": 2_000, "core_share": 0.1, "scripts_per_s": 4_000.0}
    missed = idle.told([1, 5]) | {"workers": 2_000, "core_share": 0.11, "scripts_per_s": 4_000.0}

    assert kept["woken_most"] == 4
    assert marks(idle.lines(kept)) == ["ok", "", "ok"]
    assert marks(idle.lines(missed)) == ["MISSED", "", "MISSED"]


def test_leases_may_cost_a_quarter_of_a_core():
    part = {"leases": 50_000, "renewals_per_s": 25_000.0, "wanted_per_s": 25_000.0}

    assert marks(leases.lines(part | {"core_share": 0.25})) == ["ok", ""]
    assert marks(leases.lines(part | {"core_share": 0.26})) == ["MISSED", ""]


def test_each_number_of_shards_is_compared_with_one():
    part = {"shards": [1, 3, 6], "ratios": [1.0, 1.25, 1.3], "cpu_us": [70.0, 87.5, 91.0]}

    assert marks(shards.lines(part)) == ["", "ok", "MISSED"]
