"""For how long firing goes first."""

import pytest

from lamplighter.coordinator.right_of_way import RECOVERY, RightOfWay


def test_it_is_granted_while_there_is_a_rush():
    way = RightOfWay(10.0, 2.0, 0.0)

    assert not way.ask(1.0, rush=False)
    assert way.ask(2.0, rush=True)
    assert way.ask(5.0, rush=True)
    assert not way.ask(6.0, rush=False)


def test_it_ends_when_the_allowance_is_used_up():
    way = RightOfWay(10.0, 2.0, 0.0)

    granted = [way.ask(float(second), rush=True) for second in range(12)]

    assert granted == [True] * 10 + [False] * 2


@pytest.mark.parametrize("most", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("step", [0.1, 0.5, 2.0])
def test_a_lasting_rush_gets_a_small_part_of_the_time(most, step):
    way = RightOfWay(most, 2.0, 0.0)
    first = [way.ask(number * step, rush=True) for number in range(round(most / step))]
    assert all(first)

    began = len(first)
    steps = [way.ask(number * step, rush=True) for number in range(began, began + 10_000)]

    assert sum(steps) / len(steps) == pytest.approx(RECOVERY / (1 + RECOVERY), rel=0.1)


def test_what_nobody_made_way_for_is_not_used_up():
    way = RightOfWay(10.0, 2.0, 0.0)
    way.ask(0.0, rush=True)

    assert way.ask(60.0, rush=True), "others have forgotten it after two seconds"
    assert way.ask(67.9, rush=True)


def test_the_allowance_comes_back_but_does_not_grow():
    way = RightOfWay(10.0, 100.0, 0.0)
    way.ask(0.0, rush=True)
    way.ask(10.0, rush=False)

    way.ask(10.0 + 5.0 / RECOVERY, rush=True)
    assert way.ask(14.9 + 5.0 / RECOVERY, rush=True)
    assert not way.ask(15.1 + 5.0 / RECOVERY, rush=True)

    way = RightOfWay(10.0, 100.0, 0.0)
    way.ask(1e6, rush=True)
    assert not way.ask(1e6 + 10.0, rush=True)


@pytest.mark.parametrize("rush", [True, False])
def test_without_an_allowance_it_is_never_granted(rush):
    way = RightOfWay(0.0, 2.0, 0.0)

    assert not any(way.ask(float(second), rush=rush) for second in range(100))
