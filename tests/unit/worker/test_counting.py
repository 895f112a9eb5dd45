"""What a child counts, what its supervisor makes of it, and how it reaches the store."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from lamplighter import runtime
from lamplighter.connect import connect
from lamplighter.model.activity import LAG_BOUNDS_MS, NOTHING, Tally
from lamplighter.model.errors import StoreUnreachable
from lamplighter.model.job import ErrorInfo, JobState
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Cancelled, Failed, Rejected, Released, Snoozed, Succeeded
from lamplighter.observability import metrics
from lamplighter.observability.calls import Calls
from lamplighter.observability.exposition import text_of
from lamplighter.observability.health import FireHealth, Health, LoopHealth
from lamplighter.port.values import SettleAnswer, Settled
from lamplighter.service import Service
from lamplighter.worker import counting
from lamplighter.worker.accounts import Accounts, Tallier
from lamplighter.worker.counting import Counts
from lamplighter.worker.link import Counted
from tests.unit.worker.fakes import make_run

BOOM = ErrorInfo(type="ValueError", message="boom")


def work() -> None: ...


def run_due(ago_ms: int, queue: str = "default"):
    run = make_run(work)
    job = replace(run.claim.job, due_at_ms=runtime.now_ms() - ago_ms, queue=queue)
    run.claim = replace(run.claim, job=job)
    return run


def settled(outcome, *, state=None, answer=SettleAnswer.DONE):
    run = make_run(work)
    settlement = settle(run.claim, outcome)
    return run, settlement, Settled(settlement.id, answer, state or settlement.next.state)


# ── the child ────────────────────────────────────────────────────────────────────────────────


def test_starts_are_sorted_by_how_late_they_were():
    counts = Counts(Calls())
    counts.started([run_due(0), run_due(70_000), run_due(-5_000)])
    lags, total = counts.take().lags["default"]
    assert lags[0] == 2
    assert lags[LAG_BOUNDS_MS.index(300_000)] == 1
    assert total == pytest.approx(70, abs=1)


def test_runs_are_sorted_by_how_long_they_took():
    counts = Counts(Calls())
    run = make_run(work)
    counts.ended(run, 5.0)
    assert counts.take() is None, "a run that never began took no time"
    run.started_at = 3.0
    counts.ended(run, 5.0)
    found, total = counts.take().runs["work"]
    assert (sum(found), total) == (1, 2.0)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (settled(Succeeded()), "succeeded"),
        (settled(Failed(BOOM)), "retried"),
        (settled(Rejected("no")), "failed"),
        (settled(Snoozed(5)), "snoozed"),
        (settled(Released()), "snoozed"),
        (settled(Cancelled()), "cancelled"),
        (settled(Failed(BOOM), state=JobState.CANCELLED), "cancelled"),
        (settled(Succeeded(), answer=SettleAnswer.ALREADY), "succeeded"),
    ],
)
def test_ends_are_counted_by_what_was_written(written, name):
    counts = Counts(Calls())
    counts.settled([written])
    assert counts.take().ends == [("work", name, 1)]


def test_a_refused_settlement_is_stale_and_nothing_else():
    counts = Counts(Calls())
    counts.settled([settled(Succeeded(), answer=SettleAnswer.LOST)])
    found = counts.take()
    assert (found.stale, found.ends) == (1, [])


def test_what_was_taken_is_not_told_again():
    calls = Calls()
    counts = Counts(calls)
    calls.answered("claim", 0.002)
    calls.failed("settle")
    counts.started([run_due(0)])
    found = counts.take()
    assert sum(found.calls["claim"][0]) == 1
    assert found.errors == {"settle": 1}
    assert counts.take() is None


def test_a_message_tells_a_bounded_number_of_queues_apart(monkeypatch):
    monkeypatch.setattr(counting, "MOST", 2)
    counts = Counts(Calls())
    counts.started([run_due(0, f"q{number}") for number in range(5)])
    found = counts.take().lags
    assert {name: sum(lags) for name, (lags, _) in found.items()} == {"q0": 1, "q1": 1, "other": 3}


def test_what_was_counted_survives_the_line():
    counts = Counts(Calls())
    counts.started([run_due(0)])
    counts.settled([settled(Succeeded())])
    said = counts.take()
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(said), type=Counted) == said


# ── the supervisor ───────────────────────────────────────────────────────────────────────────


class Rescues(Service):
    name = "rescue"
    rescued = 3

    async def step(self) -> float:
        return 1.0


async def heard() -> Accounts:
    counts = Counts(Calls())
    counts.started([run_due(0), run_due(0)])
    counts.settled([settled(Succeeded()), settled(Failed(BOOM)), settled(Rejected("no"))])
    counts.settled([settled(Succeeded(), answer=SettleAnswer.LOST)])
    accounts = Accounts()
    accounts.loops = (Rescues(),)
    accounts.hear(counts.take())
    return accounts


async def test_a_tally_has_what_happened_since_the_last_one():
    accounts = await heard()
    found = accounts.take()
    assert (found.started, found.lags[0]) == (2, 2)
    assert (found.succeeded, found.retried, found.failed, found.stale) == (1, 1, 1, 1)
    assert found.rescued == 3
    assert accounts.take() == NOTHING


async def test_what_was_buried_counts_too():
    accounts = Accounts()
    run, settlement, answer = settled(Released())
    accounts.buried(run.claim, settlement, answer)
    assert accounts.take() == Tally(snoozed=1)


async def test_metrics_keep_all_that_was_ever_counted():
    accounts = await heard()
    accounts.take()
    accounts.calls.answered("beat", 0.001)
    loop = LoopHealth(name="claim", idle=1.5, restarts=2, late=False, stuck=False)
    meter = accounts.look(Health(loops=(loop,)), slots=4, busy=1, children=2)
    text = text_of(meter)
    for line in (
        'lamplighter_jobs_ended_total{type="work",outcome="succeeded"} 1',
        'lamplighter_retries_total{type="work"} 1',
        'lamplighter_jobs_dead_total{type="work"} 1',
        "lamplighter_leases_expired_total 3",
        "lamplighter_stale_settles_total 1",
        "lamplighter_utilisation_ratio 0.25",
        "lamplighter_child_processes 2",
        'lamplighter_loop_idle_seconds{loop="claim"} 1.5',
        'lamplighter_loop_restarts_total{loop="claim"} 2',
        "lamplighter_worker_well 1",
        'lamplighter_start_lag_seconds_count{queue="default"} 2',
        'lamplighter_store_call_seconds_count{verb="beat"} 1',
    ):
        assert f"{line}\n" in text
    assert meter.numbers(metrics.BUILD_INFO)


def look(accounts: Accounts, fire: FireHealth | None = None) -> str:
    return text_of(accounts.look(Health(loops=(), fire=fire), slots=4, busy=0, children=1))


async def test_what_a_worker_can_run_is_counted_from_zero_on():
    accounts = Accounts()
    accounts.expect(("default", "slow"), ["work", "mail"])
    fire = FireHealth(
        lag_ms=0,
        fired=0,
        queued=0,
        stale=0,
        skipped={"late": 2},
        unreadable=0,
        behind=False,
        newest_first=False,
        resting=False,
    )
    text = look(accounts, fire)
    for line in (
        *(
            f'lamplighter_jobs_ended_total{{type="mail",outcome="{outcome}"}} 0'
            for outcome in ("succeeded", "failed", "retried", "snoozed", "cancelled")
        ),
        'lamplighter_retries_total{type="work"} 0',
        'lamplighter_jobs_dead_total{type="work"} 0',
        'lamplighter_run_seconds_count{type="mail"} 0',
        'lamplighter_start_lag_seconds_count{queue="slow"} 0',
        'lamplighter_store_errors_total{verb="claim"} 0',
        "lamplighter_leases_expired_total 0",
        "lamplighter_stale_settles_total 0",
        'lamplighter_schedules_skipped_total{reason="late"} 2',
        'lamplighter_schedules_skipped_total{reason="missed"} 0',
        'lamplighter_schedules_skipped_total{reason="overlap"} 0',
    ):
        assert f"{line}\n" in text


async def test_of_more_types_than_are_told_apart_those_have_series_that_run():
    accounts = Accounts(2)
    accounts.expect(["default"], ["a", "b", "c"])
    run, settlement, answer = settled(Succeeded())
    accounts.buried(run.claim, settlement, answer)
    text = look(accounts)
    assert 'lamplighter_jobs_ended_total{type="work",outcome="succeeded"} 1\n' in text
    assert 'type="a"' not in text


# ── the store ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def engine(tmp_path: Path):
    engine = connect(f"sqlite:///{tmp_path}/jobs.db")
    await engine.open()
    yield engine
    await engine.close()


class Deaf:
    """An engine whose replies to tallies can be lost, or which cannot be reached."""

    def __init__(self, engine) -> None:
        self._engine = engine
        self.activity = self
        self.reached = self.answers = True
        self.numbers: list[int] = []

    async def tally(self, worker, number, tally):
        self.numbers.append(number)
        if self.reached:
            await self._engine.activity.tally(worker, number, tally)
        if not (self.reached and self.answers):
            raise StoreUnreachable("no", hint="wait")


async def started(engine) -> int:
    return sum(one.tally.started for one in await engine.activity.activity(2))


def taker(*tallies: Tally):
    left = list(tallies)
    return lambda: left.pop(0) if left else NOTHING


async def test_a_tally_reaches_the_store_and_nothing_is_not_told(engine):
    store = Deaf(engine)
    tallier = Tallier(store, "w", taker(Tally(started=2)))
    await tallier.step()
    await tallier.step()
    assert await started(engine) == 2
    assert store.numbers == [1]


async def test_a_tally_whose_reply_was_lost_is_repeated_under_its_number(engine):
    store = Deaf(engine)
    store.answers = False
    tallier = Tallier(store, "w", taker(Tally(started=2), Tally(started=3)))
    assert await tallier.step() > 0, "the work goes on"
    store.answers = True
    await tallier.step()
    assert store.numbers == [1, 1, 2]
    assert await started(engine) == 5


async def test_what_the_store_could_not_take_is_offered_when_it_can(engine):
    store = Deaf(engine)
    store.reached = False
    tallier = Tallier(store, "w", taker(Tally(started=2), Tally(started=3)))
    await tallier.step()
    await tallier.step()
    store.reached = True
    await tallier.step()
    assert await started(engine) == 5


async def test_who_leaves_offers_the_rest(engine):
    tallier = Tallier(engine, "w", taker(NOTHING, Tally(started=4)))
    tallier.start()
    await tallier.stop()
    await tallier.stop()
    assert await started(engine) == 4
