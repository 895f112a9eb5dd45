"""Listings: whatever the database sorts out beforehand, a page is what the filter means."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.engines.sqlite.verbs import inspect
from lamplighter.model.filters import Filter, matcher
from lamplighter.model.job import Extras, Level, Status
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import (
    BOOM,
    claim,
    completed,
    failed,
    new_job,
    submit,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lamplighter.port.store import Engine

BY = {"by": "alice", "reason": "to see"}
FILTERS = [
    *(Filter(statuses=(status.value,)) for status in Status),
    Filter(statuses=("pending",)),
    Filter(statuses=("failed", "running")),
    Filter(types=("work",)),
    Filter(types=("work", "bill"), queues=("slow",)),
    Filter(types=("nothing",)),
    Filter(queues=("slow",), tenants=("acme", 'a "quoted" one')),
    Filter(tenants=("nobody",)),
    Filter(tag="red"),
    Filter(fingerprints=(BOOM.fingerprint,)),
    Filter(finished_after_ms=0, types=("work",)),
    Filter(finished_before_ms=0),
    Filter(created_after_ms=0, types=("work",)),
    Filter(created_before_ms=0),
    Filter(schedules=("nightly",)),
    Filter(schedules=("nightly",), statuses=("dead",)),
]


async def listed(engine: Engine, which: Filter, limit: int) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await engine.inspector.jobs(which, limit=limit, cursor=cursor)
        assert len(page.jobs) <= limit
        found += [record.job.id for record in page.jobs]
        if (cursor := page.cursor) is None:
            return found


async def mixed(engine: Engine) -> None:
    """Fill a store with jobs of every kind."""
    for tenant in ("acme", 'a "quoted" one', "default"):
        for type_name, queue in (("work", "default"), ("work", "slow"), ("bill", "slow")):
            more = {"type": type_name, "queue": queue, "tenant": tenant}
            await submit(
                engine,
                new_job(**more),
                new_job(**more, extras=Extras(tags=("red", "blue"))),
                new_job(**more, level=Level.LOW, delay_ms=3_600_000),
                new_job(**more, held=True, schedule="nightly"),
            )
    taken = await claim(engine, 8, "default", "slow", types=("work", "bill"))
    done, dead, again, stopping, *_ = taken
    await engine.jobs.settle(
        [
            completed(done),
            failed(dead, retry=Retry(max_attempts=1)),
            failed(again, retry=Retry(delays=[3600.0])),
        ]
    )
    (waiting,) = (await engine.inspector.jobs(Filter(statuses=("ready",)), limit=1)).jobs
    await engine.jobs.cancel([stopping.job.id, waiting.job.id], **BY)


@pytest.mark.parametrize("limit", [1, 3, 500])
async def test_a_page_is_what_the_filter_means(
    engine: Engine, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mixed(engine)
    records = (await engine.inspector.jobs(Filter(), limit=500)).jobs
    monkeypatch.setattr(inspect, "SCAN_LIMIT", 7)

    for which in FILTERS:
        matches = matcher(which)
        wanted = [record.job.id for record in records if matches(record)]
        assert await listed(engine, which, limit) == wanted, which


async def test_a_rare_job_is_found_behind_many_others(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "SCAN_LIMIT", 1_000)
    rare = new_job(tenant="rare")
    await submit(engine, rare, *(new_job() for _ in range(2_500)))

    first = await engine.inspector.jobs(Filter(tenants=("rare",)), limit=10)

    assert (first.jobs, first.cursor is None) == ([], False)
    assert await listed(engine, Filter(tenants=("rare",)), 10) == [rare.id]


async def test_what_each_tenant_has_waiting_is_counted_over_all_lanes(engine: Engine) -> None:
    await mixed(engine)
    for tenant in await engine.inspector.tenants():
        waits = Filter(tenants=(tenant.name,), statuses=("pending",))
        assert tenant.waiting == len(await listed(engine, waits, 500)) > 0


async def test_dead_letters_are_grouped_as_the_filter_means(engine: Engine) -> None:
    await mixed(engine)
    taken = await claim(engine, 9, "default", "slow", types=("work", "bill"))
    once = Retry(max_attempts=1)
    for number, one in enumerate(taken):
        error = replace(BOOM, fingerprint=f"f-{number % 2}")
        await engine.jobs.settle([failed(one, error, retry=once)])
    dead = (await engine.inspector.jobs(Filter(statuses=("dead",)), limit=500)).jobs
    last = dead[-1].finished_at_ms

    for which in (
        *FILTERS,
        Filter(fingerprints=("f-0", "other")),
        Filter(tag="red", tenants=("acme", "default")),
        Filter(finished_after_ms=last, finished_before_ms=last + 1),
    ):
        matches = matcher(which)
        wanted: dict[tuple[str, str], list[str]] = {}
        for record in filter(matches, dead):
            key = (record.job.type, record.error.fingerprint)
            wanted.setdefault(key, []).append(record.job.id)
        found = (await engine.inspector.dead_groups(which)).groups
        assert {(group.type, group.fingerprint): group.count for group in found} == {
            key: len(ids) for key, ids in wanted.items()
        }, which
        for group in found:
            assert group.example == wanted[group.type, group.fingerprint][0]
            assert group.error.message == BOOM.message


async def test_an_error_that_cannot_be_read_hides_no_other_dead_letter(
    engine: Engine, path: Path
) -> None:
    await mixed(engine)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE job SET error = 'no JSON', extras = '{' WHERE state = 'dead'")
        connection.commit()

    (group,) = (await engine.inspector.dead_groups(Filter())).groups

    assert (group.fingerprint, group.count, group.error.message) == ("", 1, "no JSON")
    assert (await engine.inspector.dead_groups(Filter(tag="red"))).groups == []
