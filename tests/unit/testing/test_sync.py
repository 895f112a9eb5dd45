"""The same without an event loop."""

from datetime import timedelta

import pytest

from lamplighter import App, testing
from lamplighter.model.errors import SyncInsideLoop
from lamplighter.model.job import JobState
from tests.unit.testing.conftest import NOON


@pytest.fixture
def t(app: App):
    with testing.store_sync(app, start=NOON) as t:
        yield t


def test_submit_drain_and_look(t, charge, production) -> None:
    handle = charge.submit_sync("o-1", 995)
    t.assert_submitted(charge, order_id="o-1", count=1)

    assert t.drain().succeeded == 1
    assert handle.result_sync(timeout=0) == "receipt-1"
    assert not production.exists()


def test_time_passes(t, charge, gateway) -> None:
    gateway.failures = 3
    charge.submit_sync("o-1")

    assert t.run_until_idle().passed == timedelta(minutes=36)
    assert t.clock.now() == NOON + timedelta(minutes=36)


def test_workers_vanish(t, app: App, charge) -> None:
    handle = charge.submit_sync("o-1")
    assert t.crash(charge).id == handle.id
    t.clock.advance(app.settings.lease)
    (rescued,) = t.rescue()
    assert rescued.state is JobState.WAITING


def test_the_app_has_its_own_store_again_afterwards(app: App, charge) -> None:
    own = app.settings
    with testing.store_sync(app) as t:
        charge.submit_sync("o-1")
        t.assert_submitted(charge)
        assert repr(t).startswith("<Store of a test at ")
    assert app.settings == own


async def test_it_is_refused_inside_a_loop(app: App) -> None:
    with pytest.raises(SyncInsideLoop, match="async with"), testing.store_sync(app):
        pass
