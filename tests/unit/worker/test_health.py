"""Health: which loops make no progress, and that each change is told once."""

import asyncio
from types import SimpleNamespace

import pytest

from lamplighter import runtime
from lamplighter.observability import events
from lamplighter.observability.health import Health, look
from lamplighter.service import LATE, Service
from lamplighter.worker.health import LOOK, HealthWatch


class Clock(runtime.System):
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock():
    clock = Clock()
    with runtime.install(clock):
        yield clock


class Loop(Service):
    """A service that says when its next step is due, or fails."""

    name = "fire"

    def __init__(self, *answers: float | Exception) -> None:
        super().__init__()
        self._answers = list(answers)
        self.left = asyncio.Event()

    async def step(self) -> float:
        answer = self._answers.pop(0)
        if not self._answers:
            self.left.set()
            self._answers.append(3600.0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def run(loop: Loop) -> None:
    """Let it take all its steps."""
    loop.start()
    async with asyncio.timeout(20):
        await loop.left.wait()
        await loop.stop()


async def test_a_loop_is_late_a_while_after_the_time_its_last_step_named(clock):
    loop = Loop(300.0)
    await run(loop)

    clock.now += 300 + LATE
    assert not loop.late
    clock.now += 1
    assert loop.late
    health = look([loop], clock.now)
    assert (health.late, health.stuck, health.well) == (("fire",), (), False)
    assert health.loops[0].idle == 301 + LATE


async def test_steps_that_fail_are_no_progress(clock, told):
    loop = Loop(0.0, ValueError("no"), ValueError("no"))
    loop.start()
    async with asyncio.timeout(20):
        await asyncio.sleep(0)
        clock.now += LATE + 1
        await loop.left.wait()
        await loop.stop()

    assert loop.late
    assert not loop.stuck
    assert look([loop], clock.now).why == ("no progress: fire",)


async def test_a_step_that_goes_on_after_it_was_to_be_given_up_is_stuck(clock):
    class Endless(Loop):
        patience = 30.0

        async def step(self) -> float:
            self.left.set()
            await free.wait()
            return 3600.0

    free, loop = asyncio.Event(), Endless()
    loop.start()
    async with asyncio.timeout(20):
        await loop.left.wait()
        clock.now += LATE + Endless.patience
        assert not loop.stuck
        clock.now += 1
        assert loop.stuck
        assert look([loop], clock.now).why == ("stuck: fire",)
        free.set()
        await loop.stop()

    assert not loop.stuck
    assert look([loop], clock.now).well


def health(*why: str) -> Health:
    loops = [
        SimpleNamespace(name=one, progress=0.0, restarts=2, late=True, stuck=False) for one in why
    ]
    return look(loops, 70.0)


async def test_a_change_of_health_is_told_once_and_so_is_its_end(clock, told):
    now = health()
    watch = HealthWatch("w-1", lambda: now)
    for change in (health(), health("fire"), health("fire"), health("fire", "prune"), health()):
        now = change
        clock.now += await watch.step()

    assert [(name, fields["well"], fields["why"]) for name, fields in told] == [
        (events.HEALTH_CHANGED, False, ["no progress: fire"]),
        (events.HEALTH_CHANGED, False, ["no progress: fire, prune"]),
        (events.HEALTH_CHANGED, True, []),
    ]
    assert told[0][1]["worker"] == "w-1"
    (loop,) = told[0][1]["loops"]
    assert loop == {"name": "fire", "idle": 70.0, "restarts": 2, "late": True, "stuck": False}


async def test_after_the_whole_process_stood_still_nobody_is_blamed_at_once(clock, told):
    watch = HealthWatch("w-1", lambda: health("fire"))
    clock.now += 600
    assert await watch.step() == LOOK
    assert told == []

    clock.now += LOOK
    await watch.step()

    assert [name for name, _ in told] == [events.HEALTH_CHANGED]
