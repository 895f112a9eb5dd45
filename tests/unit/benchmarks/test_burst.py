import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.gauges import Start
from benchmarks.parts.burst import lines, told

MS = 1_000_000
DUE_MS = 10_000
AHEAD = 7_000
"""By how many milliseconds the wall clock of these tests is ahead of the other one."""


def start(number: int, at_ms: int) -> Start:
    return Start(number=number, monotonic_ns=(at_ms - AHEAD) * MS, wall_ns=at_ms * MS)


def call(at_ms: int) -> int:
    return (at_ms - AHEAD) * MS


BURST = [start(0, DUE_MS + 5), start(1, DUE_MS + 500), start(2, DUE_MS + 900)]


def test_urgent_jobs_count_from_their_call_to_their_start():
    found = told(
        [*BURST, start(3, 10_150), start(4, 10_330)], {3: call(10_100), 4: call(10_300)}, 3, DUE_MS
    )

    assert found["early"] == 0
    assert found["first_ms"] == 5
    assert found["last_ms"] == 900
    assert found["urgent"] == 2
    assert found["urgent_p50_ms"] == 30
    assert found["urgent_p99_ms"] == 50


def test_an_urgent_job_that_had_to_wait_for_the_end_counts_as_well():
    found = told(
        [*BURST, start(3, 10_150), start(4, 12_000)], {3: call(10_100), 4: call(10_300)}, 3, DUE_MS
    )

    assert found["urgent"] == 2
    assert found["urgent_max_ms"] == 1_700


def test_urgent_jobs_before_and_after_do_not_count():
    starts = [*BURST, start(3, 9_901), start(4, 10_110), start(5, 11_001)]

    found = told(starts, {3: call(9_900), 4: call(10_100), 5: call(11_000)}, 3, DUE_MS)

    assert found["urgent"] == 1
    assert found["urgent_p99_ms"] == 10


def test_an_urgent_job_that_is_lost_or_doubled_is_an_error():
    once = [*BURST, start(3, 10_110)]
    with pytest.raises(BenchmarkError):
        told(once, {3: call(10_100), 4: call(10_200)}, 3, DUE_MS)
    with pytest.raises(BenchmarkError):
        told([*once, start(3, 10_111)], {3: call(10_100)}, 3, DUE_MS)


def test_the_table_says_which_promises_were_kept():
    found = told([*BURST, start(3, 10_350)], {3: call(10_100)}, 3, DUE_MS)

    assert [line.mark for line in lines(found)] == ["ok", "ok", "", "", "MISSED"]
