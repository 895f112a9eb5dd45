"""`app.schedules` from plain code: the twins do what the others do."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from lamplighter import App, Status
from lamplighter.model.errors import InvalidOption, SyncInsideLoop, UnknownSchedule
from lamplighter.port.schedules import PutAnswer, RunState, ScheduleAnswer, ScheduleFilter

MIDNIGHT = "0 0 * * *"


@pytest.fixture
def plain(url):
    app = App(url)

    @app.schedule(MIDNIGHT)
    @app.job
    def report(region: str = "all") -> None: ...

    yield app, report
    app.close_sync()


def test_everything_about_schedules_works_from_plain_code(plain):
    app, report = plain
    schedules = app.schedules

    assert schedules.put_sync("nightly", MIDNIGHT, report.call()).answer is PutAnswer.CREATED
    (declared,) = schedules.put_declared_sync(by="ada")
    made = [schedules.make(f"digest/{n}", timedelta(hours=1), report.call()) for n in range(3)]
    assert [put.answer for put in schedules.put_many_sync(made)] == [PutAnswer.CREATED] * 3
    found = schedules.get_sync("nightly")
    listed = [one.id for one in schedules.list_sync()]
    (held,) = schedules.hold_sync("nightly", by="ada", reason="for now")
    paused = [one.id for one in schedules.list_sync(ScheduleFilter(held=True))]
    (unheld,) = schedules.unhold_sync("nightly")
    answer, handle = schedules.trigger_sync("nightly", by="ada")
    (run,) = schedules.runs_sync("nightly", limit=5)
    (gone,) = schedules.delete_sync("digest/0")

    assert (declared.id, declared.answer) == ("report", PutAnswer.CREATED)
    assert (found.id, len(found.preview(3))) == ("nightly", 3)
    assert listed == ["digest/0", "digest/1", "digest/2", "nightly", "report"]
    assert paused == ["nightly"]
    assert {one.answer for one in (held, unheld, gone, answer)} == {ScheduleAnswer.DONE}
    assert handle is not None
    assert (handle.id, handle.status_sync()) == (run.job_id, Status.READY)
    assert run.state is RunState.STARTED
    with pytest.raises(UnknownSchedule):
        schedules.get_sync("digest/0")


def test_a_backfill_begins_from_plain_code(plain):
    app, report = plain
    app.schedules.put_sync("nightly", MIDNIGHT, report.call())
    start, end = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)

    begun = app.schedules.backfill_sync("nightly", start, end, limit=2, reason="lost")

    assert begun.answer is ScheduleAnswer.DONE
    backfill = app.schedules.get_sync("nightly").record.backfill
    assert backfill is not None
    assert backfill.limit == 2


def test_a_wrong_schedule_is_refused_before_a_thread_starts(plain):
    app, report = plain
    before = threading.active_count()

    with pytest.raises(InvalidOption):
        app.schedules.put_sync("nightly", MIDNIGHT, report.call(), max_runs="many")

    assert threading.active_count() == before


async def test_inside_a_running_loop_the_twins_are_refused_with_the_remedy(app, charge):
    schedules = app.schedules
    call, now = charge.call("o-1"), datetime(2024, 1, 1, tzinfo=UTC)

    for twin, remedy in (
        (lambda: schedules.put_sync("s", MIDNIGHT, call), "put"),
        (lambda: schedules.put_many_sync([]), "put_many"),
        (schedules.put_declared_sync, "put_declared"),
        (lambda: schedules.get_sync("s"), "get"),
        (schedules.list_sync, "list"),
        (lambda: schedules.runs_sync("s"), "runs"),
        (lambda: schedules.trigger_sync("s"), "trigger"),
        (lambda: schedules.backfill_sync("s", now, now), "backfill"),
        (lambda: schedules.hold_sync("s"), "hold"),
        (lambda: schedules.unhold_sync("s"), "unhold"),
        (lambda: schedules.delete_sync("s"), "delete"),
    ):
        with pytest.raises(SyncInsideLoop) as caught:
            twin()
        assert f"app.schedules.{remedy}(" in caught.value.hint


def test_every_call_that_has_to_be_awaited_has_a_twin():
    names = {name for name in vars(type(App().schedules)) if not name.startswith("_")}
    awaited = names - {"declare", "make"} - {name for name in names if name.endswith("_sync")}

    assert {f"{name}_sync" for name in awaited} <= names
