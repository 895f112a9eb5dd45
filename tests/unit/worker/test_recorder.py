"""Writing what runs have to say, into a real store that sometimes fails."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from lamplighter import runtime
from lamplighter.connect import connect
from lamplighter.model import lifecycle
from lamplighter.model.errors import StoreBusy
from lamplighter.model.job import Fence, JobState
from lamplighter.model.journal import LOG_LIMIT, Journal, Line, Progress, unpack
from lamplighter.model.outcome import Succeeded
from lamplighter.observability import events
from lamplighter.port.conformance.builders import claim, new_job, submit
from lamplighter.port.values import Recorded
from lamplighter.worker import recorder as module
from lamplighter.worker.notebook import Notebook, Relay
from lamplighter.worker.recorder import Recorder
from lamplighter.worker.run import Run
from tests.unit.worker.fakes import make_run, until


class Moved(runtime.System):
    """The real runtime, with a clock that can be moved on."""

    def __init__(self) -> None:
        super().__init__()
        self.by = 0.0

    def boottime(self) -> float:
        return super().boottime() + self.by


class Jobs:
    """The store's own verbs; `record` can be made to fail before or after it has written."""

    def __init__(self, inner) -> None:
        self._inner = inner
        self.calls: list[list] = []
        self.fails: list[str] = []
        self.gate: asyncio.Event | None = None

    def __getattr__(self, name: str):
        return getattr(self._inner, name)

    async def record(self, recordings):
        self.calls.append(list(recordings))
        if self.gate is not None:
            await self.gate.wait()
        failing = self.fails.pop(0) if self.fails else ""
        if failing == "before":
            raise StoreBusy("busy", hint="")
        if failing == "wrong":
            raise RuntimeError("wrong")
        if failing == "first is locked":
            answers = await self._inner.record(recordings[1:])
            return [Recorded(recordings[0].id, held=False, busy=True), *answers]
        answers = await self._inner.record(recordings)
        if failing == "after":
            raise StoreBusy("the reply was lost", hint="")
        return answers


class Bench:
    def __init__(self, engine) -> None:
        self.inner = engine
        self.jobs = Jobs(engine.jobs)
        self.engine = SimpleNamespace(
            jobs=self.jobs, capabilities=engine.capabilities, wakeup=engine.wakeup
        )
        self.running: dict[int, Run] = {}
        self.clock = Moved()
        self.recorder = Recorder(self.engine, self.running.values)

    async def start(self, count: int = 1) -> list[Run]:
        """Submit and claim jobs, as runs that write into notebooks."""
        await submit(self.inner, *(new_job() for _ in range(count)))
        runs = []
        for taken in await claim(self.inner, count):
            run = make_run(work, len(self.running))
            run.claim, run.make_notes = taken, Notebook.of
            self.running[run.number] = run
            runs.append(run)
        return runs

    async def end(self, run: Run) -> None:
        """Settle a run with its last words."""
        del self.running[run.number]
        settlement = lifecycle.settle(run.claim, Succeeded())
        words = self.recorder.last_words(run)
        (settled,) = await self.inner.jobs.settle([replace(settlement, journal=words)])
        assert settled.state is JobState.SUCCEEDED

    async def lines(self, run: Run) -> list[Line]:
        pieces = await self.inner.inspector.logs(run.claim.job.id, limit=10_000)
        return [line for one in pieces for line in unpack(one.piece.data)]

    async def texts(self, run: Run) -> list[str]:
        return [line.text for line in await self.lines(run)]

    async def progress(self, run: Run) -> Progress | None:
        record = await self.inner.inspector.job(run.claim.job.id)
        assert record is not None
        return record.progress


async def work() -> None:
    pass


@pytest.fixture
async def bench(tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/jobs.db", deadline=5.0)
    await engine.open()
    bench = Bench(engine)
    with runtime.install(bench.clock):
        yield bench
        await bench.recorder.stop()
        await engine.close()


async def test_news_of_all_runs_is_written_in_one_call(bench):
    one, two, silent = await bench.start(3)
    one.write("out", "a\nhalf")
    two.write("info", "b\n")
    two.progress(1, 2, "note")

    assert await bench.recorder.step() == module.EVERY

    assert await bench.texts(one) == ["a"]
    assert [(line.level, line.text) for line in await bench.lines(two)] == [("info", "b")]
    assert await bench.progress(two) == Progress(done=1, total=2, note="note")
    assert await bench.texts(silent) == []
    assert silent.notes is None
    assert [len(call) for call in bench.jobs.calls] == [2]


async def test_without_news_the_store_is_left_alone(bench):
    (run,) = await bench.start()
    await bench.recorder.step()
    run.write("out", "half a line")
    await bench.recorder.step()
    assert bench.jobs.calls == []


async def test_the_loop_writes_by_itself(bench):
    (run,) = await bench.start()
    bench.recorder.start()
    run.write("out", "a\n")
    await until(lambda: bench.jobs.calls)
    await bench.recorder.stop()
    assert await bench.texts(run) == ["a"]


async def test_last_words_are_what_the_store_does_not_have(bench):
    (run, silent) = await bench.start(2)
    run.write("out", "a\n")
    await bench.recorder.step()
    run.write("out", "b\nhalf")

    await bench.end(run)
    await bench.end(silent)

    assert await bench.texts(run) == ["a", "b", "half"]
    assert bench.recorder.last_words(silent) is None


@pytest.mark.parametrize("failing", ["before", "after"])
async def test_a_store_that_fails_loses_nothing_and_doubles_nothing(bench, failing):
    (run,) = await bench.start()
    run.write("out", "a\n")
    run.progress(1, None, "")
    bench.jobs.fails = [failing]
    with pytest.raises(StoreBusy):
        await bench.recorder.step()

    run.write("out", "b\n")
    await bench.recorder.step()
    assert await bench.texts(run) == ["a", "b"]
    assert await bench.progress(run) == Progress(done=1)
    assert bench.recorder._kept == {}


async def test_news_of_a_job_that_somebody_has_locked_is_written_later(bench):
    one, two = await bench.start(2)
    one.write("out", "a\n")
    one.progress(1, None, "")
    two.write("out", "b\n")
    bench.jobs.fails = ["first is locked"]
    await bench.recorder.step()
    assert (await bench.texts(one), await bench.texts(two)) == ([], ["b"])

    one.write("out", "c\n")
    await bench.recorder.step()

    assert await bench.texts(one) == ["a", "c"]
    assert await bench.progress(one) == Progress(done=1)
    assert bench.recorder._kept == {}


async def test_a_store_that_is_away_until_the_end_gets_everything_with_the_settle(bench):
    (run,) = await bench.start()
    bench.jobs.fails = ["before"] * 20
    for number in range(20):
        run.write("out", f"{number}\n")
        with pytest.raises(StoreBusy):
            await bench.recorder.step()
    await bench.end(run)
    assert await bench.texts(run) == [str(number) for number in range(20)]


async def test_what_is_kept_for_a_store_that_is_away_is_bounded(bench):
    (run,) = await bench.start()
    bench.jobs.fails = ["before"] * 30
    for _ in range(30):
        run.write("out", "".join(f"{number:099}\n" for number in range(1000)))
        with pytest.raises(StoreBusy):
            await bench.recorder.step()
        assert bench.recorder._kept[run].size <= LOG_LIMIT
    await bench.end(run)

    lines = await bench.lines(run)
    assert lines[-1].number == 29_999
    gaps = [i for i in range(1, len(lines)) if lines[i].number != lines[i - 1].number + 1]
    assert len(gaps) == 1
    assert lines[0].number == 0


async def test_a_run_that_ends_while_its_news_is_on_the_way_loses_nothing(bench):
    for fails in ([], ["before"], ["after"]):
        bench.jobs.gate, bench.jobs.fails = asyncio.Event(), fails
        bench.jobs.calls.clear()
        (run,) = await bench.start()
        run.write("out", "a\n")
        step = asyncio.ensure_future(bench.recorder.step())
        await until(lambda: bench.jobs.calls)

        run.write("out", "b\n")
        await bench.end(run)
        bench.jobs.gate.set()
        await asyncio.gather(step, return_exceptions=True)

        assert await bench.texts(run) == ["a", "b"]
        assert bench.recorder._kept == {}
        assert bench.recorder._told_at == {}


async def test_a_chatty_run_keeps_its_first_lines_and_its_last_through_lost_replies(bench):
    (run,) = await bench.start()
    bench.jobs.fails = ["", "after", "before", "", "after"] * 20
    for turn in range(60):
        run.write("out", "".join(f"{turn * 100 + place:0299}\n" for place in range(100)))
        await asyncio.gather(bench.recorder.step(), return_exceptions=True)
        stored = await bench.inner.inspector.logs(run.claim.job.id, limit=10_000)
        assert sum(len(one.piece.data) for one in stored) <= LOG_LIMIT
    run.write("out", "the end")
    await bench.end(run)

    lines = await bench.lines(run)
    assert all(int(line.text) == line.number for line in lines[:-1])
    assert lines[0].number == 0
    assert (lines[-1].number, lines[-1].text) == (6000, "the end")
    gaps = [i for i in range(1, len(lines)) if lines[i].number != lines[i - 1].number + 1]
    assert len(gaps) == 1
    assert len(lines) * 299 > LOG_LIMIT * 0.75


async def test_progress_is_written_about_once_a_second_and_the_last_word_is_not_lost(bench):
    (run,) = await bench.start()
    for done in range(8):
        run.progress(done, 10, "")
        await bench.recorder.step()
        bench.clock.by += 0.25
    assert len(bench.jobs.calls) == 2
    bench.clock.by += 1
    await bench.recorder.step()
    assert await bench.progress(run) == Progress(done=7, total=10)

    run.progress(8, 10, "")
    run.write("out", "a\n")
    await bench.recorder.step()
    assert await bench.texts(run) == ["a"], "lines do not wait for the progress"
    assert await bench.progress(run) == Progress(done=7, total=10)
    await bench.end(run)
    assert await bench.progress(run) == Progress(done=8, total=10)


async def test_calls_are_bounded_by_bytes_and_those_left_out_come_first_next_time(bench):
    runs = await bench.start(40)
    for turn in range(3):
        for run in runs:
            run.write("out", f"{turn}" * 1000 + "\n" + ("x" * 1000 + "\n") * 300)
    bench.jobs.calls.clear()
    await bench.recorder.step()

    sizes = [sum(r.journal.size for r in call) for call in bench.jobs.calls]
    assert max(sizes) < module.CALL_BYTES + LOG_LIMIT
    assert module.STEP_BYTES <= sum(sizes) < module.STEP_BYTES + max(sizes)
    heard = [r.id for call in bench.jobs.calls for r in call]
    assert len(set(heard)) == len(heard) < 40

    runs[0].write("out", "again\n" * 10)
    await bench.recorder.step()
    then = [r.id for call in bench.jobs.calls for r in call][len(heard) :]
    assert not set(then[:10]) & set(heard)
    for _ in range(3):
        await bench.recorder.step()
    assert {r.id for call in bench.jobs.calls for r in call} == {r.claim.job.id for r in runs}


async def test_calls_are_bounded_by_count(bench, monkeypatch):
    monkeypatch.setattr(bench.recorder, "_limit", 3)
    for run in await bench.start(8):
        run.write("out", "a\n")
    await bench.recorder.step()
    assert [len(call) for call in bench.jobs.calls] == [3, 3, 2]


async def test_a_claim_that_was_lost_is_no_error_and_leaves_nothing_behind(bench):
    lost, kept = await bench.start(2)
    lost.claim = replace(lost.claim, fence=Fence(lost.claim.fence.lease, "0" * 16))
    for run in (lost, kept):
        run.write("out", "a\n")
        run.progress(1, 2, "")
    await bench.recorder.step()
    assert await bench.texts(lost) == []
    assert await bench.texts(kept) == ["a"]

    lost.progress(2, 2, "")
    await bench.recorder.step()
    del bench.running[lost.number]
    await bench.recorder.step()
    assert bench.recorder._kept == {}
    assert list(bench.recorder._told_at) == [kept]


async def test_what_cannot_be_written_does_not_stand_in_the_way_for_ever(bench):
    (run,) = await bench.start()
    told = []
    stop = events.listen(lambda name, fields: told.append((name, fields.get("service"))))
    bench.jobs.fails = ["wrong"]
    run.write("out", "a\n")
    bench.recorder.start()
    await until(lambda: bench.jobs.calls)
    run.write("out", "b\n")
    await until(lambda: len(bench.jobs.calls) > 1)
    await bench.recorder.stop()
    stop()
    assert await bench.texts(run) == ["b"]
    assert (events.SERVICE_ERROR, "record") in told


async def test_a_relay_is_written_like_a_notebook(bench):
    (run,) = await bench.start()
    elsewhere = Notebook(began=0.0)
    relay = run.notes = Relay()
    elsewhere.write("out", "a\n")
    relay.put(elsewhere.take() or Journal())
    await bench.recorder.step()
    elsewhere.write("out", "half")
    relay.put(elsewhere.take(last=True) or Journal())
    await bench.end(run)
    assert await bench.texts(run) == ["a", "half"]
