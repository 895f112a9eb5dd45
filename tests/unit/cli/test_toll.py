"""What killing a child costs, counted on a real store."""

from types import SimpleNamespace

import pytest

from lamplighter import runtime
from lamplighter.cli.toll import Auditor, Toll
from lamplighter.connect import connect
from lamplighter.model.errors import StoreUnreachable
from lamplighter.model.ids import compose
from lamplighter.model.job import NewJob
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Released, Succeeded
from lamplighter.model.retry import Retry
from lamplighter.observability import events
from lamplighter.port.values import ClaimRequest
from lamplighter.worker.ledger import Ledger


@pytest.fixture
async def engine(tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/jobs.db")
    await engine.open()
    yield engine
    await engine.close()


def new_id() -> str:
    return compose(runtime.now_ms(), 0, runtime.random_bits(70))


async def claims(engine, count: int):
    jobs = [NewJob(id=new_id(), type="x", args=b"{}") for _ in range(count)]
    await engine.jobs.submit(jobs)
    request = ClaimRequest(
        nonce=runtime.nonce(),
        worker="w-1/c0",
        queues=(("default", count),),
        types=("x",),
        limit=count,
        lease_ms=30_000,
    )
    return (await engine.jobs.claim(request)).claims


async def settled(engine, claim, outcome):
    await engine.jobs.settle([settle(claim, outcome, retry=Retry())])


def started(toll: Toll, *ids: str) -> None:
    for job_id in ids:
        toll.on_event(events.JOB_STARTED, {"job_id": job_id, "type": "x"})


class Worker:
    """A worker with one child, which can be killed once."""

    def __init__(self, held) -> None:
        ledger = Ledger()
        for number, claim in enumerate(held):
            job = (claim.job.id, claim.fence.lease, claim.job.type)
            ledger.claimed(claim.fence.nonce, number, [job], 0.0)
        self.children = [SimpleNamespace(pid=4711, ledger=ledger)]

    def kill_one(self) -> int | None:
        return self.children.pop().pid if self.children else None


async def test_jobs_of_a_killed_child_are_followed_until_they_are_out_of_its_hands(engine):
    toll, told = Toll(), []
    toll.on_recovered = lambda kill, seconds: told.append((kill.pid, seconds))
    first, second = await claims(engine, 2)

    kill = toll.kill(Worker([first, second]))

    assert kill is not None
    assert kill.pid == 4711
    assert str(toll) == "killed 1 · lost 0 · recovering…"
    await toll.check(engine.inspector)
    await settled(engine, first, Succeeded())
    await toll.check(engine.inspector)
    assert toll.pending
    assert not told
    await settled(engine, second, Released(started=True))
    await toll.check(engine.inspector)
    assert not toll.pending
    ((pid, seconds),) = told
    assert pid == 4711
    assert 0 <= seconds < 60
    assert str(toll) == f"killed 1 · lost 0 · recovered in {seconds:.1f} s"


async def test_a_worker_without_a_ready_child_is_not_counted():
    toll, worker = Toll(), Worker([])
    assert toll.kill(worker) is not None
    assert toll.kill(worker) is None
    assert toll.killed == 1


async def test_a_job_the_store_does_not_know_is_lost(engine):
    toll = Toll()
    (claim,) = await claims(engine, 1)
    missing = new_id()
    started(toll, claim.job.id, missing)
    await toll.check(engine.inspector)
    await toll.check(engine.inspector)
    assert toll.lost == {missing}
    assert "lost 1" in str(toll)


async def test_a_job_of_a_killed_child_that_the_store_does_not_know_is_lost(engine):
    toll = Toll()
    (claim,) = await claims(engine, 1)
    await settled(engine, claim, Succeeded())
    unknown = SimpleNamespace(job=SimpleNamespace(id=new_id(), type="x"), fence=claim.fence)
    toll.kill(Worker([claim, unknown]))
    await toll.check(engine.inspector)
    assert toll.lost == {unknown.job.id}
    assert not toll.pending


async def test_a_job_that_has_ended_may_be_removed_like_any_other(engine):
    toll = Toll()
    first, second, third = (new_id() for _ in range(3))
    started(toll, first, second, third)
    toll.on_event(events.JOB_SETTLED, {"job_id": first, "state": "succeeded"})
    toll.on_event(events.JOB_SETTLED, {"job_id": second, "state": "dead"})
    toll.on_event(events.JOB_SETTLED, {"job_id": third, "state": "waiting"})
    await toll.check(engine.inspector)
    assert toll.lost == {third}


async def test_however_many_jobs_start_the_watched_ones_are_bounded_and_all_get_their_turn(engine):
    toll = Toll()
    held = await claims(engine, 120)
    started(toll, *(claim.job.id for claim in held))
    started(toll, *(new_id() for _ in range(2000)))
    for _ in range(40):
        await toll.check(engine.inspector)
    assert len(toll.lost) == 880


async def test_a_store_that_does_not_answer_says_nothing_about_lost_jobs():
    class Away:
        async def job(self, job_id: str) -> None:
            raise StoreUnreachable("gone", hint="", value="")

    toll = Toll()
    started(toll, new_id())
    assert await Auditor(Away(), toll).step() > 0
    assert not toll.lost
