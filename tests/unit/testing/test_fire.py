"""Schedules in tests: the clock is moved, and what falls due is fired when the test says so."""

from datetime import UTC, datetime, timedelta

from lamplighter import App, Cron, testing

START = datetime(2026, 3, 29, 0, 0, tzinfo=UTC)


def program() -> tuple[App, list[str]]:
    app, seen = App("sqlite:///unused.db"), []

    @app.schedule(Cron("30 2 * * *", timezone="Europe/Berlin"), id="nightly")
    @app.job
    async def report() -> None:
        seen.append("report")

    return app, seen


async def test_a_declared_schedule_is_fired_when_its_time_has_come():
    app, seen = program()
    async with testing.store(app, start=START) as t:
        assert await t.fire() == 0
        t.clock.move_to(datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC))
        assert await t.fire() == 0
        # 02:30 does not exist on that day in Berlin; 03:00 does, an hour before 02:00 UTC.
        t.clock.move_to(datetime(2026, 3, 29, 1, 0, tzinfo=UTC))
        assert await t.fire() == 1
        assert await t.fire() == 0, "once"
        assert (await t.drain()).succeeded == 1
        assert seen == ["report"]


async def test_schedules_that_were_put_are_fired_too_and_caught_up():
    app = App("sqlite:///unused.db")

    @app.job
    async def tick(number: int) -> None: ...

    async with testing.store(app, start=START) as t:
        for number in range(250):
            await app.schedules.put(
                f"s{number}", timedelta(minutes=5), tick.call(number), overlap="allow"
            )
        t.clock.advance(hours=1)
        assert await t.fire() == 250, "the latest of each"
        t.clock.advance(minutes=5)
        assert await t.fire() == 250
        assert (await t.drain()).succeeded == 500


def test_the_same_without_an_event_loop():
    app, seen = program()
    with testing.store_sync(app, start=START) as t:
        assert t.fire() == 0
        t.clock.advance(hours=25)
        assert t.fire() == 1
        t.drain()
        assert seen == ["report"]


async def test_until_idle_fires_what_falls_due_within_its_time():
    app, seen = program()
    async with testing.store(app, start=START) as t:
        summary = await t.run_until_idle(timedelta(days=3))
        assert summary.succeeded == 3
        assert seen == ["report"] * 3
        assert summary.passed == timedelta(days=3)
        assert summary.idle, "no job waits, though the schedule goes on"


async def test_until_idle_runs_what_is_due_already_and_does_not_wait_for_schedules_alone():
    app, seen = program()
    async with testing.store(app, start=START) as t:
        await t.fire()
        t.clock.advance(hours=25)
        summary = await t.run_until_idle()
        assert seen == ["report"]
        assert summary.passed == timedelta()
        assert summary.idle


async def test_until_idle_fires_schedules_that_fall_due_while_jobs_wait():
    app, seen = program()

    @app.job
    async def later() -> None:
        seen.append("later")

    async with testing.store(app, start=START) as t:
        await later.options(delay=timedelta(hours=20)).submit()
        summary = await t.run_until_idle()
        assert seen == ["report", "later"]
        assert summary.passed == timedelta(hours=20)


async def test_runs_of_a_schedule_happen_at_its_times():
    app, at = App("sqlite:///unused.db"), []

    @app.schedule(timedelta(hours=1), id="hourly")
    @app.job
    async def tick() -> None:
        at.append(store.clock.now())

    async with testing.store(app, start=START) as store:
        await store.run_until_idle(timedelta(hours=3))
    assert [(moment - START) / timedelta(hours=1) for moment in at] == [1, 2, 3]
