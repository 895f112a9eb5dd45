import asyncio

import pytest

from lamplighter import App, Context, Job, Retry, Settings
from lamplighter.model.errors import (
    InvalidHandler,
    InvalidOption,
    InvalidSettings,
    InvalidTime,
    InvalidUrl,
)
from lamplighter.model.job import Delivery, Level


def handler(order_id: str) -> str:
    """Say something."""
    return f"got {order_id}"


def test_a_bare_decorator_takes_the_defaults(app):
    job = app.job(handler)

    assert isinstance(job, Job)
    assert job.name == "handler"
    assert app.registry.get("handler") is job.type
    assert (job.type.queue, job.type.level, job.type.timeout) == ("default", Level.NORMAL, None)
    assert job.__doc__ == "Say something."
    assert job.__name__ == "handler"


def test_a_decorator_with_options_sets_them(app):
    job = app.job(name="other", queue="mail", priority="high", delivery="at_most_once", timeout=30)(
        handler
    )

    assert (job.name, job.type.queue, job.type.level) == ("other", "mail", Level.HIGH)
    assert (job.type.timeout, job.type.delivery) == (30, Delivery.AT_MOST_ONCE)


def test_a_retry_policy_stands_on_the_type(app):
    policy = Retry(delays=[1])

    assert app.job(retry=policy)(handler).type.retry is policy


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"queues": "mail"}, InvalidOption, "did you mean `queue`"),
        ({"delivery": "exactly_once"}, InvalidOption, "unknown delivery"),
        ({"priority": "urgent"}, InvalidOption, "unknown priority"),
        ({"timeout": -1}, InvalidTime, "timeout"),
        ({"retry": 5}, InvalidOption, "retry is `5`"),
        ({"delay": 5}, InvalidOption, "unknown option `delay`"),
    ],
)
def test_bad_options_of_a_type_are_refused(app, options, error, says):
    with pytest.raises(error, match=says):
        app.job(**options)(handler)

    assert len(app.registry) == 0


def test_one_name_for_two_handlers_is_refused(app):
    app.job(handler)

    with pytest.raises(InvalidHandler, match="two handlers"):
        app.job(handler)


async def test_calling_a_job_calls_the_function(app):
    @app.job
    async def with_context(ctx: Context, number: int) -> str:
        return f"{ctx.type}:{number}"

    @app.job
    async def without_context(number: int) -> int:
        return number

    @app.job
    def plain(number: int) -> int:
        return number + 1

    @app.job
    def plain_with_context(ctx: Context, number: int) -> int:
        return ctx.attempt + number

    ctx = Context.sample(type="t")
    assert await with_context(ctx, 5) == "t:5"
    assert await without_context(5) == 5
    assert plain(5) == 6
    assert plain_with_context(ctx, number=5) == 6


def test_stories_are_kept_for_dev(app):
    @app.on_dev
    async def story(app: App) -> None: ...

    assert app.stories == [story]


# ── settings ─────────────────────────────────────────────────────────────────────────────────


def test_the_address_comes_from_the_argument_then_the_environment(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LAMPLIGHTER_URL", raising=False)
    assert App().settings.url == "sqlite:///lamplighter.db"

    monkeypatch.setenv("LAMPLIGHTER_URL", "sqlite:///environment.db")
    assert App().settings.url == "sqlite:///environment.db"
    assert App("sqlite:///argument.db").settings.url == "sqlite:///argument.db"
    settings = Settings(url="sqlite:///settings.db", poll=2)
    assert App(settings=settings).settings is settings
    assert App("sqlite:///argument.db", settings=settings).settings.url == "sqlite:///argument.db"


def test_making_an_app_touches_nothing(tmp_path):
    App(f"sqlite:///{tmp_path / 'jobs.db'}")

    assert list(tmp_path.iterdir()) == []


async def test_an_open_store_cannot_be_exchanged(app, url):
    app.configure(Settings(url=url, speed=10))
    await app.open()
    app.configure(Settings(url=url, speed=20))

    with pytest.raises(InvalidSettings, match="is open already"):
        app.configure(Settings(url="sqlite:///other.db"))

    assert app.settings.speed == 20


async def test_an_address_nobody_understands_is_refused_when_it_is_opened():
    with pytest.raises(InvalidUrl):
        await App("postgre://db/jobs").open()


# ── open and close ───────────────────────────────────────────────────────────────────────────


async def test_a_closed_app_opens_again_when_it_is_used(app, charge):
    first = await charge.submit("o-1")
    await app.close()
    await app.close()

    assert (await first.record()).job.id == first.id


async def test_a_lent_engine_is_used_and_left_open(url):
    owner, borrower = App(url), App("sqlite:////nowhere/to/be/found.db")
    job = borrower.job(handler)
    engine = await owner.engine()

    borrower.adopt(engine)
    handle = await job.submit("o-1")
    await borrower.close()

    assert await engine.inspector.job(handle.id) is not None
    await owner.close()


def test_each_event_loop_has_its_own_store(url):
    app = App(url)
    job = app.job(handler)

    async def submit() -> str:
        return (await job.submit("o-1")).id

    first, second = asyncio.run(submit()), asyncio.run(submit())

    async def both_there() -> None:
        for job_id in (first, second):
            await app.handle(job_id).record()
        await app.close()

    asyncio.run(both_there())
    assert not app._client.connections.used
