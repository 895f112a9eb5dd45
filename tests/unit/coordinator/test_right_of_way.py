"""For how long firing goes first."""

import pytest

from lamplighter.coordinator.right_of_way import RECOVERY, RightOfWay


def test_it_is_granted_while_there_is_a_rush():
    way = RightOfWay(10.0, 0.0)

    assert not way.ask(1.0, rush=False)
    assert way.ask(2.0, rush=True)
    assert way.ask(5.0, rush=True)
    assert not way.ask(6.0, rush=False)


def test_it_ends_when_the_allowance_is_used_up():
    way = RightOfWay(10.0, 0.0)

    granted = [way.ask(float(second), rush=True) for second in range(12)]

    assert granted == [True] * 10 + [False] * 2


def test_a_lasting_rush_gets_a_small_part_of_the_time():
    way = RightOfWay(10.0, 0.0)
    steps = [way.ask(step / 10, rush=True) for step in range(10_000)]

    share = sum(steps[1_000:]) / len(steps[1_000:])

    assert share == pytest.approx(RECOVERY, rel=0.2)
    assert sum(steps[:100]) == 100


def test_the_allowance_comes_back_but_does_not_grow():
    way = RightOfWay(10.0, 0.0)
    way.ask(0.0, rush=True)
    way.ask(10.0, rush=False)

    way.ask(10.0 + 5.0 / RECOVERY, rush=True)
    assert way.ask(14.9 + 5.0 / RECOVERY, rush=True)
    assert not way.ask(15.1 + 5.0 / RECOVERY, rush=True)

    way = RightOfWay(10.0, 0.0)
    way.ask(1e6, rush=True)
    assert not way.ask(1e6 + 10.0, rush=True)


@pytest.mark.parametrize("rush", [True, False])
def test_without_an_allowance_it_is_never_granted(rush):
    way = RightOfWay(0.0, 0.0)

    assert not any(way.ask(float(second), rush=rush) for second in range(100))
