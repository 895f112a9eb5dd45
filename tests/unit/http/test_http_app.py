"""Jobs through the service, with the interface of an App."""

from datetime import UTC, datetime, timedelta

import pytest

from lamplighter import App, Retry, Status
from lamplighter.http import HttpApp, ServiceRefused
from lamplighter.model.addresses import redacted
from lamplighter.model.errors import (
    InvalidArguments,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    InvalidUrl,
    JobFailed,
    KeyConflict,
    PayloadTooLarge,
    ResultTimeout,
    UnknownJob,
    UnknownType,
    WrongState,
)
from lamplighter.model.job import Level
from lamplighter.model.journal import Journal, Progress
from lamplighter.model.names import shown
from lamplighter.port.values import Recording
from tests.unit.http.conftest import failed, succeeded
from tests.unit.server.test_serve import KEY

ORDER = {"order_id": "o-1", "cents": 995}


@pytest.fixture
def charge():
    """The job as the program that submits it knows it."""
    app = App("sqlite://")

    @app.job
    async def charge(order_id: str, cents: int = 100) -> dict[str, object]:
        return {"order_id": order_id, "cents": cents}

    return charge


async def test_a_job_is_submitted_and_its_result_comes_back(app, finish):
    handle = await app.submit("charge", ORDER)
    assert handle.answer == "created"
    assert not handle.existing
    assert await handle.status() is Status.READY
    await finish(handle.id, succeeded(b'{"order_id": "o-1", "cents": 995}'))
    assert await handle.result(timeout=5) == ORDER
    record = await handle.record()
    assert (record.type, record.queue, record.tenant) == ("charge", "payments", "default")
    assert record.finished_at >= record.created_at


async def test_a_job_at_hand_checks_its_arguments_and_gives_its_result_a_type(app, charge, finish):
    handle = await app.submit(charge, {"order_id": "o-2"})
    await finish(handle.id, succeeded(b'{"order_id": "o-2", "cents": 100}'))
    assert await handle.result(timeout=5) == {"order_id": "o-2", "cents": 100}
    with pytest.raises(InvalidArguments, match="order"):
        await app.submit(charge, {"order": "o-2"})


async def test_every_option_reaches_the_store(app, store):
    handle = await app.submit(
        "charge",
        ORDER,
        delay=timedelta(hours=1),
        queue="slow",
        priority="high",
        tenant="acme",
        retry=Retry(delays=[60, 300], no_retry_on=[ValueError]),
        timeout=5,
        tags=["eu"],
        metadata={"source": "import"},
    )
    record = await (await store.engine()).inspector.job(handle.id)
    job = record.job
    assert (job.queue, job.level, job.tenant) == ("slow", Level.HIGH, "acme")
    assert job.due_at_ms - job.created_at_ms == pytest.approx(3_600_000, abs=2000)
    assert job.extras.retry == Retry(delays=[60, 300], no_retry_on=[ValueError])
    assert (job.extras.timeout, job.extras.tags) == (5, ("eu",))
    assert job.extras.metadata == {"source": "import"}


async def test_a_record_shows_how_far_the_job_has_come(app, store, take):
    handle = await app.submit("charge", ORDER)
    assert (await handle.record()).progress is None
    engine = await store.engine()
    claim = await take(handle.id)
    journal = Journal(progress=Progress(done=3, total=4, note="nearly"))
    await engine.jobs.record([Recording(handle.id, claim.fence, journal)])
    assert (await handle.record()).progress == Progress(done=3, total=4, note="nearly")


async def test_an_instant_is_taken_instead_of_a_delay(app):
    when = datetime(2030, 1, 31, 12, tzinfo=UTC)
    handle = await app.submit("charge", ORDER, run_at=when)
    assert (await handle.record()).next_run == when
    assert await handle.status() is Status.SCHEDULED


async def test_the_same_key_gives_the_same_job_and_another_body_is_a_conflict(app):
    first = await app.submit("charge", ORDER, idempotency_key="k-1")
    second = await app.submit("charge", ORDER, idempotency_key="k-1")
    assert (first.existing, second.existing) == (False, True)
    assert first.id == second.id
    with pytest.raises(KeyConflict, match="k-1"):
        await app.submit("charge", {"order_id": "other"}, idempotency_key="k-1")


async def test_a_key_may_be_in_any_writing(app):
    keys = ("commande-é", "commande-è", "注文-1")
    handles = [await app.submit("charge", ORDER, idempotency_key=key) for key in keys]
    again = [await app.submit("charge", ORDER, idempotency_key=key) for key in keys]
    assert len({handle.id for handle in handles}) == 3
    assert [handle.id for handle in again] == [handle.id for handle in handles]


async def test_without_a_key_each_submission_is_a_job(app):
    assert len({(await app.submit("charge", ORDER)).id for _ in range(3)}) == 3


async def test_a_job_is_cancelled(app):
    handle = await app.submit("charge", ORDER)
    assert await handle.cancel(reason="a mistake") == "done"
    assert await handle.status() is Status.CANCELLED
    with pytest.raises(JobFailed, match="cancelled") as caught:
        await handle.result(timeout=5)
    assert "replay()" in caught.value.hint


async def test_a_job_that_has_ended_cannot_be_cancelled_but_replayed(app, finish):
    handle = await app.submit("charge", ORDER)
    await finish(handle.id, failed())
    with pytest.raises(JobFailed, match="CardDeclined: no money") as caught:
        await handle.result(timeout=5)
    assert "retry()" in caught.value.hint, "it keeps the effect keys"
    with pytest.raises(WrongState):
        await handle.cancel()
    await handle.replay(reason="the card was renewed")
    assert await handle.status() is Status.READY


async def test_a_job_is_held_and_let_go(app):
    handle = await app.submit("charge", ORDER, delay=60)
    await handle.hold()
    assert await handle.status() is Status.PAUSED
    await handle.unhold()
    assert await handle.status() is Status.SCHEDULED
    await handle.retry()
    assert await handle.status() is Status.READY


async def test_one_who_waits_in_vain_is_told_where_the_job_stands(app):
    handle = await app.submit("charge", ORDER, delay=60)
    with pytest.raises(ResultTimeout, match="scheduled"):
        await handle.result(timeout=0.1)
    with pytest.raises(InvalidTime):
        await handle.result(timeout=-1)


async def test_a_job_is_taken_in_hand_by_its_id(app):
    handle = await app.submit("charge", ORDER)
    assert await app.handle(handle.id).status() is Status.READY


async def test_refusals_are_the_errors_of_the_local_client(app):
    with pytest.raises(UnknownType, match="`nothing`"):
        await app.submit("nothing", {})
    with pytest.raises(InvalidArguments, match="cents"):
        await app.submit("charge", {"order_id": "o", "cents": "many"})
    with pytest.raises(UnknownJob):
        await app.handle("01K9ZQ4T7M0G3E8V5C2R6W1XNB").status()


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        ({"order_id": "a\0b"}, {}, InvalidPayload),
        ({"order_id": "x" * 70_000}, {}, PayloadTooLarge),
        (["o-1"], {}, InvalidArguments),
        (ORDER, {"delay": -1}, InvalidTime),
        (ORDER, {"delays": 1}, InvalidOption),
        (ORDER, {"retry": Retry(function=lambda _: 1.0)}, InvalidOption),
    ],
)
async def test_what_cannot_be_sent_is_refused_before_it_is(arguments, options, error):
    app = HttpApp("http://127.0.0.1:1", token=KEY)
    with pytest.raises(error):
        await app.submit("charge", arguments, **options)


async def test_many_jobs_go_in_few_requests_and_come_back_in_order(app):
    calls = [await app.call("charge", {"order_id": f"o-{n}"}, delay=n) for n in range(1, 1500)]
    handles = await app.submit_many(calls)
    assert len({handle.id for handle in handles}) == 1499
    again = await app.submit_many(calls[:1200])
    assert [handle.id for handle in again] == [handle.id for handle in handles[:1200]]


async def test_many_large_jobs_go_in_requests_that_the_service_takes(app):
    large = {"order_id": "x" * 60_000}
    calls = [await app.call("charge", large, delay=60) for _ in range(300)]
    assert len({handle.id for handle in await app.submit_many(calls)}) == 300


async def test_one_bad_call_keeps_a_batch_out_and_a_conflict_does_not(app):
    good = await app.call("charge", ORDER)
    bad = await app.call("charge", {"order_id": 3})
    with pytest.raises(InvalidArguments, match=r"jobs\[1\]"):
        await app.submit_many([good, bad])
    await app.submit("charge", ORDER, idempotency_key="k-2")
    other = await app.call("charge", {"order_id": "x"}, idempotency_key="k-2")
    with pytest.raises(KeyConflict, match="k-2"):
        await app.submit_many([good, other])
    with pytest.raises(InvalidArguments, match="not a call"):
        await app.submit_many([ORDER])


async def test_without_a_token_nothing_is_possible(address, monkeypatch):
    monkeypatch.delenv("LAMPLIGHTER_TOKEN", raising=False)
    app = HttpApp(address.geturl())
    with pytest.raises(ServiceRefused, match="token") as caught:
        await app.submit("charge", ORDER)
    assert (caught.value.status, caught.value.problem) == (401, "missing-token")
    await app.close()


async def test_the_token_is_read_from_the_environment_or_a_file(address, monkeypatch, tmp_path):
    monkeypatch.setenv("LAMPLIGHTER_TOKEN", KEY)
    async with HttpApp(address.geturl()) as app:
        assert await app.submit("charge", ORDER)
    monkeypatch.delenv("LAMPLIGHTER_TOKEN")
    (tmp_path / "token").write_text(f"{KEY}\n")
    monkeypatch.setenv("LAMPLIGHTER_TOKEN_FILE", str(tmp_path / "token"))
    async with HttpApp(address.geturl()) as app:
        assert await app.submit("charge", ORDER)
    monkeypatch.setenv("LAMPLIGHTER_TOKEN_FILE", str(tmp_path / "missing"))
    with pytest.raises(InvalidOption, match="missing"):
        await HttpApp(address.geturl()).submit("charge", ORDER)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8080",
        "redis://x",
        "http://",
        "http://[",
        "x",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:0",
        "http://127.0.0.1:eighty",
        "http://127.0.0.1:8080/?token=x",
        "http://127.0.0.1:8080/a b",
        "http://127.0.0.1\n:8080",
        8080,
        None,
    ],
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(InvalidUrl, match="address") as caught:
        HttpApp(url)
    public = redacted(url) if isinstance(url, str) else url
    assert shown(public) in caught.value.cause
    assert "http://127.0.0.1:8080" in caught.value.hint


@pytest.mark.parametrize("ending", ["/", "/v1", "/v1/", " \n"])
async def test_the_address_of_the_api_means_the_service(address, ending):
    async with HttpApp(f"{address.geturl()}{ending}", token=KEY) as app:
        handle = await app.submit("charge", ORDER)
        assert (await handle.record()).type == "charge"


def test_a_service_may_stand_below_a_path():
    assert repr(HttpApp("https://example.com/jobs/")) == "<HttpApp at https://example.com/jobs>"
    assert repr(HttpApp("https://example.com/v1/v1")) == "<HttpApp at https://example.com/v1>"


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/#token=s3cret", "http://ada:s3cret@there"])
def test_a_key_in_an_address_is_refused_and_not_repeated(url):
    with pytest.raises(InvalidUrl, match="behind `#`") as caught:
        HttpApp(url)
    assert "LAMPLIGHTER_TOKEN" in caught.value.hint
    assert "s3cret" not in f"{caught.value}{caught.value.value}"


def test_everything_is_there_for_plain_code(address):
    app = HttpApp(address.geturl(), token=KEY).open_sync()
    handle = app.submit_sync("charge", ORDER, delay=60)
    assert handle.status_sync() is Status.SCHEDULED
    handle.hold_sync()
    handle.unhold_sync()
    handle.retry_sync()
    assert handle.record_sync().id == handle.id
    assert handle.cancel_sync(reason="no more") == "done"
    handle.replay_sync()
    with pytest.raises(ResultTimeout):
        handle.result_sync(timeout=0)
    assert app.submit_many_sync([]) == []
    app.close_sync()
