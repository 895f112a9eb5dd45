"""check_up and grant: what is wrong with a store is said, never mended behind one's back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter import runtime
from lamplighter.model.errors import InvalidOption, StoreUnreachable
from lamplighter.port.checkup import Checkup, Finding, Grade
from lamplighter.port.conformance.builders import new_job, submit
from lamplighter.port.conformance.contender import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine


def _schema(found: Checkup) -> Finding:
    (finding,) = [one for one in found.findings if one.check == "schema"]
    return finding


async def test_an_open_store_is_found_in_order(engine: Engine) -> None:
    await submit(engine, new_job())

    found = await engine.check_up()

    assert found.engine == engine.capabilities.name
    assert found.problems == 0
    assert _schema(found).grade is Grade.OK
    (schedules,) = [one for one in found.findings if one.check == "schedules"]
    assert (schedules.grade, schedules.text) == (Grade.OK, "none is overdue")
    assert found.survives
    assert sum((await engine.inspector.counts()).values()) == 1


async def test_each_finding_says_what_was_found_and_what_to_do(engine: Engine) -> None:
    found = await engine.check_up()

    names = [finding.check for finding in found.findings]
    assert len(set(names)) == len(names)
    assert all(finding.text for finding in found.findings)
    for finding in found.findings:
        assert finding.remedy or finding.grade in (Grade.OK, Grade.NOTE)


async def test_a_check_up_makes_no_store(
    fresh_engine: Callable[[Callable[[], int]], Engine], clock: VirtualClock
) -> None:
    engine = fresh_engine(clock.now_ms)

    for _ in range(2):
        found = await engine.check_up()
        assert _schema(found).grade is Grade.PROBLEM
        assert found.problems >= 1
    with pytest.raises(StoreUnreachable):
        await engine.open(create=False)


async def test_a_store_that_is_there_is_opened_without_making_one(
    engine: Engine, store_url: str, connector: str, clock: VirtualClock
) -> None:
    (job_id,) = await submit(engine, new_job())
    other = load(connector)(store_url, clock_ms=clock.now_ms)

    await other.open(create=False)

    assert await other.inspector.job(job_id) is not None
    await other.close()


async def test_rights_are_given_only_to_users_there_are(engine: Engine) -> None:
    nobody = f"nobody_{runtime.random_bits(64):x}"

    for given in ({"run": [nobody]}, {"read": [nobody]}):
        with pytest.raises(InvalidOption, match=nobody):
            await engine.grant(**given)
        with pytest.raises(InvalidOption, match=nobody):
            await engine.migrate(**given)
    await engine.grant()
