"""Progress in tests: what a handler says of itself can be looked at afterwards."""

from lamplighter import App, Context, Retry, testing
from lamplighter.model.journal import Progress

STEP = Progress(done=3, total=3, note="step 3")


def program() -> App:
    app = App("sqlite:///unused.db")

    @app.job(retry=Retry(delays=[1.0]))
    async def count(ctx: Context, until: int) -> None:
        for number in range(1, until + 1):
            ctx.progress(number, until, f"step {number}")
        if ctx.attempt == 1:
            raise ValueError

    @app.job
    def silent() -> None: ...

    return app


async def test_the_progress_of_a_run_is_in_the_store_and_in_the_summary():
    app = program()
    async with testing.store(app) as t:
        handle = await app.submit("count", {"until": 3})
        summary = await t.drain()

        (run,) = summary.runs
        assert run.progress == STEP
        assert (await handle.record()).progress == STEP
        (job,) = t.submitted("count")
        assert job.progress == STEP

        summary = await t.run_until_idle()
        assert [each.progress for each in summary.runs] == [STEP]


async def test_who_says_nothing_has_no_progress():
    app = program()
    async with testing.store(app) as t:
        await app.submit("silent", {})
        summary = await t.drain()
        assert [each.progress for each in summary.runs] == [None]
        assert [each.progress for each in t.submitted()] == [None]
