"""Runs whose arguments did not fit are decided with what the store knows of versions."""

import asyncio
from types import SimpleNamespace

import pytest

from lamplighter.model.errors import StoreUnreachable
from lamplighter.model.job import NO_VERSION, ErrorInfo, Refusal
from lamplighter.model.versions import Seat
from lamplighter.observability import events
from lamplighter.port.values import TypeRow
from lamplighter.worker.placer import Placer
from tests.unit.worker.fakes import make_run, until

ERROR = ErrorInfo(type="DoesNotFit", message="no")
TAKES_ALL = "{}"


async def greets(name: str) -> None: ...


def row(digest: str, schema: str, *slots: int) -> TypeRow:
    return TypeRow(
        name="work",
        queue="default",
        schema=schema,
        hash=digest,
        options={},
        held=None,
        live_workers=1,
        seats=tuple(Seat(slot=slot, queues=("default",)) for slot in slots),
    )


class Inspector:
    """Tells what it was given; a failure first, if there is one."""

    def __init__(self) -> None:
        self.rows = [row("mine", TAKES_ALL, 1), row("other", TAKES_ALL, 2)]
        self.error: ErrorInfo | None = None
        self.failures: list[Exception] = []
        self.asked = 0

    async def types(self) -> list[TypeRow]:
        self.asked += 1
        if self.failures:
            raise self.failures.pop()
        return self.rows

    async def job(self, _job_id: str) -> SimpleNamespace:
        return SimpleNamespace(claimed_at_ms=77, error=self.error)


class Scene:
    def __init__(self) -> None:
        self.inspector = Inspector()
        self.placed: list = []
        self.forsaken: list[int] = []
        engine = SimpleNamespace(inspector=self.inspector)
        self.placer = Placer(
            engine,
            on_placed=lambda run, outcome: self.placed.append((run.number, outcome)),
            on_forsaken=self.forsaken.extend,
        )

    def add(self, number: int = 0) -> None:
        run = make_run(greets, number, args=b'{"title": "x"}')
        run.type.hash = "mine"
        self.placer.add(run, ERROR)


@pytest.fixture
async def scene():
    scene = Scene()
    scene.placer.start()
    yield scene
    await scene.placer.stop()


async def test_a_misfit_goes_to_a_version_that_takes_it_and_names_who_refused(scene):
    scene.add()
    await until(lambda: scene.placed)

    ((number, misfit),) = scene.placed
    assert (number, misfit.version, misfit.dead) == (0, "version:2", None)
    assert misfit.error.refusals == (Refusal(version="mine", since_ms=77),)


async def test_versions_that_refused_it_before_are_left_out(scene):
    scene.inspector.error = ErrorInfo(
        type="DoesNotFit", message="no", refusals=(Refusal(version="other", since_ms=5),)
    )
    scene.add()
    await until(lambda: scene.placed)

    ((_, misfit),) = scene.placed
    assert misfit.version == NO_VERSION
    assert {one.version for one in misfit.error.refusals} == {"mine", "other"}
    assert {one.since_ms for one in misfit.error.refusals} == {5}


async def test_many_cost_one_look_at_the_versions(scene):
    for number in range(50):
        scene.add(number)
    await scene.placer.emptied()

    assert [number for number, _ in scene.placed] == list(range(50))
    assert scene.inspector.asked == 1


async def test_a_type_that_does_not_fit_is_told_of_once(scene):
    told: list[str] = []
    stop = events.listen(
        lambda name, fields: told.append(fields["text"]) if name == "worker.warned" else None
    )
    for number in range(3):
        scene.add(number)
    await scene.placer.emptied()
    stop()

    (text,) = told
    assert "greets(name: str)" in text


async def test_a_store_that_is_away_is_asked_again(scene):
    scene.inspector.failures = [StoreUnreachable("away", hint="")]
    scene.add()

    await until(lambda: scene.placed)

    assert scene.inspector.asked == 2


async def test_what_was_lost_meanwhile_is_not_decided():
    scene = Scene()
    scene.add(1)
    scene.add(2)

    scene.placer.lose([1, 9])
    scene.placer.start()
    await scene.placer.emptied()
    await asyncio.sleep(0)

    assert scene.forsaken == [1]
    assert [number for number, _ in scene.placed] == [2]
    await scene.placer.stop()
