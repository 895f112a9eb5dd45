"""When the rules of a time zone change, what is to come follows them, and what was stays."""

from datetime import UTC, datetime

import pytest

from lamplighter import App
from lamplighter.config import Settings
from lamplighter.coordinator import Firer, Zones, fire
from lamplighter.coordinator.zones import BATCH, INTERVAL
from lamplighter.model import timetable
from lamplighter.model.errors import InvalidInput
from lamplighter.model.schedule import tzdata_version
from lamplighter.model.schedule import zones as data
from lamplighter.observability import events
from lamplighter.port import specs
from lamplighter.port.schedules import NewSchedule, RunState, ScheduleFilter
from lamplighter.testing.clock import installed

START = datetime(2030, 3, 27, 12, 0, 30, tzinfo=UTC)
"""Four days before the clocks of Berlin are put forward, in winter time."""
AT_THREE = "0 3 * * *"
BERLIN = "Europe/Berlin"
NEWER = "2999a"


@pytest.fixture
def clock():
    with installed(START) as clock:
        yield clock


@pytest.fixture
async def app(clock, tmp_path):
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.job
    async def bill(tenant: str = "acme") -> None: ...

    yield app
    await app.close()


@pytest.fixture
async def engine(app):
    return await app.engine()


def forget_zones() -> None:
    for cached in (
        data._zone,
        data._timeline,
        specs.from_text,
        specs._shared,
        timetable._next_after,
    ):
        cached.cache_clear()


@pytest.fixture
def no_more_summer_time(monkeypatch):
    """Give the way to let Berlin keep its winter time for ever, as newer data would say."""
    read = data._read

    def install() -> None:
        monkeypatch.setattr(
            data,
            "_read",
            lambda *path: read(
                *("zoneinfo", "Africa", "Lagos")
                if path == ("zoneinfo", "Europe", "Berlin")
                else path
            ),
        )
        monkeypatch.setattr(fire, "tzdata_version", lambda: NEWER)
        forget_zones()

    yield install
    monkeypatch.undo()
    forget_zones()


class Scene:
    """A store with schedules, and a coordinator."""

    def __init__(self, app, engine, clock) -> None:
        self.app = app
        self.engine = engine
        self.clock = clock

    async def put(self, *names: str, **options) -> None:
        call = await self.app.call("bill", {})
        make = self.app.schedules.make
        await self.app.schedules.put_many(
            make(name, AT_THREE, call, timezone=BERLIN, overlap="allow", **options)
            for name in names
        )

    async def put_unreadable(self, name: str) -> None:
        """Put what only another version of the program can read."""
        new = NewSchedule(
            id=name, spec="{}", tenant="default", type="bill", due_ms=None, zones="2020a"
        )
        await self.engine.schedules.put_schedules([new], by="test")

    async def get(self, name: str = "nightly"):
        return (await self.app.schedules.get(name)).record

    async def due(self, name: str = "nightly") -> str:
        return datetime.fromtimestamp((await self.get(name)).due_ms / 1000, UTC).isoformat()

    async def older(self) -> int:
        page = await self.engine.schedules.schedules(ScheduleFilter(zones_not=NEWER), limit=100)
        return len(page.schedules)

    async def fire_until(self, *instant: int) -> None:
        """Let a coordinator work hour by hour."""
        end = datetime(*instant, tzinfo=UTC)
        firer = Firer(self.engine, Settings())
        while self.clock.now() < end:
            self.clock.advance(minutes=30)
            await firer.step()


@pytest.fixture
def scene(app, engine, clock):
    return Scene(app, engine, clock)


async def test_the_next_run_follows_new_rules(scene, engine, clock, told, no_more_summer_time):
    await scene.put("nightly")
    await scene.fire_until(2030, 3, 30, 12, 0, 0)
    before = await scene.get()
    assert await scene.due() == "2030-03-31T01:00:00+00:00"
    no_more_summer_time()

    assert await Zones(engine, NEWER).step() == INTERVAL

    assert await scene.due() == "2030-03-31T02:00:00+00:00"
    after = await scene.get()
    assert (before.zones, after.zones) == (tzdata_version(), NEWER)
    assert after.cursor_ms == before.cursor_ms
    assert (events.SCHEDULES_REPLANNED, {"count": 1, "zones": NEWER}) in told


async def test_what_was_run_stays_and_nothing_is_run_twice(
    scene, app, engine, clock, no_more_summer_time
):
    await scene.put("nightly")
    await scene.fire_until(2030, 3, 30, 12, 0, 0)
    history = await app.schedules.runs("nightly")
    assert [run.state for run in history] == [RunState.STARTED] * 3
    no_more_summer_time()
    zones = Zones(engine, NEWER)
    await zones.step()
    assert await app.schedules.runs("nightly") == history

    await scene.fire_until(2030, 4, 2, 12, 0, 0)
    await zones.step()
    await scene.fire_until(2030, 4, 3, 12, 0, 0)

    runs = await app.schedules.runs("nightly")
    assert runs[4:] == history
    moments = [datetime.fromtimestamp(run.due_ms / 1000, UTC) for run in reversed(runs)]
    assert [(at.month, at.day, at.hour) for at in moments] == [
        (3, 28, 2), (3, 29, 2), (3, 30, 2), (3, 31, 2), (4, 1, 2), (4, 2, 2), (4, 3, 2),
    ]  # fmt: skip
    assert (await scene.get()).fired == 7


async def test_a_schedule_that_cannot_be_planned_stops_no_others(scene, engine, told):
    await scene.put("a", "z")
    await scene.put_unreadable("m")

    assert await Zones(engine, NEWER).step() == INTERVAL

    assert (await scene.get("a")).zones == (await scene.get("z")).zones == NEWER
    assert (await scene.get("m")).zones == "2020a"
    errors = [fields["schedule"] for name, fields in told if name == events.SERVICE_ERROR]
    assert errors == ["m"]


async def test_a_plan_that_cannot_be_written_stops_no_others(scene, engine, told, monkeypatch):
    await scene.put("a", "m", "z")
    write = engine.schedules.fire

    async def refuse(firings):
        if any(firing.id == "m" for firing in firings):
            raise InvalidInput("not this one", hint="leave it out")
        return await write(firings)

    monkeypatch.setattr(engine.schedules, "fire", refuse)

    await Zones(engine, NEWER).step()

    assert [(await scene.get(name)).zones == NEWER for name in "amz"] == [True, False, True]
    assert (events.SCHEDULES_REPLANNED, {"count": 2, "zones": NEWER}) in told
    errors = [fields["schedule"] for name, fields in told if name == events.SERVICE_ERROR]
    assert errors == ["m"]


async def test_many_schedules_are_planned_page_by_page(scene, engine, told):
    await scene.put(*(f"s-{n:04}" for n in range(2 * BATCH + 50)))
    for n in range(0, 2 * BATCH, 20):
        await scene.put_unreadable(f"s-{n:04}-bad")
    zones = Zones(engine, NEWER)

    pauses = [await zones.step()]
    while pauses[-1] == 0.0:
        pauses.append(await zones.step())

    assert pauses[-1] == INTERVAL
    assert len(pauses) >= 3
    assert await scene.older() == 10
    counts = [fields["count"] for name, fields in told if name == events.SCHEDULES_REPLANNED]
    assert sum(counts) == 2 * BATCH + 50
    assert max(counts) <= BATCH


async def test_a_node_with_older_data_leaves_schedules_alone(scene, engine, told):
    await scene.put("nightly")
    before = await scene.get()

    assert await Zones(engine, "2001a").step() == INTERVAL

    assert await scene.get() == before
    assert events.SCHEDULES_REPLANNED not in dict(told)


async def test_one_node_of_a_version_plans_at_a_time(scene, engine):
    await Zones(engine, NEWER).step()
    await scene.put("nightly")

    assert await Zones(engine, NEWER).step() == INTERVAL

    assert (await scene.get()).zones == tzdata_version()


async def test_a_node_with_newer_data_does_not_wait_for_one_with_older(scene, engine):
    await scene.put("nightly")
    await Zones(engine, tzdata_version()).step()

    await Zones(engine, NEWER).step()

    assert (await scene.get()).zones == NEWER


async def test_a_backfill_is_not_put_off_by_new_rules(scene, app, engine, clock):
    await scene.put("nightly")
    start, end = datetime(2030, 3, 1, tzinfo=UTC), datetime(2030, 3, 5, tzinfo=UTC)
    await app.schedules.backfill("nightly", start, end, limit=1)
    await Firer(engine, Settings()).step()
    before = await scene.get()

    await Zones(engine, NEWER).step()

    after = await scene.get()
    assert after.backfill == before.backfill is not None
    assert after.due_ms == before.due_ms < clock.now_ms() + 2_000
