"""`app.schedules` and `@app.schedule`, on a store whose clock the test moves."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lamplighter import App, Cron, Interval, Once, RRule
from lamplighter.coordinator import Declarer, Firer
from lamplighter.coordinator.declare import POLL
from lamplighter.fleet import Fleet
from lamplighter.model.errors import (
    InvalidHandler,
    InvalidName,
    InvalidOption,
    InvalidTime,
    UnknownSchedule,
    WrongState,
)
from lamplighter.model.job import JobState
from lamplighter.model.outcome import Succeeded
from lamplighter.model.recurring import CatchUp, Overlap
from lamplighter.port.schedules import (
    PutAnswer,
    RunKind,
    RunState,
    ScheduleAnswer,
    ScheduleFilter,
)
from lamplighter.testing.clock import installed

START = datetime(2030, 6, 1, 12, 0, 30, tzinfo=UTC)
NAIVE = START.replace(tzinfo=None)
EVERY_MINUTE = "* * * * *"


@pytest.fixture
def clock():
    with installed(START) as clock:
        yield clock


@pytest.fixture
def schedules(clock, app, charge):
    return app.schedules


@pytest.fixture
def call(charge):
    return charge.call("o-1")


@pytest.fixture
def fire(app):
    """Do what a coordinator does once."""

    async def fire() -> None:
        engine = await app.engine()
        await Firer(engine, app.settings).step()

    return fire


def minute(number: int) -> int:
    return int(datetime(2030, 6, 1, 12, number, tzinfo=UTC).timestamp() * 1000)


def states(runs):
    return [(run.due_ms, run.state) for run in runs]


# ── put ──────────────────────────────────────────────────────────────────────────────────────


async def test_what_was_put_is_found_with_its_calendar_job_and_policy(schedules, charge):
    call = charge.options(priority="high", tenant="acme", timeout=7).call("o-1", 5)
    put = await schedules.put(
        "nightly",
        "0 2 * * *",
        call,
        timezone="Europe/Berlin",
        overlap="queue_one",
        catch_up="all",
        window=timedelta(minutes=5),
        max_runs=3,
    )

    found = await schedules.get("nightly", tenant="acme")

    assert (put.id, put.answer, put.version) == ("nightly", PutAnswer.CREATED, 1)
    assert found.spec.calendar == Cron("0 2 * * *", timezone="Europe/Berlin")
    template, policy = found.spec.template, found.spec.policy
    assert (template.type, template.queue, template.tenant) == ("charge", "payments", "acme")
    assert template.args == b'{"order_id":"o-1","cents":5}'
    assert template.extras.timeout == 7
    assert (policy.overlap, policy.catch_up) == (Overlap.QUEUE_ONE, CatchUp.ALL)
    assert (policy.window_ms, policy.max_runs) == (300_000, 3)
    assert found.next_run == datetime(2030, 6, 2, 0, 0, tzinfo=UTC)


async def test_putting_it_again_changes_nothing_and_something_else_changes_it(schedules, call):
    first = await schedules.put("tick", timedelta(minutes=5), call)
    again = await schedules.put("tick", Interval(300), call)
    other = await schedules.put("tick", timedelta(minutes=6), call)

    assert [put.answer for put in (first, again, other)] == ["created", "already", "changed"]
    assert other.version == 2
    assert (await schedules.get("tick")).spec.calendar == Interval(360)


async def test_thousands_are_put_in_one_call_and_listed_by_id(schedules, call, app):
    engine = await app.engine()
    number = 2 * engine.capabilities.max_batch + 7
    made = [schedules.make(f"s-{n:05}", "H H * * *", call) for n in range(number)]

    answers = await schedules.put_many(made)

    assert [put.id for put in answers] == [new.id for new in made]
    assert {put.answer for put in answers} == {PutAnswer.CREATED}
    listed = [one.id async for one in schedules.list()]
    assert listed == [new.id for new in made]
    assert {put.answer for put in await schedules.put_many(made[:10])} == {PutAnswer.ALREADY}


async def test_h_is_another_time_for_each_schedule_and_the_same_for_one(schedules, call):
    await schedules.put_many(schedules.make(f"s-{n}", "H H * * *", call) for n in range(20))
    times = [one.next_run async for one in schedules.list()]
    assert len(set(times)) > 15
    assert (await schedules.put("s-3", Cron("H H * * *"), call)).answer is PutAnswer.ALREADY


async def test_a_list_keeps_to_its_filter(schedules, charge, call):
    await schedules.put("a-1", EVERY_MINUTE, call)
    await schedules.put("a-2", EVERY_MINUTE, charge.options(tenant="acme").call("o-1"))
    await schedules.put("b-1", EVERY_MINUTE, call)
    await schedules.hold("b-1")

    async def found(**which):
        return [one.id async for one in schedules.list(ScheduleFilter(**which))]

    assert await found(prefix="a-") == ["a-2", "a-1"]
    assert await found(tenants=("acme",)) == ["a-2"]
    assert await found(held=True) == ["b-1"]
    assert await found(types=("refund",)) == []


WRONG_OPTIONS = {
    "24:00": ("0 24 * * *", {}, InvalidOption, "24"),
    "never": ("0 0 31 2 *", {}, InvalidOption, "0 0 31 2 *"),
    "zone": ("0 2 * * *", {"timezone": "Europe/Berln"}, InvalidOption, "Europe/Berln"),
    "two zones": (Cron("0 2 * * *"), {"timezone": "UTC"}, InvalidOption, "UTC"),
    "zone of interval": (timedelta(1), {"timezone": "UTC"}, InvalidOption, "UTC"),
    "no calendar": (5, {}, InvalidOption, "5"),
    "half seconds": (timedelta(seconds=1.5), {}, InvalidOption, "seconds=1"),
    "naive start": (EVERY_MINUTE, {"start": NAIVE}, InvalidTime, "2030-06-01T12:00:30"),
    "date": (EVERY_MINUTE, {"start": START.date()}, InvalidTime, "2030, 6, 1"),
    "year 1": (EVERY_MINUTE, {"start": datetime(1, 1, 1, tzinfo=UTC)}, InvalidTime, "0001-01-01"),
    "end": (
        EVERY_MINUTE,
        {"start": START, "end": START - timedelta(1)},
        InvalidOption,
        "2030-05-31 12:00:30",
    ),
    "window": (EVERY_MINUTE, {"window": -5}, InvalidTime, "-5"),
    "jitter": (EVERY_MINUTE, {"jitter": 1e30}, InvalidTime, "1e+30"),
    "overlap": (EVERY_MINUTE, {"overlap": "queue"}, InvalidOption, "queue"),
    "catch up": (EVERY_MINUTE, {"catch_up": "some"}, InvalidOption, "some"),
    "runs": (EVERY_MINUTE, {"max_runs": 0}, InvalidOption, "0"),
    "half a run": (EVERY_MINUTE, {"max_runs": 1.5}, InvalidOption, "1.5"),
    "keep": (EVERY_MINUTE, {"keep_failed": -1}, InvalidOption, "-1"),
    "unknown": (EVERY_MINUTE, {"time_zone": "UTC"}, InvalidOption, "time_zone"),
}


@pytest.mark.parametrize("case", WRONG_OPTIONS)
async def test_what_is_wrong_is_named_and_nothing_is_stored(schedules, call, case):
    calendar, options, kind, value = WRONG_OPTIONS[case]

    with pytest.raises(kind) as caught:
        await schedules.put("bad", calendar, call, **options)

    assert value in caught.value.cause
    assert caught.value.hint
    assert [one async for one in schedules.list()] == []


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 257, None])
async def test_ids_follow_the_rules_for_names(schedules, call, name):
    with pytest.raises(InvalidName):
        await schedules.put(name, EVERY_MINUTE, call)
    with pytest.raises(InvalidName):
        await schedules.get(name)
    with pytest.raises(InvalidName):
        await schedules.runs(name)


async def test_a_job_instead_of_its_call_is_refused_with_a_remedy(schedules, charge):
    with pytest.raises(InvalidOption, match=r"call\("):
        await schedules.put("bad", EVERY_MINUTE, charge)


@pytest.mark.parametrize(
    "options", [{"delay": 5}, {"run_at": START}, {"idempotency_key": "once"}], ids=str
)
async def test_the_job_of_a_schedule_has_no_time_of_its_own(schedules, charge, options):
    with pytest.raises(InvalidOption, match="the schedule says when"):
        await schedules.put("bad", EVERY_MINUTE, charge.options(**options).call("o-1"))


async def test_put_many_takes_only_what_make_made(schedules):
    with pytest.raises(InvalidOption, match=r"schedules\.make"):
        await schedules.put_many(["nightly"])


# ── look ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_preview_keeps_to_start_end_and_the_number_of_runs(schedules, call):
    start, end = START + timedelta(days=1), START + timedelta(days=1, minutes=2)
    await schedules.put("bounded", EVERY_MINUTE, call, start=start, end=end)
    await schedules.put("few", EVERY_MINUTE, call, max_runs=2)
    await schedules.put("free", EVERY_MINUTE, call, jitter=3600)

    bounded, few, free = [one async for one in schedules.list()]

    expected = [datetime(2030, 6, 2, 12, n, tzinfo=UTC) for n in (1, 2)]
    assert [run.utc for run in bounded.preview()] == expected
    assert len(few.preview()) == 2
    assert few.preview(1)[0].utc == datetime(2030, 6, 1, 12, 1, tzinfo=UTC)
    assert len(free.preview()) == 10
    assert timedelta(0) < free.shift <= timedelta(hours=1)
    assert free.next_run == free.preview(1)[0].utc + free.shift
    later = free.preview(1, after=START + timedelta(hours=2))
    assert later[0].utc == datetime(2030, 6, 1, 14, 1, tzinfo=UTC)
    with pytest.raises(InvalidTime):
        free.preview(after=NAIVE)


DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("calendar", "options"),
    [
        (Once(START + DAY), {"end": START}),
        (Once(START - DAY), {"start": START}),
        ("0 0 29 2 *", {"start": START, "end": START + 300 * DAY}),
        ("0 0 29 2 *", {"start": START - 600 * DAY, "end": START - 300 * DAY}),
        (RRule("FREQ=DAILY;UNTIL=20200101T000000Z", start=START), {}),
    ],
    ids=str,
)
async def test_a_calendar_without_any_occurrence_is_refused(schedules, call, calendar, options):
    with pytest.raises(InvalidOption, match="`bad` would never fire") as caught:
        await schedules.put("bad", calendar, call, **options)
    assert "start and end" in caught.value.hint
    with pytest.raises(InvalidOption, match="would never fire"):
        schedules.make("bad", calendar, call, **options)
    with pytest.raises(UnknownSchedule):
        await schedules.get("bad")


async def test_a_calendar_that_is_over_is_put_and_never_fires(schedules, call, caplog):
    await schedules.put("past", Once(START - timedelta(days=1)), call)
    assert "the schedule `past` never fires" in caplog.text
    found = await schedules.get("past")
    assert found.next_run is None
    assert found.preview() == []


@pytest.mark.parametrize("jitter", [0, 600])
async def test_what_arrives_at_the_store_after_its_instant_was_missed_and_is_made_up_for(
    schedules, call, clock, fire, jitter
):
    once = Once(START + timedelta(seconds=2))
    made = [
        schedules.make("caught", once, call, jitter=jitter),
        schedules.make("dropped", once, call, jitter=jitter, window=1),
    ]
    clock.advance(seconds=700)  # the store was away, or its clock is ahead of ours

    answers = await schedules.put_many(made)
    await fire()

    assert {put.answer for put in answers} == {PutAnswer.CREATED}
    (caught,), (dropped,) = await schedules.runs("caught"), await schedules.runs("dropped")
    assert (caught.state, caught.kind) == (RunState.STARTED, RunKind.DUE)
    assert (dropped.state, dropped.reason) == (RunState.SKIPPED, "late")
    assert caught.due_ms == dropped.due_ms == once.at.timestamp() * 1000


async def test_a_trigger_in_the_instant_of_an_occurrence_does_not_take_its_place(
    schedules, call, clock, fire
):
    await schedules.put("tick", EVERY_MINUTE, call, overlap="allow")
    clock.advance(seconds=30)

    await schedules.trigger("tick")
    await fire()

    runs = await schedules.runs("tick")
    assert {run.kind: run.state for run in runs} == {
        RunKind.DUE: RunState.STARTED,
        RunKind.TRIGGER: RunState.STARTED,
    }
    assert min(run.due_ms for run in runs) == minute(1)


async def test_runs_tell_what_became_of_each_occurrence(schedules, call, clock, fire, finish):
    await schedules.put("tick", EVERY_MINUTE, call)
    assert await schedules.runs("tick") == []
    clock.advance(minutes=1)
    await fire()
    await finish(Succeeded(b'"paid"'))
    clock.advance(minutes=1)
    await fire()
    clock.advance(minutes=1)
    await fire()

    runs = await schedules.runs("tick")

    assert states(runs) == [
        (minute(3), RunState.SKIPPED),
        (minute(2), RunState.STARTED),
        (minute(1), RunState.SUCCEEDED),
    ]
    assert runs[0].reason == "overlap"
    assert len(await schedules.runs("tick", limit=2)) == 2
    record = (await schedules.get("tick")).record
    assert (record.fired, record.skipped) == (2, 1)


async def test_the_handler_is_told_for_which_occurrence_it_runs(
    schedules, call, clock, fire, claim
):
    await schedules.put("tick", EVERY_MINUTE, call)
    clock.advance(minutes=1)
    await fire()
    (claimed,) = await claim()
    assert claimed.job.extras.metadata == {"scheduled_for": "2030-06-01T12:01:00Z"}


async def test_more_runs_than_a_page_are_given(schedules, call, clock, fire):
    await schedules.put("tick", EVERY_MINUTE, call, overlap="allow", catch_up="all", window=86_400)
    clock.advance(minutes=150)
    await fire()
    await fire()
    assert len(await schedules.runs("tick", limit=1000)) == 150
    assert len(await schedules.runs("tick")) == 100


@pytest.mark.parametrize("verb", ["get", "runs", "trigger", "hold", "unhold", "delete"])
async def test_an_unknown_id_is_named(schedules, verb):
    with pytest.raises(UnknownSchedule, match="nightly") as caught:
        await getattr(schedules, verb)("nightly")
    assert caught.value.value == "nightly"


# ── trigger ──────────────────────────────────────────────────────────────────────────────────

TRIGGERED = {
    "skip": (RunState.SKIPPED, RunState.SKIPPED),
    "allow": (RunState.STARTED, RunState.STARTED),
    "queue_one": (RunState.QUEUED, RunState.SKIPPED),
    "queue_all": (RunState.QUEUED, RunState.QUEUED),
    "cancel_running": (RunState.QUEUED, RunState.QUEUED),
}


@pytest.mark.parametrize("overlap", TRIGGERED)
async def test_a_trigger_is_judged_by_the_overlap_policy(schedules, call, claim, overlap):
    await schedules.put("nightly", "0 2 * * *", call, overlap=overlap)
    before = (await schedules.get("nightly")).record

    answer, first = await schedules.trigger("nightly", by="ada", reason="now")
    assert answer.state is RunState.STARTED
    assert len(await claim()) == 1
    others = [await schedules.trigger("nightly") for _ in range(2)]

    assert tuple(other.state for other, _ in others) == TRIGGERED[overlap]
    for other, handle in others:
        assert (handle is None) == (other.state is RunState.SKIPPED)
    record = await first.record()
    assert (record.cancel is not None) == (overlap == "cancel_running")
    after = (await schedules.get("nightly")).record
    assert (after.due_ms, after.cursor_ms, after.fired) == (before.due_ms, before.cursor_ms, 0)
    assert {run.kind for run in await schedules.runs("nightly")} == {RunKind.TRIGGER}


async def test_a_held_schedule_is_triggered_too(schedules, call):
    await schedules.put("nightly", "0 2 * * *", call)
    await schedules.hold("nightly")
    answer, handle = await schedules.trigger("nightly")
    assert answer.state is RunState.STARTED
    assert (await handle.record()).state is JobState.WAITING


# ── backfill ─────────────────────────────────────────────────────────────────────────────────


async def test_a_backfill_runs_what_was_not_run_a_few_at_a_time(
    schedules, call, clock, fire, finish
):
    await schedules.put("hourly", "0 * * * *", call)
    begin, end = START - timedelta(hours=4), START - timedelta(hours=1)

    answer = await schedules.backfill("hourly", begin, end, limit=2, by="ada")
    assert answer.answer is ScheduleAnswer.DONE
    again = await schedules.backfill("hourly", begin, end, limit=2)
    assert again.answer is ScheduleAnswer.ALREADY
    with pytest.raises(WrongState, match="another backfill"):
        await schedules.backfill("hourly", begin, end, limit=1)

    await fire()
    runs = await schedules.runs("hourly")
    assert [run.state for run in runs] == [RunState.STARTED] * 2
    await finish(Succeeded(b"null"))
    await fire()
    await finish(Succeeded(b"null"))
    await fire()

    runs = await schedules.runs("hourly")
    assert [(run.state, run.kind) for run in runs] == [(RunState.SUCCEEDED, RunKind.BACKFILL)] * 3
    record = (await schedules.get("hourly")).record
    assert record.backfill is None
    assert record.fired == 0


async def test_a_backfill_goes_over_what_has_run_at_once_and_counts_only_the_jobs_it_makes(
    schedules, call, clock, fire, finish
):
    await schedules.put("tick", EVERY_MINUTE, call, overlap="allow")
    for _ in range(6):
        clock.advance(seconds=60)
        await fire()
    begin, end = START - timedelta(minutes=2), START + timedelta(minutes=6)
    await finish(Succeeded(b"null"))

    await schedules.backfill("tick", begin, end, limit=2)
    await fire()
    assert (await schedules.get("tick")).record.backfill.made == 2
    await finish(Succeeded(b"null"))
    for _ in range(6):
        await fire()

    record = (await schedules.get("tick")).record
    assert (record.backfill, record.fired) == (None, 6)
    kinds = [run.kind for run in await schedules.runs("tick")]
    assert (kinds.count(RunKind.DUE), kinds.count(RunKind.BACKFILL)) == (6, 2)


@pytest.mark.parametrize(
    ("times", "limit", "kind"),
    [
        ((START, START - timedelta(1)), 1, InvalidOption),
        ((START - timedelta(1), START + timedelta(seconds=1)), 1, InvalidOption),
        ((NAIVE - timedelta(1), START), 1, InvalidTime),
        ((START - timedelta(1), "now"), 1, InvalidTime),
        ((START - timedelta(1), START), 0, InvalidOption),
        ((START - timedelta(1), START), 101, InvalidOption),
        ((START - timedelta(1), START), "all", InvalidOption),
    ],
)
async def test_a_backfill_that_makes_no_sense_is_refused(schedules, call, times, limit, kind):
    await schedules.put("hourly", "0 * * * *", call)
    with pytest.raises(kind) as caught:
        await schedules.backfill("hourly", *times, limit=limit)
    assert caught.value.hint
    assert (await schedules.get("hourly")).record.backfill is None


async def test_a_backfill_of_an_unknown_schedule_is_refused(schedules):
    with pytest.raises(UnknownSchedule):
        await schedules.backfill("nope", START - timedelta(1), START)


# ── hold, unhold, delete ─────────────────────────────────────────────────────────────────────


async def test_a_held_schedule_is_not_fired_and_makes_up_for_the_latest(
    schedules, call, clock, fire
):
    await schedules.put("tick", EVERY_MINUTE, call)
    (held,) = await schedules.hold("tick", by="ada", reason="migration")
    assert held.answer is ScheduleAnswer.DONE
    assert (await schedules.hold("tick"))[0].answer is ScheduleAnswer.ALREADY
    found = await schedules.get("tick")
    assert (found.record.hold.by, found.record.hold.reason) == ("ada", "migration")
    assert found.next_run is None
    clock.advance(minutes=5)
    await fire()
    assert await schedules.runs("tick") == []

    assert (await schedules.unhold("tick"))[0].answer is ScheduleAnswer.DONE
    assert (await schedules.unhold("tick"))[0].answer is ScheduleAnswer.ALREADY
    await fire()

    runs = await schedules.runs("tick")
    assert states(runs) == [(minute(5), RunState.STARTED), (minute(4), RunState.SKIPPED)]
    assert (runs[1].reason, runs[1].count) == ("missed", 4)


@pytest.mark.parametrize("verb", ["hold", "delete"])
async def test_nothing_is_done_to_any_if_one_is_unknown(schedules, call, verb):
    await schedules.put("known", EVERY_MINUTE, call)
    with pytest.raises(UnknownSchedule, match="nope"):
        await getattr(schedules, verb)("known", "nope")
    assert (await schedules.get("known")).record.hold is None


@pytest.mark.parametrize("verb", ["hold", "unhold", "delete"])
async def test_nothing_is_done_to_any_if_one_belongs_to_another_tenant(
    schedules, charge, call, verb
):
    await schedules.put("own", EVERY_MINUTE, call)
    tenant = (await schedules.get("own")).record.tenant
    await schedules.put("other", EVERY_MINUTE, charge.options(tenant="other").call("o-2"))
    await schedules.hold("own")
    before = (await schedules.get("own")).record
    with pytest.raises(UnknownSchedule, match="other"):
        await getattr(schedules, verb)("own", "other", tenant=tenant)
    assert (await schedules.get("own")).record == before


async def test_more_than_a_batch_is_held_and_deleted(schedules, call, app):
    engine = await app.engine()
    names = [f"s-{n:04}" for n in range(engine.capabilities.max_batch + 3)]
    await schedules.put_many(schedules.make(name, EVERY_MINUTE, call) for name in names)

    held = await schedules.hold(*names, *names[:2])
    deleted = await schedules.delete(*names)

    assert [one.id for one in held] == names
    assert {one.answer for one in (*held, *deleted)} == {ScheduleAnswer.DONE}
    assert [one async for one in schedules.list()] == []


# ── declare ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def declaring(clock, app):
    @app.schedule(timedelta(minutes=5), id="often", arguments={"name": "Ada"}, overlap="allow")
    @app.schedule("0 2 * * *", timezone="Europe/Berlin")
    @app.job(queue="reports")
    async def report(name: str = "all") -> None: ...

    return app


async def test_declared_schedules_are_put_by_workers_however_many_there_are(declaring):
    engine = await declaring.engine()
    declared = tuple(declaring.schedules.declared.values())
    assert [new.id for new in declared] == ["report", "often"]
    for worker in ("w-1", "w-2"):
        declarer = Declarer(engine, lambda: declared, by=worker)
        assert await declarer.step() == POLL

    often, report = [one async for one in declaring.schedules.list()]

    assert (often.id, often.spec.calendar) == ("often", Interval(300))
    assert often.spec.template.args == b'{"name":"Ada"}'
    assert often.spec.policy.overlap is Overlap.ALLOW
    assert report.spec.calendar == Cron("0 2 * * *", timezone="Europe/Berlin")
    assert (report.spec.template.queue, report.record.version) == ("reports", 1)


async def test_a_store_that_has_forgotten_its_workers_gets_what_it_lacks_again(declaring):
    engine, fleet = await declaring.engine(), Fleet()
    declared = tuple(declaring.schedules.declared.values())
    declarer = Declarer(engine, lambda: declared, by="w-1", fleet=fleet)
    await declarer.step()
    call = await declaring.call("report", {})
    newer = declaring.schedules.make("often", timedelta(minutes=7), call)
    await declaring.schedules.put_many([newer])
    await declaring.schedules.delete("report", reason="lost")
    await declarer.step()
    assert [one.id async for one in declaring.schedules.list()] == ["often"]

    fleet.forgotten += 1
    await declarer.step()

    often, report = [one async for one in declaring.schedules.list()]
    assert report.spec.calendar == Cron("0 2 * * *", timezone="Europe/Berlin")
    assert often.spec.calendar == Interval(420), "another version may have declared it since"


async def test_a_schedule_of_a_tenant_that_the_store_knows_is_not_put_again(declaring):
    engine, fleet = await declaring.engine(), Fleet()
    report, often = declaring.schedules.declared.values()
    declared = replace(often, tenant="acme")
    declarer = Declarer(engine, lambda: [declared], by="w-1", fleet=fleet)
    await declarer.step()
    newer = replace(declared, spec=report.spec)
    await engine.schedules.put_schedules([newer], by="w-2")

    fleet.forgotten += 1
    await declarer.step()

    known = await engine.schedules.schedule("often", tenant="acme")
    assert known.spec == newer.spec


async def test_a_program_may_put_what_it_declares(declaring):
    answers = await declaring.schedules.put_declared()
    assert [put.answer for put in answers] == [PutAnswer.CREATED] * 2


def test_a_declared_job_stays_the_job_it_was(declaring):
    assert declaring.registry.names() == ("report",)


def test_what_is_declared_wrongly_is_told_when_the_program_is_loaded(url):
    app = App(url)

    @app.job
    async def report(name: str) -> None: ...

    with pytest.raises(InvalidHandler, match=r"above `@app\.job`"):
        app.schedule("0 2 * * *")(print)
    with pytest.raises(TypeError, match="name"):
        app.schedule("0 2 * * *")(report)
    with pytest.raises(InvalidOption, match="24"):
        app.schedule("0 24 * * *", arguments={"name": "x"})(report)
    assert app.schedules.declared == {}
    app.schedule("0 2 * * *", arguments={"name": "x"})(report)
    with pytest.raises(InvalidOption, match="declared twice"):
        app.schedule("0 3 * * *", arguments={"name": "x"})(report)
