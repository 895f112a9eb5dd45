"""Pauses that double."""

import pytest

from lamplighter import runtime
from lamplighter.backoff import Backoff
from tests.unit.worker.fakes import Clock


def test_pauses_double_up_to_the_longest():
    backoff = Backoff(0.1, 1.0)

    pauses = [backoff.after(failures) for failures in range(7)]

    assert pauses == [0.0, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert backoff.after(1_000_000) == 1.0


@pytest.mark.parametrize(
    ("chance", "pauses"), [(0.0, [0.05, 0.1]), (0.5, [0.1, 0.2]), (1.0, [0.15, 0.3])]
)
def test_chance_makes_a_pause_shorter_or_longer_by_a_part_of_it(chance, pauses):
    class Chance(Clock):
        def random(self) -> float:
            return chance

    with runtime.install(Chance()):
        backoff = Backoff(0.1, 1.0, spread=0.5)

        assert [backoff.after(1), backoff.after(2)] == pytest.approx(pauses)
        assert backoff.after(0) == 0.0
