import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest

from lamplighter import App, Retry, Settings
from lamplighter.model.errors import KeyConflict, StoreBusy, StoreUnreachable
from lamplighter.model.job import Level, Status
from lamplighter.observability import events
from lamplighter.port.store import queue_topic
from lamplighter.port.values import SubmitAnswer, Submitted, TypeInfo

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)


async def test_a_submitted_job_waits_in_its_queue(charge):
    handle = await charge.submit("o-1", 995)

    record = await handle.record()
    assert record.status is Status.READY
    assert record.job.args == b'{"order_id":"o-1","cents":995}'
    assert (record.job.type, record.job.queue, record.job.tenant) == (
        "charge",
        "payments",
        "default",
    )
    assert handle.answer is SubmitAnswer.CREATED
    assert not handle.existing


async def test_options_stand_on_the_job(charge):
    retry = Retry(delays=[1, 2])
    prepared = charge.options(
        queue="express",
        priority="critical",
        tenant="acme",
        retry=retry,
        timeout=timedelta(seconds=3),
        tags=["eu", "eu", "vip"],
        metadata={"source": ["import", 5]},
    )

    job = (await (await prepared.submit("o-1")).record()).job

    assert (job.queue, job.level, job.tenant) == ("express", Level.CRITICAL, "acme")
    assert job.extras.retry == retry
    assert job.extras.timeout == 3
    assert job.extras.tags == ("eu", "vip")
    assert job.extras.metadata == {"source": ["import", 5]}


async def test_what_is_none_was_not_given(charge):
    nothing = dict.fromkeys(
        ("delay", "run_at", "queue", "priority", "tenant", "idempotency_key", "retry", "tags")
    )

    job = (await (await charge.options(**nothing).submit("o-1")).record()).job

    assert (job.queue, job.level, job.tenant) == ("payments", Level.NORMAL, "default")


async def test_metadata_is_a_copy(charge):
    metadata = {"a": [1]}
    prepared = charge.options(metadata=metadata)
    metadata["a"].append(2)

    assert (await (await prepared.submit("o")).record()).job.extras.metadata == {"a": [1]}


async def test_a_delayed_job_is_scheduled(charge):
    handle = await charge.options(delay=3600).submit("o-1")

    record = await handle.record()
    assert record.status is Status.SCHEDULED
    assert record.job.due_at_ms - record.job.created_at_ms == 3_600_000


async def test_run_at_is_an_instant(charge):
    in_tokyo = NOON.astimezone(timezone(timedelta(hours=9)))

    for run_at in (NOON, in_tokyo):
        record = await (await charge.options(run_at=run_at).submit("o-1")).record()
        assert record.job.due_at_ms == int(NOON.timestamp() * 1000)


@pytest.mark.parametrize("year", [1, 1969, 2001])
async def test_the_past_means_now(charge, year):
    past = datetime(year, 1, 1, tzinfo=UTC)

    assert await (await charge.options(run_at=past).submit("o-1")).status() is Status.READY


async def test_speed_shortens_every_wait(url):
    app = App(settings=Settings(url=url, speed=3600))

    @app.job
    async def wait() -> None: ...

    async with app:
        record = await (await wait.options(delay=3600).submit()).record()
        assert record.job.due_at_ms - record.job.created_at_ms == 1_000
        soon = datetime.now(UTC) + timedelta(hours=2)
        record = await (await wait.options(run_at=soon).submit()).record()
        assert 1_000 <= record.job.due_at_ms - record.job.created_at_ms <= 2_001


# ── keys ─────────────────────────────────────────────────────────────────────────────────────


async def test_the_same_key_and_body_give_the_same_job(charge, stored):
    keyed = charge.options(idempotency_key="charge:o-1", tags=["a"], delay=5)
    first = await keyed.submit("o-1", 995)

    again = await charge.options(
        delay=timedelta(seconds=5), tags=["a"], idempotency_key="charge:o-1"
    ).submit(cents=995, order_id="o-1")

    assert again.id == first.id
    assert again.answer is SubmitAnswer.ALREADY
    assert again.existing
    assert await stored() == 1


async def test_equal_policies_and_instants_are_the_same_body(charge):
    def keyed(run_at: datetime):
        return charge.options(
            idempotency_key="k", retry=Retry(fixed=1), run_at=run_at, metadata={"a": 1}
        )

    first = await keyed(NOON).submit("o-1")
    again = await keyed(NOON.astimezone(timezone(timedelta(hours=9)))).submit("o-1")

    assert again.id == first.id


async def test_the_order_of_keys_in_a_dict_is_not_another_body(take_anything):
    keyed = take_anything.options(idempotency_key="k")
    first = await keyed.submit({"a": 1, "b": {"c": 1, "d": 2}})

    assert (await keyed.submit({"b": {"d": 2, "c": 1}, "a": 1})).id == first.id


async def test_tenants_have_their_own_keys(charge):
    one = await charge.options(idempotency_key="k", tenant="one").submit("o-1")
    two = await charge.options(idempotency_key="k", tenant="two").submit("o-1")

    assert one.id != two.id


# ── many ─────────────────────────────────────────────────────────────────────────────────────


async def test_many_calls_are_stored_in_one_batch(app, charge, stored):
    calls = [charge.call("o-1", 995), charge.options(delay=5).call("o-2", 100)]

    handles = await app.submit_many(calls)

    assert [handle.id for handle in handles] == [call.id for call in calls]
    assert [await handle.status() for handle in handles] == [Status.READY, Status.SCHEDULED]
    assert await stored() == 2


async def test_no_calls_are_no_work(app):
    assert await app.submit_many([]) == []


async def test_the_same_calls_again_store_nothing_twice(app, charge, stored):
    calls = [charge.call("o-1"), charge.call("o-2")]
    first = await app.submit_many(calls)

    again = await app.submit_many(calls)

    assert [handle.id for handle in again] == [handle.id for handle in first]
    assert all(handle.existing for handle in again)
    assert await stored() == 2


async def test_a_conflict_among_many_is_told_after_the_others_were_stored(app, charge, stored):
    keyed = charge.options(idempotency_key="k")
    await keyed.submit("o-1")

    with pytest.raises(KeyConflict):
        await app.submit_many([charge.call("o-2"), keyed.call("o-3"), charge.call("o-4")])

    assert await stored() == 3


async def test_more_than_a_batch_is_stored_in_several(app, take_anything):
    engine = await app.engine()
    size = engine.capabilities.max_batch

    handles = await app.submit_many(take_anything.call(n) for n in range(size + 1))

    assert len({handle.id for handle in handles}) == size + 1
    assert (await handles[-1].record()).job.args == b'{"value":%d}' % size


async def test_many_single_submissions_at_once_open_the_store_once(charge, stored):
    handles = await asyncio.gather(*(charge.submit(f"o-{n}") for n in range(50)))

    assert len({handle.id for handle in handles}) == 50
    assert await stored() == 50


# ── types without code here ──────────────────────────────────────────────────────────────────


async def test_a_type_without_code_here_can_be_submitted(app):
    handle = await app.submit("elsewhere", {"a": 1}, queue="far", priority="low")

    job = (await handle.record()).job
    assert (job.type, job.queue, job.level, job.args) == ("elsewhere", "far", Level.LOW, b'{"a":1}')


async def test_a_type_without_code_here_has_the_defaults_its_workers_published(app):
    from lamplighter.port.values import NewWorker

    engine = await app.engine()
    info = TypeInfo(
        name="elsewhere",
        schema="{}",
        hash="1",
        queue="payments",
        options={"priority": "high", "delivery": "at_most_once"},
    )
    await engine.membership.join(
        NewWorker(id="w", host="h", pid=1, queues=("payments",), slots=1, types=(info,))
    )

    job = (await (await app.submit("elsewhere", {})).record()).job

    assert (job.queue, job.level, job.delivery) == ("payments", Level.HIGH, "at_most_once")


async def test_a_registered_type_can_be_submitted_by_name(app, charge):
    job = (await (await app.submit("charge", {"order_id": "o-1"})).record()).job

    assert (job.queue, job.args) == ("payments", b'{"order_id":"o-1"}')


# ── around the write ─────────────────────────────────────────────────────────────────────────


class Lossy:
    """A store whose first replies are lost after, or before, the write."""

    def __init__(self, jobs, errors, *, stored):
        self._jobs, self._errors, self._stored = jobs, list(errors), stored

    async def submit(self, jobs) -> list[Submitted]:
        if self._errors:
            if self._stored:
                await self._jobs.submit(jobs)
            raise self._errors.pop(0)
        return await self._jobs.submit(jobs)


def lose(engine, monkeypatch, *errors, stored=True):
    monkeypatch.setattr(engine, "jobs", Lossy(engine.jobs, errors, stored=stored))


@pytest.mark.parametrize("was_stored", [True, False])
async def test_a_lost_reply_is_asked_for_again_without_a_second_job(
    app, charge, stored, monkeypatch, was_stored
):
    lost = StoreUnreachable("gone", hint="wait"), StoreBusy("busy", hint="wait")
    lose(await app.engine(), monkeypatch, *lost, stored=was_stored)

    handle = await charge.submit("o-1")

    assert handle.answer is SubmitAnswer.CREATED
    assert await stored() == 1


async def test_a_store_that_stays_away_is_an_error_in_the_end(app, charge, monkeypatch):
    lost = [StoreUnreachable("gone", hint="wait") for _ in range(10)]
    lose(await app.engine(), monkeypatch, *lost, stored=False)

    with pytest.raises(StoreUnreachable):
        await charge.submit("o-1")


@pytest.mark.parametrize(("delay", "woken"), [(0, True), (0.5, True), (60, False)])
async def test_workers_are_woken_for_what_is_due_before_their_next_look(app, charge, delay, woken):
    wakeup = (await app.engine()).wakeup
    await wakeup.wait([queue_topic("payments")], 0)

    await charge.options(delay=delay).submit("o-1")

    assert await wakeup.wait([queue_topic("payments")], 0.05) is woken


async def test_submissions_are_told_as_events(charge):
    told = []
    stop = events.listen(lambda name, fields: told.append((name, dict(fields))))
    try:
        await charge.submit("o-1")
    finally:
        stop()

    assert (events.JOB_SUBMITTED, {"count": 1, "created": 1, "types": ["charge"]}) in told
