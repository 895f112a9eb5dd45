"""A small piece of the year; `make year` has 50,000 tenants."""

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.year import bills, midnights
from tests.year.tenants import WITHOUT_A_MIDNIGHT, ZONES, beginnings, lack_a_midnight

DAY_MS = 24 * 3_600_000


def test_there_are_forty_zones_and_some_lack_a_midnight():
    assert len(set(ZONES)) == 40
    found = {name for name in ZONES if lack_a_midnight(name)}
    assert found == set(WITHOUT_A_MIDNIGHT)
    assert lack_a_midnight("Atlantic/Azores") == ["2023-03-26"]
    assert lack_a_midnight("America/Asuncion") == ["2023-10-01"], "the first of a month"


def test_every_zone_has_its_365_days_and_twelve_months():
    for name in ZONES:
        days = beginnings(name)
        assert len(days) == 365
        assert len(beginnings(name, monthly=True)) == 12
        lengths = {later - day for day, later in pairwise(days)}
        assert all(DAY_MS - 2 * 3_600_000 <= length <= DAY_MS + 2 * 3_600_000 for length in lengths)


def test_each_tenant_has_each_midnight_once():
    found = midnights.run(2 * len(ZONES))

    assert not found.faults, "\n".join(found.faults)
    assert found.bills == found.expected == 2 * len(ZONES) * 365


async def test_each_tenant_has_each_month_once_in_the_store(tmp_path):
    ledger = await bills.run(f"sqlite:///{tmp_path / 'year.db'}", 200)

    assert not ledger.faults, "\n".join(ledger.faults[:3])
    assert ledger.bills == ledger.expected == 200 * 12


@pytest.mark.parametrize("fault", ["lost", "late"])
def test_a_planner_that_is_wrong_once_is_found_out(monkeypatch, fault):
    right = midnights.plan

    def wrong(due, spec, now_ms, zones):
        firing = right(due, spec, now_ms, zones)
        if due.record.fired != 100 or due.record.id != "midnight/tenant-00003":
            return firing
        if fault == "lost":
            return replace(firing, runs=())
        return replace(
            firing, runs=tuple(replace(run, due_ms=run.due_ms + 1) for run in firing.runs)
        )

    monkeypatch.setattr(midnights, "plan", wrong)

    found = midnights.part(range(4))

    assert any("tenant-00003" in one for one in found.faults)
    if fault == "lost":
        assert found.bills < found.expected
