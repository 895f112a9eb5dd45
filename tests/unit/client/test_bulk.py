"""Everything that a selection means, changed from Python: ``app.jobs.change``."""

import asyncio
from datetime import timedelta

import pytest

from lamplighter import Status
from lamplighter.model.errors import InvalidInput, InvalidName, InvalidOption, StoreUnreachable
from lamplighter.model.outcome import Succeeded
from lamplighter.port import bulk


async def submitted(charge, number: int, **options) -> list:
    return [await charge.options(**options).submit(f"o-{n}") for n in range(number)]


async def test_what_a_selection_means_is_changed_and_nothing_else(app, charge):
    wanted = await submitted(charge, 3, tenant="acme", tags=["eu"])
    (other,) = await submitted(charge, 1, tenant="other", tags=["eu"])

    foretold = await app.jobs.change("hold", dry_run=True, tenant="acme", tag="eu", type="charge")
    assert await wanted[0].status() is Status.READY
    counts = await app.jobs.change("hold", tenant="acme", tag="eu", type="charge", reason="audit")

    assert foretold == counts == {"done": 3}
    assert {await handle.status() for handle in wanted} == {Status.PAUSED}
    record = await wanted[0].record()
    assert (record.hold.by, record.hold.reason) == ("client", "audit")
    assert await other.status() is Status.READY


async def test_each_action_is_done_to_all_jobs(app, charge, finish):
    (handle,) = await submitted(charge, 1)
    for action, status in (
        ("hold", Status.PAUSED),
        ("unhold", Status.READY),
        ("cancel", Status.CANCELLED),
        ("replay", Status.READY),
    ):
        assert await app.jobs.change(action, everything=True) == {"done": 1}
        assert await handle.status() is status
    await finish(Succeeded(b"null"))
    assert await app.jobs.change("purge", everything=True) == {"done": 1}
    (later,) = await submitted(charge, 1, delay=60)
    assert await app.jobs.change("retry", status="scheduled") == {"done": 1}
    assert await later.status() is Status.READY


async def test_jobs_are_selected_by_their_age(app, charge):
    await submitted(charge, 2)
    for which in ({"older_than": timedelta(hours=1)}, {"schedule": "nightly"}):
        assert await app.jobs.change("cancel", **which) == {}
    assert await app.jobs.change("cancel", newer_than=timedelta(hours=1)) == {"done": 2}


async def test_progress_is_told_after_each_page_and_may_stop_it(app, charge, monkeypatch):
    monkeypatch.setattr(bulk, "PAGE", 2)
    handles = await submitted(charge, 5)
    told = []

    def stop(counts) -> bool:
        told.append(counts)
        return len(told) < 2

    assert await app.jobs.change("hold", everything=True, progress=stop) == {"done": 4}
    assert told == [{"done": 2}, {"done": 4}]
    assert [await handle.status() for handle in handles].count(Status.PAUSED) == 4
    assert await app.jobs.change("hold", everything=True, progress=told.append) == {"done": 1}


async def test_a_change_whose_reply_was_lost_counts_what_it_did(app, charge, monkeypatch):
    await submitted(charge, 2)
    jobs = (await app.engine()).jobs
    change, tries = jobs.change, []

    async def lost(*given, **more):
        answers = await change(*given, **more)
        tries.append(answers)
        if len(tries) == 1:
            raise StoreUnreachable("the reply is lost", hint="ask again")
        return answers

    monkeypatch.setattr(jobs, "change", lost)
    assert await app.jobs.change("cancel", everything=True) == {"done": 2}
    assert len(tries) == 2


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, InvalidOption),
        ({"everything": True, "type": "charge"}, InvalidOption),
        ({"type": ""}, InvalidName),
        ({"status": "sleeping"}, InvalidInput),
        ({"colour": "red"}, InvalidOption),
        ({"older_than": 60}, InvalidOption),
        ({"older_than": timedelta(seconds=-1)}, InvalidOption),
        ({"everything": True, "reason": "a\nb"}, InvalidInput),
    ],
)
async def test_what_is_not_meant_clearly_is_refused(app, charge, given, error):
    (handle,) = await submitted(charge, 1)
    with pytest.raises(error):
        await app.jobs.change("cancel", **given)
    assert await handle.status() is Status.READY


async def test_an_unknown_action_is_refused(app):
    with pytest.raises(InvalidOption, match="unknown action `erase`"):
        await app.jobs.change("erase", everything=True)


async def test_it_can_be_cancelled(app, charge, monkeypatch):
    monkeypatch.setattr(bulk, "PAGE", 1)
    handles = await submitted(charge, 4)
    begun = asyncio.Event()
    task = asyncio.create_task(
        app.jobs.change("hold", everything=True, progress=lambda _: begun.set())
    )
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [await handle.status() for handle in handles].count(Status.READY) >= 1
