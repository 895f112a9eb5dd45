"""At-most-once jobs start only after their mark is in the store."""

import asyncio
from dataclasses import replace

import pytest

from lamplighter.model.errors import StoreBusy
from lamplighter.model.job import Delivery, ErrorInfo
from lamplighter.model.outcome import Cancelled, Failed, Misfit, Released, Succeeded
from lamplighter.worker import outcomes
from lamplighter.worker.executor import MARGIN
from lamplighter.worker.link import Started
from lamplighter.worker.run import Run, Stop
from lamplighter.worker.starter import Starter
from tests.unit.worker.fakes import make_engine, make_run, turns, until
from tests.unit.worker.test_alone import Processes
from tests.unit.worker.test_executor import Bench as ExecutorBench


class Bench(ExecutorBench):
    """An executor and its starter, whose store answers as it is told."""

    def __init__(self, slots: int = 4) -> None:
        super().__init__(slots)
        self.jobs = (engine := make_engine()).jobs
        self.called: list[int] = []
        self.starter = Starter(
            engine,
            wanted=lambda run: run.number in self.executor.marking,
            on_marked=self.executor.marked,
        )
        self.executor.mark = self.starter.add

    def run(self, number: int, *, once: bool = True) -> Run:
        async def work():
            self.called.append(number)

        run = make_run(work, number)
        delivery = Delivery.AT_MOST_ONCE if once else Delivery.AT_LEAST_ONCE
        run.claim = replace(run.claim, job=replace(run.claim.job, delivery=delivery))
        return run

    def marks(self) -> list[list[int]]:
        return [[int(one.id) for one in batch] for batch in self.jobs.recorded]


@pytest.fixture
async def bench():
    bench = Bench()
    bench.starter.start()
    yield bench
    await bench.starter.stop()


async def test_a_handler_is_called_after_its_mark_and_the_report(bench):
    bench.jobs.gate = asyncio.Event()
    run = bench.run(0)
    bench.executor.offer([run])
    await turns()
    assert (bench.called, bench.link.of(Started)) == ([], [])
    assert bench.executor.shared.free == 3

    bench.jobs.gate.set()
    await until(lambda: 0 in bench.outcomes)

    assert bench.outcomes[0] == Succeeded(None)
    assert bench.marks() == [[0]]
    assert bench.jobs.recorded[0][0].started
    assert run.claim.started
    assert len(bench.link.of(Started)) == 1
    assert (bench.executor.shared.free, bench.executor.marking) == (4, {})


async def test_starts_that_come_together_are_marked_by_one_write(bench):
    bench.executor.offer([bench.run(number) for number in range(4)])
    await until(lambda: len(bench.outcomes) == 4)

    assert bench.marks() == [[0, 1, 2, 3]]


async def test_what_comes_while_one_batch_is_marked_forms_the_next(bench):
    bench.jobs.gate = asyncio.Event()
    bench.executor.offer([bench.run(0)])
    await turns()
    for number in (1, 2, 3):
        bench.executor.offer([bench.run(number)])
    bench.jobs.gate.set()
    await until(lambda: len(bench.outcomes) == 4)

    assert bench.marks() == [[0], [1, 2, 3]]


async def test_other_jobs_start_at_once_and_write_nothing(bench):
    bench.jobs.gate = asyncio.Event()
    bench.executor.offer([bench.run(0), bench.run(1, once=False)])
    await until(lambda: 1 in bench.outcomes)

    assert bench.called == [1]
    bench.jobs.gate.set()
    await until(lambda: 0 in bench.outcomes)
    assert bench.marks() == [[0]]


async def test_a_handler_whose_mark_is_refused_is_not_called(bench):
    bench.jobs.held = {f"{0:026d}": False}
    bench.executor.offer([bench.run(0), bench.run(1)])
    await until(lambda: len(bench.outcomes) == 2)

    assert bench.called == [1]
    assert bench.outcomes[0] is None
    assert bench.executor.shared.free == 4


async def test_a_job_whose_arguments_do_not_fit_is_not_marked(bench):
    run = bench.run(0)
    run.claim = replace(run.claim, job=replace(run.claim.job, args=b'{"unknown": 1}'))
    bench.executor.offer([run, bench.run(1)])
    await until(lambda: len(bench.outcomes) == 2)

    assert isinstance(bench.outcomes[0], Misfit)
    assert (bench.called, bench.marks()) == ([1], [[1]])
    assert bench.executor.shared.free == 4


async def test_a_mark_is_repeated_until_the_store_answers(bench):
    bench.jobs.failures = [StoreBusy("busy", hint="wait"), StoreBusy("busy", hint="wait")]
    bench.executor.offer([bench.run(0)])
    await until(lambda: 0 in bench.outcomes)

    assert bench.called == [0]


async def test_a_locked_job_starts_later_and_holds_up_no_other(bench):
    bench.jobs.locked = {f"{0:026d}"}
    bench.executor.offer([bench.run(0), bench.run(1)])
    await until(lambda: 1 in bench.outcomes)
    bench.executor.offer([bench.run(2)])
    await until(lambda: 2 in bench.outcomes)
    assert bench.called == [1, 2]

    bench.jobs.locked.clear()
    await until(lambda: 0 in bench.outcomes)

    assert bench.called == [1, 2, 0]
    assert bench.marks() == [[1], [2], [0]]


async def test_a_mark_that_breaks_is_tried_again(bench):
    bench.jobs.failures = [RuntimeError("broken")]
    bench.executor.offer([bench.run(0)])
    await until(lambda: 0 in bench.outcomes)

    assert bench.called == [0]


@pytest.mark.parametrize(("why", "outcome"), [(Stop.LOST, None), (Stop.CANCEL, Cancelled())])
async def test_what_is_stopped_while_its_start_is_marked_never_starts(bench, why, outcome):
    bench.jobs.gate = asyncio.Event()
    bench.executor.offer([bench.run(0)])
    await turns()

    bench.executor.stop([0], why)
    assert bench.outcomes == {0: outcome}
    bench.jobs.gate.set()
    await until(bench.marks)
    await turns()

    assert bench.called == []
    assert bench.executor.shared.free == 4


async def test_what_is_being_marked_when_the_child_ends_is_given_back(bench):
    bench.jobs.gate = asyncio.Event()
    bench.executor.offer([bench.run(0)])
    await turns()

    bench.executor.close()
    assert bench.outcomes == {0: Released()}
    bench.jobs.gate.set()
    await until(bench.marks)
    await turns()

    assert bench.called == []


async def test_a_claim_that_nobody_keeps_is_noticed_while_its_start_is_marked(bench):
    bench.jobs.gate = asyncio.Event()
    run = bench.run(0)
    run.vouched_at = 100.0
    bench.executor.offer([run])

    assert bench.executor.unvouched(kept_since=0.0, believed=10.0, now=110.0) == [0]
    bench.jobs.gate.set()


async def test_after_a_standstill_a_marked_claim_is_asked_about_and_marked_only_once(bench):
    bench.jobs.gate = asyncio.Event()
    run = bench.run(0)
    run.vouched_at = bench.pulse._last
    bench.executor.offer([run])
    await turns()
    bench.pulse._last -= 10.0  # the loop stood still
    bench.jobs.gate.set()
    await until(lambda: run.claim.started)
    await turns()
    assert bench.called == []

    asked, asked_at = bench.pulse.answered()
    assert asked == [0]
    bench.executor.confirm(asked, [0], asked_at)
    await until(lambda: 0 in bench.outcomes)

    assert (bench.called, bench.marks()) == ([0], [[0]])


# ── in a process of its own ──────────────────────────────────────────────────────────────────


class Place(Processes):
    """A place for handlers that run alone, which ends at once what has not begun."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.executor = bench.executor

    def stop(self, run, why) -> None:
        super().stop(run, why)
        run.stop = why
        self.executor.ended_alone(run, outcomes.stopped(run))


@pytest.fixture
async def lone(bench):
    bench.executor.alone.slots = 2
    bench.executor.processes = bench.place = Place(bench)
    yield bench
    if bench.jobs.gate is not None:
        bench.jobs.gate.set()


async def test_a_start_alone_is_marked_when_its_process_is_ready(lone):
    run, other = lone.run(0), lone.run(1, once=False)
    lone.executor.offer([run, other])
    await turns()
    assert (lone.place.prepared, lone.place.started) == ([0], [1])
    assert (lone.marks(), lone.executor.alone.free) == ([], 0)
    assert [[n for n, _ in said.runs] for said in lone.link.of(Started)] == [[1]]

    lone.executor.prepared(run)
    await until(lambda: lone.place.started == [1, 0])

    assert lone.marks() == [[0]]
    assert run.claim.started
    ((number, hard_end),) = lone.link.of(Started)[-1].runs
    assert (number, hard_end) == (0, run.hard_end + MARGIN)
    assert not run.cold
    assert (lone.executor.alone.free, lone.executor.marking) == (0, {})
    lone.executor.ended_alone(run, Succeeded())
    assert (lone.executor.alone.free, lone.outcomes) == (1, {0: Succeeded()})


async def test_starts_alone_whose_processes_are_ready_together_are_marked_by_one_write(lone):
    runs = [lone.run(number) for number in range(2)]
    lone.executor.offer(runs)
    for run in runs:
        lone.executor.prepared(run)
    await until(lambda: len(lone.place.started) == 2)

    assert lone.marks() == [[0, 1]]


async def test_a_start_alone_whose_mark_is_refused_leaves_its_process_to_others(lone):
    lone.jobs.held = {f"{0:026d}": False}
    run = lone.run(0)
    lone.executor.offer([run])
    lone.executor.prepared(run)
    await until(lambda: 0 in lone.outcomes)

    assert lone.place.stopped == [(0, Stop.LOST)]
    assert (lone.place.started, lone.outcomes) == ([], {0: None})
    assert lone.executor.alone.free == 2


async def test_a_run_whose_process_cannot_start_was_never_marked(lone):
    run = lone.run(0)
    lone.executor.offer([run])
    failed = Failed(ErrorInfo(type="ProcessNotStarted", message="no"), began=False)
    lone.executor.ended_alone(run, failed)
    lone.executor.prepared(run)
    await turns()

    assert (lone.marks(), lone.outcomes) == ([], {0: failed})
    assert (lone.executor.alone.free, lone.executor.marking) == (2, {})


@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize(
    ("why", "outcome"),
    [(Stop.LOST, None), (Stop.CANCEL, Cancelled()), (Stop.DRAIN, Released())],
)
async def test_what_is_stopped_before_its_start_alone_is_marked_never_starts(
    lone, why, outcome, ready
):
    lone.jobs.gate = asyncio.Event()
    run = lone.run(0)
    lone.executor.offer([run])
    if ready:
        lone.executor.prepared(run)
        await turns()

    if why is Stop.DRAIN:
        lone.executor.close()
    else:
        lone.executor.stop([0], why)
    assert (lone.place.stopped, lone.outcomes) == ([(0, why)], {0: outcome})
    lone.jobs.gate.set()
    await turns()

    assert lone.place.started == []
    assert lone.executor.alone.free == 2


async def test_what_is_stopped_while_its_report_leaves_does_not_start_alone(lone):
    lone.link.blocked = True
    run = lone.run(0)
    lone.executor.offer([run])
    lone.executor.prepared(run)
    await until(lambda: run.claim.started)
    lone.executor.stop([0], Stop.CANCEL)
    assert lone.outcomes == {0: Cancelled()}

    lone.link.unblocked.set()
    await turns()

    assert lone.place.started == []
    assert lone.executor.alone.free == 2


async def test_a_claim_that_nobody_keeps_is_noticed_while_its_process_starts(lone):
    run = lone.run(0)
    run.vouched_at = 100.0
    lone.executor.offer([run])

    assert lone.executor.unvouched(kept_since=0.0, believed=10.0, now=110.0) == [0]
