"""Very many schedules that fall due at once: they are fired, others go on, and health says so."""

import asyncio
from datetime import UTC, datetime

import pytest

from lamplighter import App, runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.coordinator import Firer, fire
from lamplighter.coordinator.fire import BATCH, BEHIND_MS, REST, WAY
from lamplighter.coordinator.plan import MOST_RUNS
from lamplighter.model import ids
from lamplighter.model.job import NewJob
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Succeeded
from lamplighter.observability.health import look
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest
from lamplighter.testing.clock import installed

MANY = 5_000
LONGEST_WAIT = 2.0
"""Seconds; a machine that does much else at the same time needs some of them for itself."""


async def submit_and_claim(engine: Engine) -> float:
    """Do what ordinary jobs need, and give the seconds that the claim took."""
    now = runtime.now_ms()
    job_id = ids.compose(now, 0, runtime.random_bits(ids.RANDOM_BITS))
    await engine.jobs.submit([NewJob(id=job_id, type="charge", args=b"{}", queue="payments")])
    began = runtime.monotonic()
    claimed = await engine.jobs.claim(
        ClaimRequest(
            nonce=runtime.nonce(),
            worker="w-1",
            queues=(("payments", 10),),
            types=("charge",),
            limit=10,
            lease_ms=30_000,
        )
    )
    waited = runtime.monotonic() - began
    (claim,) = claimed.claims
    assert claim.job.id == job_id
    await engine.jobs.settle([settle(claim, Succeeded(b"null"))])
    return waited


@pytest.fixture
def clock():
    with installed(datetime(2030, 6, 1, 12, 0, 30, tzinfo=UTC)) as clock:
        yield clock


@pytest.fixture
async def app(clock, tmp_path):
    async with App(f"sqlite:///{tmp_path / 'jobs.db'}") as app:

        @app.job(queue="reports")
        async def report() -> None: ...

        yield app


@pytest.fixture
async def other(app):
    """The store as another process has it, with a connection of its own."""
    engine = connect(app.settings.url)
    await engine.open()
    yield engine
    await engine.close()


async def put(app: App, number: int) -> None:
    """Put schedules that are due every minute."""
    call = await app.call("report", {})
    make = app.schedules.make
    await app.schedules.put_many(make(f"s-{n:05}", "* * * * *", call) for n in range(number))


async def test_ordinary_jobs_are_claimed_while_very_many_schedules_are_fired(app, other, clock):
    await put(app, MANY)
    firer = Firer(await app.engine(), Settings())
    clock.advance(seconds=30)
    firer.start()
    waits: list[float] = []
    meanwhile = 0
    async with asyncio.timeout(50):
        while firer.counts.fired < MANY:
            before = firer.counts.fired
            waits.append(await submit_and_claim(other))
            meanwhile += before > 0 and firer.counts.fired < MANY
        await firer.stop()

    assert firer.counts.fired == MANY
    assert {one.record.fired async for one in app.schedules.list()} == {1}
    # At least one for every second batch: nobody waits until all is fired.
    assert meanwhile >= MANY / BATCH / 2
    assert max(waits) < LONGEST_WAIT


TWO = 2 * BATCH


@pytest.fixture
def one_by_one(monkeypatch):
    """Let a step fire no more than two batches, one after the other."""
    monkeypatch.setattr(fire, "EMBEDDED_LANES", 1)
    monkeypatch.setattr(fire, "BATCHES", 1)


@pytest.mark.usefixtures("one_by_one")
async def test_who_has_more_to_fire_than_in_a_step_leaves_a_part_of_the_time_to_others(app, clock):
    await put(app, TWO + 1)
    firer = Firer(await app.engine(), Settings())
    clock.advance(seconds=30)

    began = runtime.boottime()
    pause = await firer.step()
    took = runtime.boottime() - began

    assert REST * took / 2 < pause <= REST * took
    assert _fire_health(firer).resting
    await firer.step()
    assert not _fire_health(firer).resting


def _fire_health(firer: Firer):
    found = look([firer], runtime.monotonic()).fire
    assert found is not None
    return found


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("newest_first", [0, 1])
async def test_health_says_that_schedules_are_fired_late_and_what_became_of_them(
    app, clock, newest_first
):
    await put(app, TWO + 1)
    firer = Firer(await app.engine(), Settings(fire_newest_first=newest_first))
    clock.advance(minutes=3, seconds=1)

    await firer.step()
    late = look([firer], runtime.monotonic(), newest_first=bool(newest_first))
    await firer.step()
    await firer.step()
    on_time = look([firer], runtime.monotonic(), newest_first=bool(newest_first))

    assert late.fire is not None
    assert on_time.fire is not None
    assert late.fire.lag_ms > BEHIND_MS
    assert (late.fire.behind, late.fire.newest_first) == (True, bool(newest_first))
    assert (late.fire.fired, late.fire.skipped) == (TWO, {"missed": 2 * TWO})
    assert late.why[0].startswith("schedules are fired late")
    assert ("the newest go first" in late.why[0]) == bool(newest_first)
    assert (on_time.well, on_time.fire.lag_ms, on_time.fire.fired) == (True, 0, TWO + 1)
    assert on_time.to_json()["fire"]["skipped"] == {"missed": 2 * TWO + 2}


@pytest.mark.usefixtures("one_by_one")
async def test_others_are_asked_to_make_way_until_all_is_fired(app, clock):
    await put(app, TWO + BATCH + 1)
    firer = Firer(await app.engine(), Settings())
    asked: list[float] = []
    firer.on_rush = asked.append
    await firer.step()
    assert asked == [], "nothing is due"
    clock.advance(seconds=30)

    for _ in range(4):
        await firer.step()

    assert asked == [WAY, WAY, 0.0]
    assert firer.counts.fired == TWO + BATCH + 1


@pytest.mark.usefixtures("one_by_one")
async def test_nobody_is_asked_to_make_way_where_firing_does_not_go_first(app, clock):
    await put(app, TWO + 1)
    firer = Firer(await app.engine(), Settings(fire_first=0.0))
    asked: list[float] = []
    firer.on_rush = asked.append
    clock.advance(seconds=30)

    await firer.step()
    assert firer.counts.resting
    await firer.step()

    assert asked == []


@pytest.mark.usefixtures("one_by_one")
async def test_nobody_makes_way_for_one_schedule_that_has_much_to_do(app, clock):
    call = await app.call("report", {})
    make = app.schedules.make
    policy = {"catch_up": "all", "window": 86_400, "overlap": "allow"}
    await app.schedules.put_many([make("every-second", "* * * * * *", call, **policy)])
    firer = Firer(await app.engine(), Settings())
    asked: list[float] = []
    firer.on_rush = asked.append
    clock.advance(seconds=5 * MOST_RUNS)

    await firer.step()

    assert firer.counts.resting
    assert (firer.counts.fired, asked) == (2 * MOST_RUNS, [])
