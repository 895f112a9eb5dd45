"""Reading the store and setting what operators set, from Python: public values."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from lamplighter import App, JobView, Retry, Status, UnknownJob
from lamplighter.model.errors import (
    InvalidInput,
    InvalidName,
    InvalidOption,
    InvalidTime,
)
from lamplighter.model.job import ErrorInfo
from lamplighter.model.journal import Journal, Line, Piece, Progress, pack
from lamplighter.model.outcome import Failed, Succeeded
from lamplighter.port.values import NewWorker, Recording, TypeInfo

BOOM = ErrorInfo(type="Boom", message="went off", fingerprint="f00", kinds=("Boom",))
NEVER = Retry(max_attempts=1)


async def listed(jobs) -> list[str]:
    return [job.id async for job in jobs]


@pytest.fixture
async def dead(charge, finish):
    handle = await charge.options(retry=NEVER, tenant="acme", tags=["vip"]).submit("o-1")
    await finish(Failed(BOOM))
    return handle


async def test_a_job_is_shown_with_plain_values(app, charge, finish):
    before = datetime.now(UTC)
    handle = await charge.options(tenant="acme", metadata={"n": 1}).submit("o-1", cents=5)
    waiting = await app.jobs.get(handle.id)
    await finish(Succeeded(b'"o-1:5"'))
    found = await app.jobs.get(handle.id)

    assert isinstance(found, JobView)
    assert (waiting.status, found.status) == (Status.READY, Status.SUCCEEDED)
    assert (found.type, found.queue, found.tenant) == ("charge", "payments", "acme")
    assert found.arguments == {"order_id": "o-1", "cents": 5}
    assert (found.result, found.metadata, found.priority) == ("o-1:5", {"n": 1}, "normal")
    assert before - timedelta(seconds=1) < found.created_at <= found.finished_at
    assert found.finished_at.utcoffset() == timedelta(0)
    assert (waiting.started_at, waiting.finished_at) == (None, None)


async def test_secret_arguments_are_not_shown(app):
    @app.job(secrets=["card"])
    async def pay(order: str, card: str) -> None: ...

    handle = await pay.submit("o-1", "4111-1111")

    assert (await app.jobs.get(handle.id)).arguments == {"order": "o-1", "card": "•••"}


async def test_jobs_are_listed_newest_first_over_pages(app, charge):
    handles = await app.submit_many([charge.call(f"o-{n}") for n in range(130)])
    ids = [handle.id for handle in handles]

    assert await listed(app.jobs.list()) == ids[::-1]
    assert await listed(app.jobs.list(limit=105)) == ids[::-1][:105]
    assert await listed(app.jobs.list(limit=0)) == []
    assert (await app.jobs.counts())["waiting"] == 130


async def test_a_list_holds_what_its_selection_says(app, charge, take_anything, dead):
    other = await take_anything.options(tenant="globex", delay=60).submit(1)
    hour = timedelta(hours=1)
    now = datetime.now(UTC)

    for which, expected in (
        ({"status": "dead"}, [dead.id]),
        ({"status": ["dead", "scheduled"]}, [other.id, dead.id]),
        ({"status": Status.SCHEDULED}, [other.id]),
        ({"type": "take_anything"}, [other.id]),
        ({"queue": ("payments",)}, [dead.id]),
        ({"tenant": "globex"}, [other.id]),
        ({"tag": "vip"}, [dead.id]),
        ({"fingerprint": "f00"}, [dead.id]),
        ({"finished_after": now - hour}, [dead.id]),
        ({"finished_before": now - hour}, []),
        ({"created_after": now - hour}, [other.id, dead.id]),
        ({"created_after": now + hour}, []),
        ({"created_before": now + hour, "type": "take_anything"}, [other.id]),
        ({"created_before": now - hour}, []),
    ):
        assert await listed(app.jobs.list(**which)) == expected, which


@pytest.mark.parametrize(
    ("which", "error"),
    [
        ({"status": "lost"}, InvalidInput),
        ({"tenants": "acme"}, InvalidOption),
        ({"tenant": 7}, InvalidOption),
        ({"tenant": ""}, InvalidName),
        ({"tag": 7}, InvalidName),
        ({"tag": "a\0b"}, InvalidName),
        ({"fingerprint": "\ud800"}, InvalidName),
        ({"finished_after": datetime(2030, 1, 1)}, InvalidTime),  # noqa: DTZ001
        ({"created_before": datetime(2030, 1, 1)}, InvalidTime),  # noqa: DTZ001
    ],
)
async def test_a_selection_that_means_nothing_is_refused(app, which, error):
    with pytest.raises(error):
        await listed(app.jobs.list(**which))


async def test_dead_letters_are_listed_and_grouped_by_cause(app, charge, dead):
    await charge.submit("o-2")
    (found,) = [job async for job in app.dead_letters.list(tenant="acme")]
    (cause,) = await app.dead_letters.causes()

    assert (found.id, found.error.type, found.failed_attempts) == (dead.id, "Boom", 1)
    assert (cause.fingerprint, cause.count, cause.example) == ("f00", 1, dead.id)
    assert not cause.at_least
    assert cause.newest_at == found.finished_at
    assert await app.dead_letters.causes(tenant="globex") == []
    with pytest.raises(InvalidOption, match="status"):
        await app.dead_letters.causes(status="running")


async def test_a_count_that_leaves_older_dead_letters_out_says_so(app, charge, finish, monkeypatch):
    for order in ("o-1", "o-2", "o-3"):
        await charge.options(retry=NEVER).submit(order)
        await finish(Failed(BOOM))
    inspector = (await app.engine()).inspector
    monkeypatch.setattr(inspector, "dead_groups", partial(inspector.dead_groups, most=2))

    (cause,) = await app.dead_letters.causes()

    assert (cause.count, cause.at_least) == (2, True)


async def test_attempts_and_logs_of_a_job(app, charge, claim, dead):
    (attempt,) = await app.jobs.attempts(dead.id)
    assert (attempt.number, attempt.outcome, attempt.error.message) == (1, "failed", "went off")
    assert attempt.started_at <= attempt.finished_at

    running = await charge.submit("o-2")
    (taken,) = await claim()
    lines = [Line(0, 1_500, "info", "begin"), Line(1, 2_000, "out", "half")]
    said = Journal(progress=Progress(done=1, total=2), pieces=(Piece(0, pack(lines)),))
    engine = await app.engine()
    await engine.jobs.record([Recording(taken.job.id, taken.fence, said)])

    found = [(one.after, one.level, one.text) async for one in app.jobs.logs(running.id)]
    assert found == [(1.5, "info", "begin"), (2.0, "out", "half")]
    assert (await app.jobs.get(running.id)).progress == Progress(done=1, total=2)
    assert [one async for one in app.jobs.logs(dead.id)] == []


async def test_a_job_that_is_not_there_is_unknown_everywhere(app, charge):
    nobody = charge.call("o-1").id
    for work in (app.jobs.get(nobody), app.jobs.attempts(nobody), listed(app.jobs.logs(nobody))):
        with pytest.raises(UnknownJob, match=nobody):
            await work
    with pytest.raises(InvalidInput):
        await app.jobs.get("no id")


async def test_a_tenant_is_set_held_and_noted_with_who_and_why(app, charge, claim):
    await charge.options(tenant="acme").submit("o-1")

    set_to = await app.tenants.set("acme", weight=5, held=True, by="ada", reason="unpaid")
    assert (set_to.weight, set_to.waiting, set_to.hold.by, set_to.hold.reason) == (
        5,
        1,
        "ada",
        "unpaid",
    )
    assert await claim() == []
    assert [one.name for one in await app.tenants.list()] == ["acme"]
    assert (await app.tenants.get("nobody")).weight == 1

    await app.tenants.set("acme", held=False)
    assert len(await claim()) == 1
    engine = await app.engine()
    page = await engine.access.audit(limit=10)
    noted = [(one.entry.action, one.entry.object, one.entry.by) for one in page.records]
    assert noted == [("tenants.put", "acme", "app"), ("tenants.put", "acme", "ada")]


async def test_a_queue_is_set_and_held(app, charge, claim):
    assert await app.queues.get("payments") is None
    await charge.submit("o-1")
    await app.queues.set("payments", max_wait=30, held=True, reason="upstream down")

    found = await app.queues.get("payments")
    assert (found.ready, found.max_wait, found.hold.reason) == (1, 30.0, "upstream down")
    assert [one.name for one in await app.queues.list()] == ["payments"]
    assert await claim() == []
    await app.queues.set("payments", held=False)
    assert len(await claim()) == 1


async def test_types_and_workers_are_those_that_have_joined(app, charge, claim):
    engine = await app.engine()
    info = TypeInfo(name="charge", schema='{"type":"object"}', hash="h", queue="payments")
    await engine.membership.join(
        NewWorker(id="w-1", host="h", pid=7, queues=("payments",), slots=3, types=(info,))
    )

    (kind,) = await app.types.list()
    (worker,) = await app.workers.list()
    assert (kind.name, kind.schema, kind.live_workers) == ("charge", {"type": "object"}, 1)
    assert (worker.id, worker.state, worker.slots) == ("w-1", "alive", 3)
    assert worker.heartbeat_at >= worker.joined_at

    await app.types.hold("charge", reason="bug")
    await charge.submit("o-1")
    assert (await app.types.list())[0].hold.reason == "bug"
    assert await claim() == []
    await app.types.unhold("charge")
    assert len(await claim()) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda app: app.tenants.set("acme"),
        lambda app: app.tenants.set("acme", weight=0),
        lambda app: app.tenants.set("", weight=1),
        lambda app: app.queues.set("q"),
        lambda app: app.queues.set("q", max_wait=-1),
        lambda app: app.types.hold("\n"),
    ],
)
async def test_settings_that_mean_nothing_are_refused_and_set_nothing(app, call):
    with pytest.raises(InvalidInput):
        await call(app)
    assert await app.tenants.list() == []
    assert await app.queues.list() == []


def test_all_of_it_works_from_plain_code(url):
    app = App(url)
    try:
        handle = app.submit_sync("greet", {"name": "ann"})
        assert app.jobs.get_sync(handle.id).arguments == {"name": "ann"}
        assert [job.id for job in app.jobs.list_sync(limit=5)] == [handle.id]
        assert app.jobs.counts_sync()["waiting"] == 1
        assert (app.jobs.attempts_sync(handle.id), app.jobs.logs_sync(handle.id)) == ([], [])
        assert (app.dead_letters.list_sync(), app.dead_letters.causes_sync()) == ([], [])
        assert app.tenants.set_sync("acme", weight=3).weight == 3
        assert [one.weight for one in app.tenants.list_sync() if one.name == "acme"] == [3]
        assert app.tenants.get_sync("acme").weight == 3
        app.queues.set_sync("default", max_wait=9)
        assert app.queues.get_sync("default").max_wait == 9
        assert [one.name for one in app.queues.list_sync()] == ["default"]
        app.types.hold_sync("greet")
        app.types.unhold_sync("greet")
        assert (app.types.list_sync(), app.workers.list_sync()) == ([], [])
    finally:
        app.close_sync()
