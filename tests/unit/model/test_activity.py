"""Minutes of activity: adding up, filling gaps, and estimating percentiles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.model.activity import (
    LAG_BOUNDS_MS,
    LAGS,
    MINUTE_MS,
    NOTHING,
    NUMBERS,
    Minute,
    Tally,
    added,
    filled,
    lag_class,
    last_minute,
    minute_of,
    percentile,
    tally_of,
)

NOW = 1_700_000_000_000
HERE = minute_of(NOW)


def lags(**classes: int) -> tuple[int, ...]:
    """Counts by the upper bound of their class, `over` for the last."""
    names = [*(f"to_{bound}" for bound in LAG_BOUNDS_MS), "over"]
    return tuple(classes.get(name, 0) for name in names)


def test_the_numbers_of_a_tally_are_read_as_they_were_written():
    tally = tally_of(range(1, NUMBERS + 1))
    assert tally.numbers == tuple(range(1, NUMBERS + 1))
    assert (tally.started, tally.stale, tally.lags[0]) == (1, 8, 9)


def test_numbers_that_an_older_version_did_not_write_are_nothing():
    assert tally_of([3]) == Tally(started=3)


def test_a_tally_of_nothing_is_false():
    assert not NOTHING
    assert Tally(stale=1)
    assert Tally(lags=lags(over=1))


def test_tallies_are_added_number_by_number():
    assert added([Tally(started=1, lags=lags(to_10=2)), Tally(started=2, failed=1)]) == Tally(
        started=3, failed=1, lags=lags(to_10=2)
    )
    assert added([]) == NOTHING


@pytest.mark.parametrize(
    ("lag", "bound"), [(0, 10), (10, 10), (10.5, 25), (25, 25), (3_600_000, 3_600_000)]
)
def test_a_lag_belongs_below_the_bound_that_it_does_not_exceed(lag, bound):
    assert LAG_BOUNDS_MS[lag_class(lag)] == bound


def test_lags_above_all_bounds_have_a_class_of_their_own():
    assert lag_class(3_600_001) == LAGS - 1


def test_gaps_are_filled_and_the_present_minute_is_the_last():
    known = Minute(HERE - MINUTE_MS, Tally(started=1))
    outside = Minute(HERE - 3 * MINUTE_MS, Tally(started=9))
    assert filled([known, outside], NOW, 3) == [
        Minute(HERE - 2 * MINUTE_MS, NOTHING),
        known,
        Minute(HERE, NOTHING),
    ]


def test_nobody_started_means_no_percentile():
    assert percentile(NOTHING.lags, 0.5) is None


@pytest.mark.parametrize(
    ("counts", "share", "expected"),
    [
        (lags(to_10=10), 0.5, 5.0),
        (lags(to_10=10), 1.0, 10.0),
        (lags(to_100=4), 0.5, 75.0),
        (lags(to_10=50, to_25=50), 0.5, 10.0),
        (lags(to_10=50, to_25=50), 0.75, 17.5),
        (lags(to_10=99, to_60000=1), 0.99, 10.0),
        (lags(to_10=98, to_60000=2), 0.99, 37_500.0),
        (lags(over=5), 0.5, 3_600_000.0),
    ],
)
def test_percentiles_are_spread_evenly_inside_a_class(counts, share, expected):
    assert percentile(counts, share) == pytest.approx(expected)


@given(st.lists(st.floats(0, 3_600_000), min_size=1, max_size=200), st.floats(0.01, 1))
def test_a_percentile_lies_in_the_class_of_the_true_one(values, share):
    counts = [0] * LAGS
    for value in values:
        counts[lag_class(value)] += 1
    rank = max(1, -int(-share * len(values) // 1))
    true = sorted(values)[rank - 1]
    upper = LAG_BOUNDS_MS[lag_class(true)]
    lower = ([0, *LAG_BOUNDS_MS])[lag_class(true)]
    found = percentile(counts, share)
    assert found is not None
    assert lower - 1e-6 <= found <= upper + 1e-6


def test_the_last_minute_takes_the_part_of_the_one_before_that_is_not_older():
    minutes = [Minute(HERE - MINUTE_MS, Tally(started=60)), Minute(HERE, Tally(started=7))]
    assert last_minute(minutes, HERE).started == 67
    assert last_minute(minutes, HERE + 45_000).started == 15 + 7
    assert last_minute(minutes[1:], HERE + 45_000).started == 7
    assert last_minute([], HERE) == NOTHING
