"""Replays at a bounded speed."""

import io

import pytest

from lamplighter import runtime
from lamplighter.cli.pace import Pace, Tally


class Clock(runtime.System):
    """Time that passes only where somebody waits."""

    def __init__(self):
        super().__init__()
        self.now = 100.0
        self.slept = []

    def monotonic(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock():
    clock = Clock()
    with runtime.install(clock):
        yield clock


@pytest.mark.parametrize(("rate", "portion"), [(None, 500), (1000, 200), (50, 10), (0.5, 1)])
def test_a_portion_is_what_a_fifth_of_a_second_allows(clock, rate, portion):
    assert Pace(rate).portion(500) == portion


@pytest.mark.parametrize("rate", [0.5, 7, 50, 1000])
async def test_no_more_than_the_rate_pass(clock, rate):
    pace, done, began = Pace(rate), 0, clock.now
    for _ in range(40):
        some = pace.portion(500)
        await pace.wait(some)
        done += some
        assert done - some <= rate * (clock.now - began) + 1e-6
    assert done - some == pytest.approx(rate * (clock.now - began))


async def test_time_that_the_work_took_is_not_waited_for_again(clock):
    pace = Pace(10)
    await pace.wait(2)
    clock.now += 0.15
    await pace.wait(2)
    assert clock.slept == [pytest.approx(0.05)]


async def test_without_a_rate_nobody_waits(clock):
    await Pace(None).wait(1_000_000)
    assert clock.slept == []


def test_how_far_it_is_is_said_every_five_seconds(clock, capsys):
    tally = Tally(1_200, "run again")
    for _ in range(12):
        clock.now += 1
        tally.add(100)
    assert capsys.readouterr().err.splitlines() == [
        "500 of about 1,200 run again",
        "1,000 of about 1,200 run again",
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_bar(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with Tally(200, "held") as tally:
        tally.add(100)
        clock.now += 10
        tally.add(100)
    assert "50%" in terminal.getvalue()
    assert "100%" in terminal.getvalue()


def test_where_the_end_is_not_known_there_is_no_bar(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with Tally(10_000, "held", at_least=True) as tally:
        clock.now += 10
        tally.add(12_000)
    assert terminal.getvalue() == "12,000 held\n"


def test_what_stops_says_how_far_it_came(clock, capsys):
    def work():
        with Tally(200, "held") as tally:
            tally.add(100)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert capsys.readouterr().err == "stopped: 100 held, the rest is as it was\n"
