import os
import subprocess
import sys

import pytest

from benchmarks.cpu import main_thread_ns, parse_ps_time, process_ns, waited_ns
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Cost, paired_ratio, percentile, rounded, typical
from benchmarks.rss import Growth


def test_a_percentile_is_the_sample_that_so_many_do_not_exceed():
    samples = [float(n) for n in range(100, 0, -1)]

    assert percentile(samples, 50) == 50
    assert percentile(samples, 99) == 99
    assert percentile(samples, 100) == 100


def test_of_few_samples_the_99th_percentile_is_the_largest():
    assert percentile([3.0, 1.0, 2.0], 99) == 3.0
    assert percentile([7.0], 50) == 7.0


def test_no_samples_have_no_percentile():
    with pytest.raises(ValueError, match="at least one"):
        percentile([], 50)


def test_a_slow_moment_of_the_machine_does_not_change_a_paired_ratio():
    small = [100.0, 300.0, 100.0]
    large = [120.0, 360.0, 120.0]

    assert paired_ratio(large, small) == pytest.approx(1.2)


def test_pairs_must_be_complete():
    with pytest.raises(ValueError, match="zip"):
        paired_ratio([1.0], [1.0, 2.0])


def test_cpu_per_job_is_the_sum_over_all_roles():
    cost = Cost(1_000, 0.5, {"driver": 1_000_000, "children": 60_000_000, "store": 9_000_000})

    assert cost.cpu_us() == pytest.approx(70)
    assert cost.cpu_us(without="driver") == pytest.approx(69)
    assert cost.jobs_per_s == 2_000
    assert cost.split() == pytest.approx({"driver": 1, "children": 60, "store": 9})


def test_repeated_phases_are_reported_by_their_median():
    costs = [Cost(100, 1.0, {"producer": cpu}) for cpu in (1_000_000, 9_000_000, 2_000_000)]

    found = typical(costs)

    assert found["cpu_us"] == 20
    assert found["jobs_per_s"] == 100
    assert found["cpu_us_by_role"] == {"producer": 20}
    assert found["jobs"] == 300


def test_numbers_keep_four_digits():
    assert rounded(12.34567) == 12.35
    assert rounded(0.000123456) == 0.0001235
    assert rounded(123456.0) == 123500.0


def test_cpu_time_of_a_process_only_grows():
    before = process_ns(os.getpid())
    sum(range(100_000))

    assert process_ns(os.getpid()) > before
    loop = main_thread_ns(os.getpid())
    assert loop is None or loop > 0


def test_a_process_that_is_gone_is_an_error():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    with pytest.raises(BenchmarkError, match=str(ended.pid)):
        process_ns(ended.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_cpu_time_of_ended_children_is_not_lost():
    before = waited_ns(os.getpid())
    work = "n = 0\nwhile __import__('time').process_time() < 0.2: n += 1"
    subprocess.run([sys.executable, "-c", work], check=True)

    # It counts in ticks of ten milliseconds, for user and system each.
    assert waited_ns(os.getpid()) - before >= 150_000_000


def test_memory_that_was_given_back_counts_as_growth():
    growth = Growth(os.getpid())
    block = bytearray(32 << 20)
    if sys.platform != "linux":
        growth.look()
    del block

    growth.look()

    assert 25 < growth.mib < 60


def test_memory_of_a_process_that_is_gone_is_an_error():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    with pytest.raises(BenchmarkError, match=str(ended.pid)):
        Growth(ended.pid)


def test_times_of_ps_are_read():
    assert parse_ps_time("  0:01.25\n") == 1_250_000_000
    assert parse_ps_time("1:02:03") == 3_723_000_000_000
