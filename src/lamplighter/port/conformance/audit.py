"""The audit log: what was changed by whom is noted once, in order, and kept for its time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.port.access import AuditEntry, AuditRecord

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

HOUR_MS = 3_600_000
ENTRY = AuditEntry(
    id="e-0",
    by="alice",
    action="job.cancel",
    object="01K9ZQ4T7M0G3E8V5C2R6W1XNB",
    answer="done",
    tenant="blue",
    reason="wrong order",
)


def _entries(*numbers: int, tenant: str | None = "blue") -> list[AuditEntry]:
    return [replace(ENTRY, id=f"e-{number}", tenant=tenant) for number in numbers]


async def _ids(engine: Engine, tenant: str | None = None) -> list[str]:
    page = await engine.access.audit(tenant=tenant, limit=1_000)
    assert page.cursor is None
    return [record.entry.id for record in page.records]


async def test_an_entry_is_kept_as_it_was_noted(engine: Engine, clock: VirtualClock) -> None:
    clock.advance(seconds=7)
    awkward = replace(
        ENTRY, object='"; DROP TABLE audit; -- ☃', reason="100 % {} $1 \\ '", tenant="it's: a/b"
    )

    await engine.access.note_audit([awkward])

    page = await engine.access.audit(limit=10)
    assert page.records == [AuditRecord(clock.now_ms(), awkward)]
    assert page.cursor is None


async def test_entries_are_listed_newest_first(engine: Engine, clock: VirtualClock) -> None:
    await engine.access.note_audit(_entries(1, 2))
    clock.advance(seconds=1)
    await engine.access.note_audit(_entries(3))

    assert await _ids(engine) == ["e-3", "e-2", "e-1"]


async def test_an_entry_noted_again_is_left_as_it_is(engine: Engine, clock: VirtualClock) -> None:
    await engine.access.note_audit(_entries(1, 2))
    before = (await engine.access.audit(limit=10)).records
    clock.advance(seconds=9)

    await engine.access.note_audit([replace(ENTRY, id="e-1", by="eve"), *_entries(2)])

    assert (await engine.access.audit(limit=10)).records == before


async def test_of_one_id_in_a_call_the_first_is_kept(engine: Engine) -> None:
    await engine.access.note_audit([ENTRY, replace(ENTRY, by="eve")])

    assert [record.entry for record in (await engine.access.audit(limit=10)).records] == [ENTRY]


async def test_a_tenant_is_shown_only_what_is_its_own(engine: Engine) -> None:
    await engine.access.note_audit(
        [
            *_entries(1),
            *_entries(2, tenant="green"),
            *_entries(3, tenant=None),
            *_entries(4, tenant="bl"),
            *_entries(5),
        ]
    )

    assert await _ids(engine, "blue") == ["e-5", "e-1"]
    assert await _ids(engine, "green") == ["e-2"]
    assert await _ids(engine, "nobody") == []
    assert await _ids(engine, "") == []
    assert await _ids(engine) == ["e-5", "e-4", "e-3", "e-2", "e-1"]


@pytest.mark.parametrize("tenant", [None, "blue"])
async def test_the_log_is_read_page_by_page(engine: Engine, tenant: str | None) -> None:
    await engine.access.note_audit(_entries(1, 2, 3, 4, 5))
    found, cursor = list[str](), None
    while True:
        page = await engine.access.audit(tenant=tenant, limit=2, cursor=cursor)
        assert len(page.records) <= 2
        found += [record.entry.id for record in page.records]
        # What is noted meanwhile is newer, and does not move the pages behind.
        await engine.access.note_audit(_entries(100 + len(found)))
        if (cursor := page.cursor) is None:
            break

    assert found == ["e-5", "e-4", "e-3", "e-2", "e-1"]


async def test_more_entries_than_a_store_reads_at_once_are_all_listed(engine: Engine) -> None:
    for start in range(0, 250, 50):
        await engine.access.note_audit(_entries(*range(start, start + 50)))

    assert await _ids(engine) == [f"e-{number}" for number in reversed(range(250))]


async def test_a_cursor_that_the_log_never_gave_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidInput):
        await engine.access.audit(limit=1, cursor="nonsense")


async def test_content_never_makes_a_note_fail(engine: Engine) -> None:
    strange = AuditEntry(
        id="e-1",
        by="a\0b\ud800",
        action="x" * 2_000,
        object="ä" * 2_000,
        answer="",
        tenant="\ud800t",
        reason="one\ntwo",
    )

    await engine.access.note_audit([strange])

    (record,) = (await engine.access.audit(limit=10)).records
    kept = record.entry
    assert (kept.by, kept.tenant, kept.reason) == ("ab?", "?t", "one\ntwo")
    assert (len(kept.action), len(kept.object)) == (1_000, 1_000)


async def test_noting_nothing_changes_nothing(engine: Engine) -> None:
    await engine.access.note_audit([])

    assert await _ids(engine) == []


async def test_more_entries_than_a_batch_are_refused_and_none_is_noted(engine: Engine) -> None:
    many = engine.capabilities.max_batch + 1

    with pytest.raises(InvalidInput):
        await engine.access.note_audit(_entries(*range(many)))

    assert await _ids(engine) == []


async def test_old_entries_are_removed_oldest_first_and_as_many_as_asked(
    engine: Engine, clock: VirtualClock
) -> None:
    await engine.access.note_audit(_entries(1, 2, 3))
    clock.advance(seconds=3600)
    await engine.access.note_audit(_entries(4, tenant="green"))
    clock.advance(seconds=3600)
    keep = HOUR_MS + 1

    assert await engine.access.prune_access(keep, 2) == 2
    assert await _ids(engine) == ["e-4", "e-3"]
    assert await engine.access.prune_access(keep, 10) == 1
    assert await engine.access.prune_access(keep, 10) == 0
    assert await _ids(engine) == ["e-4"]
    assert await _ids(engine, "blue") == []
    assert await _ids(engine, "green") == ["e-4"]


async def test_more_entries_than_a_step_takes_are_removed_in_one_call(
    engine: Engine, clock: VirtualClock
) -> None:
    for start in range(0, 250, 50):
        await engine.access.note_audit(_entries(*range(start, start + 50)))
    clock.advance(seconds=3600)

    assert await engine.access.prune_access(1_000, 240) == 240
    assert await _ids(engine) == [f"e-{number}" for number in reversed(range(240, 250))]
