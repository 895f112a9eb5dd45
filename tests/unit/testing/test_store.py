"""The store of a test: what it is, and what it leaves behind."""

import asyncio
import dataclasses
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lamplighter import App, runtime, testing
from lamplighter.model.errors import InvalidTime
from lamplighter.model.job import Status
from tests.unit.testing.conftest import NOON


async def test_the_users_database_is_never_touched(app: App, charge, production) -> None:
    async with testing.store(app) as t:
        await charge.submit("o-1", 995)
        await t.drain()

    assert not production.exists()


async def test_the_app_has_its_own_store_again_afterwards(app: App, charge, production) -> None:
    own = app.settings
    before = await charge.submit("o-1")

    async with testing.store(app) as t:
        folder = Path(app.settings.url.removeprefix("sqlite:///")).parent
        assert t.submitted() == []
        await charge.submit("o-2")

    assert app.settings == own
    assert not folder.exists()
    assert await before.status() is Status.READY
    assert production.exists()
    await app.close()


async def test_the_store_is_taken_away_when_the_test_fails(app: App, charge) -> None:
    own, moment = app.settings, runtime.now_ms()

    async def failing_test() -> None:
        async with testing.store(app, start=NOON):
            await charge.submit("o-1")
            raise RuntimeError("the test failed")

    with pytest.raises(RuntimeError, match="the test failed"):
        await failing_test()

    assert app.settings == own
    assert 0 <= runtime.now_ms() - moment < 60_000


async def test_each_store_is_empty(app: App, charge) -> None:
    for _ in range(2):
        async with testing.store(app) as t:
            assert t.submitted() == []
            await charge.submit("o-1")


async def test_the_clock_starts_at_the_present_and_stands_still(app: App) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    async with testing.store(app) as t:
        assert before <= t.clock.now() <= datetime.now(UTC)
        assert t.clock.now() == t.clock.now()


async def test_there_are_no_dice(t: testing.Store) -> None:
    assert {runtime.random() for _ in range(100)} == {0.0}
    assert len({runtime.nonce() for _ in range(100)}) == 100


async def test_the_clock_moves_forward_only(t: testing.Store) -> None:
    assert t.clock.now() == NOON
    assert t.clock.advance(hours=1, minutes=30) == NOON + timedelta(minutes=90)
    assert t.clock.advance(30) == NOON + timedelta(minutes=90, seconds=30)
    assert t.clock.advance(timedelta(days=1)) == NOON + timedelta(days=1, minutes=90, seconds=30)
    assert t.clock.move_to(NOON + timedelta(days=2)) == NOON + timedelta(days=2)

    with pytest.raises(InvalidTime, match="cannot be advanced by -1"):
        t.clock.advance(-1)
    with pytest.raises(InvalidTime, match="is before"):
        t.clock.move_to(NOON)
    with pytest.raises(InvalidTime, match="no time zone"):
        t.clock.move_to(datetime(2031, 1, 1))  # noqa: DTZ001
    with pytest.raises(InvalidTime, match="year 9999"):
        t.clock.advance(days=10_000_000)
    with pytest.raises(InvalidTime, match="nan"):
        t.clock.advance(float("nan"))
    assert t.clock.now() == NOON + timedelta(days=2)


async def test_stores_of_two_apps_share_one_clock(app: App, t: testing.Store) -> None:
    other = App("sqlite:///never-opened.db")
    async with testing.store(other) as inner:
        inner.clock.advance(hours=1)
        assert t.clock.now() == NOON + timedelta(hours=1)
        with pytest.raises(InvalidTime, match="inside of another"):
            async with testing.store(App("sqlite:///never-opened.db"), start=NOON):
                pass


async def test_a_store_inside_a_store_of_the_same_app_gives_way_again(t, charge) -> None:
    await charge.submit("outer")
    async with testing.store(t.app) as inner:
        await charge.submit("inner")
        inner.assert_submitted(charge, order_id="inner", count=1)
    t.assert_submitted(charge, order_id="outer", count=1)
    t.assert_not_submitted(charge, order_id="inner")


async def test_a_job_submitted_from_plain_code_lives_by_the_same_clock(t, charge) -> None:
    await asyncio.to_thread(charge.options(delay=60).submit_sync, "o-1")

    (found,) = t.submitted(charge)
    assert found.due_at == NOON + timedelta(minutes=1)


async def test_a_hastened_app_keeps_its_true_delays_in_a_test(app: App, charge) -> None:
    app.configure(dataclasses.replace(app.settings, speed=1000))
    async with testing.store(app) as t:
        await charge.options(delay=60).submit("o-1")
        t.assert_submitted(charge, delay=60)


def test_the_module_needs_no_test_library() -> None:
    code = "import sys, lamplighter.testing; print('pytest' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_public_names_are_sorted_and_exist() -> None:
    assert testing.__all__ == sorted(testing.__all__)
    for name in testing.__all__:
        assert hasattr(testing, name)
