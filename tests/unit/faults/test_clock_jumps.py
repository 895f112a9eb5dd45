"""What processes tell by their own clock is judged by the store's, wherever that has jumped."""

import pytest

from tests.faults.history import Cancel, History, Run
from tests.faults.scenarios.clock import BETWEEN_MS, Jumps

JUMPS = ((100_000, 9_000), (200_000, 0), (300_000, -9_000))


@pytest.fixture
def jumps() -> Jumps:
    made = Jumps()
    for at, ahead in JUMPS:
        made.add(at, ahead)
    return made


@pytest.mark.parametrize(
    ("at", "ahead"),
    [
        (99_999, 0),
        (100_000, 9_000),
        (199_999, 9_000),
        (200_000 + BETWEEN_MS - 1, 9_000),  # handed out before the clock went back
        (200_000 + BETWEEN_MS, 0),
        (300_000 + BETWEEN_MS, -9_000),
    ],
)
def test_a_run_started_when_the_store_says_so(jumps: Jumps, at: int, ahead: int):
    told = History(runs=[Run("a", "doze", 1, 1, 0.0, at)])

    jumps.adjust(told)

    assert told.runs[0].started_ms == at + ahead


@pytest.mark.parametrize(("at", "ahead"), [(99_999, 0), (150_000, 9_000), (350_000, 9_000)])
def test_a_cancel_was_answered_after_all_hand_outs_before_it(jumps: Jumps, at: int, ahead: int):
    told = History(cancels=[Cancel("a", "done", at)])

    jumps.adjust(told)

    assert told.cancels[0].answered_ms == at + ahead
