"""Which runs go to a process of their own, and what their times are."""

import asyncio

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.isolation import Isolation
from lamplighter.model.outcome import AbandonCause, Abandoned, Released, Succeeded, TimedOut
from lamplighter.worker import outcomes
from lamplighter.worker.executor import MARGIN, WARM_UP, Executor
from lamplighter.worker.kinds import Kinds
from lamplighter.worker.link import Convicted, Extended, Started
from lamplighter.worker.pulse import Pulse
from lamplighter.worker.run import Stop
from tests.unit.worker.fakes import Clock, FakeLink, make_claim, make_run, registry_of, until

SETTINGS = Settings(hard_after=10.0)


async def work():
    return "beside"


async def waits():
    await asyncio.sleep(60)


class Processes:
    """A place for handlers that run alone, in which nothing happens by itself."""

    idle = 0

    def __init__(self) -> None:
        self.prepared: list[int] = []
        self.started: list[int] = []
        self.stopped: list[tuple[int, Stop]] = []
        self.ticks: list[float] = []

    def prepare(self, run) -> None:
        self.prepared.append(run.number)

    def start(self, run) -> None:
        self.started.append(run.number)

    def stop(self, run, why) -> None:
        self.stopped.append((run.number, why))

    def tick(self, now: float) -> None:
        self.ticks.append(now)


class Bench:
    def __init__(self, alone: int = 2) -> None:
        self.link = FakeLink()
        self.outcomes: dict[int, object] = {}
        self.executor = Executor(
            settings=SETTINGS,
            slots=4,
            link=self.link,
            pulse=Pulse(self.link),
            on_end=lambda run, outcome: self.outcomes.__setitem__(run.number, outcome),
            on_room=lambda: None,
        )
        self.executor.alone.slots = alone
        self.executor.processes = self.processes = Processes()


def suspect(number: int):
    run = make_run(work, number)
    run.claim = make_claim(number, suspect=True)
    return run


def isolated(number: int, **options):
    return make_run(work, number, isolation=Isolation.PROCESS, **options)


async def test_with_a_place_for_it_every_run_is_alone():
    bench = Bench()
    bench.executor.offer([make_run(work, 0), suspect(1)])

    assert bench.processes.started == [0, 1]
    assert (bench.executor.shared.busy, bench.executor.alone.busy) == (0, 2)


async def test_without_one_all_run_beside_each_other():
    bench = Bench()
    bench.executor.processes = None
    bench.executor.offer([suspect(1), isolated(2)])
    await until(lambda: len(bench.outcomes) == 2)

    assert bench.processes.started == []


async def test_those_who_find_no_process_wait():
    bench = Bench(alone=1)
    bench.executor.offer([isolated(n) for n in range(3)])
    assert bench.processes.started == [0]

    bench.executor.ended_alone(bench.executor.running[0], Succeeded())
    await until(lambda: bench.processes.started == [0, 1])
    assert bench.outcomes == {0: Succeeded()}


async def test_the_time_of_a_run_alone_begins_when_its_process_has_it():
    clock = Clock()
    with runtime.install(clock):
        bench = Bench()
        run = isolated(0, timeout=60.0)
        bench.executor.offer([run])
        clock.seconds += 20
        bench.executor.tick()
        assert run.stop is None

        bench.executor.sent(run)
        told = [(message.at, message.runs[0][1]) for message in bench.link.of(Started)]
        clock.seconds += 60
        bench.executor.tick()

    assert told == [
        (1000, 1000 + WARM_UP + 60 + 10 + MARGIN),
        (1020, 1020 + 60 + 10 + MARGIN),
    ]
    assert bench.processes.stopped == [(0, Stop.TIMEOUT)]
    assert bench.processes.ticks == [1020.0, 1080.0]


async def test_the_time_of_a_run_in_a_warm_process_begins_at_once():
    bench = Bench()
    bench.processes.idle = 1
    first, second = isolated(0, timeout=60.0), isolated(1, timeout=60.0)
    bench.executor.offer([first, second])
    bench.executor.sent(first)
    bench.executor.sent(second)

    assert (first.cold, second.cold) == (False, True)
    assert [[n for n, _ in message.runs] for message in bench.link.of(Started)] == [[0, 1], [1]]


async def test_a_lost_run_alone_is_told_even_when_it_was_told_before():
    bench = Bench()
    bench.executor.offer([isolated(0)])
    bench.executor.stop([0], Stop.CANCEL)
    bench.executor.stop([0], Stop.TIMEOUT)
    bench.executor.stop([0], Stop.LOST)

    assert bench.processes.stopped == [(0, Stop.CANCEL), (0, Stop.LOST)]


async def test_a_crash_alone_sentences_its_type_unless_that_runs_alone_anyway():
    bench = Bench()
    bench.executor.offer([suspect(0), isolated(1)])
    crashed = Abandoned(AbandonCause.CRASHED_ALONE, how="ended with code 3")
    for number in (0, 1):
        bench.executor.ended_alone(bench.executor.running[number], crashed)

    assert bench.link.of(Convicted) == [Convicted("work", "ended with code 3")]


async def test_a_sentenced_type_is_left_to_those_who_run_it_alone():
    clock = Clock()
    with runtime.install(clock):
        bench = Bench()
        kinds = Kinds(registry_of(work, waits), bench.executor.is_sentenced)
        bench.executor.isolate({"work": 600.0})
        assert (kinds.shared(), kinds.alone()) == (("waits",), ("work",))

        clock.seconds += 601
        assert (kinds.shared(), kinds.alone()) == (("waits", "work"), ())


async def test_what_waits_in_a_shared_process_when_its_type_is_sentenced_is_given_back():
    bench = Bench()
    bench.executor.processes = None
    bench.executor.shared.slots = 0
    bench.executor.offer([make_run(work, 0)])
    bench.executor.isolate({"work": 600.0})

    assert bench.outcomes == {0: Released()}


async def test_what_is_claimed_while_its_type_is_sentenced_is_given_back():
    bench = Bench()
    bench.executor.processes = None
    bench.executor.isolate({"work": 600.0})
    bench.executor.offer([make_run(work, 0)])

    assert bench.outcomes == {0: Released()}
    assert not bench.link.of(Started)


@pytest.mark.parametrize(("of_type", "after"), [(None, 10.0), (3.0, 3.0)])
async def test_progress_gives_more_time_up_to_the_timeout(of_type, after):
    clock = Clock()
    with runtime.install(clock):
        bench = Bench()
        bench.executor.processes = None
        run = make_run(waits, 0, timeout=100.0)
        run.type.stalled_after = 30.0
        run.type.hard_after = of_type
        bench.executor.offer([run])
        assert bench.link.of(Started)[0].runs == [(0, 1030.0 + after)]

        clock.seconds += 25
        run.progress(1, None, "")
        bench.executor.tick()
        clock.seconds += 25
        bench.executor.tick()
        assert run.stop is None
        run.progress(2, None, "")
        bench.executor.tick()
        clock.seconds += 30
        bench.executor.tick()

    extended = [message.runs for message in bench.link.of(Extended)]
    assert extended == [[(0, 1055.0 + after)], [(0, 1080.0 + after)]]
    assert run.stop is Stop.TIMEOUT
    assert "no progress for 30 s" in outcomes.out_of_time(run).message


@pytest.mark.parametrize(
    ("seconds", "words"), [(30.0, "no progress for 30 s"), (None, "timeout of 60 s")]
)
async def test_the_end_of_a_run_alone_says_which_of_its_times_was_over(seconds, words):
    bench = Bench()
    run = isolated(0, timeout=60.0)
    run.type.stalled_after = seconds
    bench.executor.offer([run])
    bench.executor.sent(run)
    bench.executor.ended_alone(run, TimedOut(outcomes.out_of_time(run, killed=True)))

    assert words in bench.outcomes[0].error.message
    assert "killed" in bench.outcomes[0].error.message
