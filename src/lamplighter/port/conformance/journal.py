"""Last words: the journal that a settlement carries; and reading the logs of a job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.job import Fence, JobState
from lamplighter.model.journal import Journal, Piece, Progress
from lamplighter.port.conformance.builders import (
    abandoned,
    claim_one,
    completed,
    failed,
    finished,
    logged,
    new_id,
    new_job,
    pieces,
    record,
    recording,
    released,
    running,
    settle_one,
)
from lamplighter.port.values import Recording, SettleAnswer

if TYPE_CHECKING:
    from lamplighter.model.job import Claim
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "test", "reason": "for the test"}
HALF = Progress(done=30, total=60, note="invoices")
AWKWARD = "\x00 \ud800 \udfff ' \" -- \N{BUG} \x1b[31m"


@pytest.mark.parametrize("how", ["succeeded", "failed", "given back", "abandoned"])
async def test_the_journal_of_a_settlement_is_written_with_it(
    engine: Engine, clock: VirtualClock, how: str
) -> None:
    taken = await running(engine)
    await engine.jobs.record([recording(taken, "a")])
    clock.advance(seconds=61)
    settlement = {
        "succeeded": completed(taken),
        "failed": failed(taken),
        "given back": released(taken),
        "abandoned": abandoned(taken),
    }[how]

    answer = await settle_one(
        engine, replace(settlement, journal=Journal(progress=HALF, pieces=pieces("a", "b", "c")))
    )

    assert answer.answer is SettleAnswer.DONE
    assert await logged(engine, taken.job.id) == ["a", "b", "c"]
    assert (await record(engine, taken.job.id)).progress == HALF


async def test_the_journal_of_a_settlement_drops_pieces_too(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.record([recording(taken, *"abc")])

    await settle_one(engine, replace(completed(taken), journal=Journal(drop=(0, 2))))

    assert await logged(engine, taken.job.id) == ["c"]


async def test_the_journal_of_a_settlement_without_progress_leaves_it(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.record([_progress(taken, HALF)])

    await settle_one(engine, replace(completed(taken), journal=Journal(pieces=pieces("a"))))

    assert (await record(engine, taken.job.id)).progress == HALF


@pytest.mark.parametrize("why", ["already", "lost", "renewed"])
async def test_the_journal_of_a_settlement_that_is_not_written_is_not_either(
    engine: Engine, why: str
) -> None:
    taken = await running(engine)
    settlement = completed(taken)
    if why == "already":
        await settle_one(engine, released(taken))
    elif why == "lost":
        settlement = replace(settlement, fence=Fence(taken.fence.lease, "f" * 16))
    else:
        settlement = abandoned(taken)

    answer = await settle_one(
        engine, replace(settlement, journal=Journal(progress=HALF, pieces=pieces("a line")))
    )

    assert answer.answer == why
    assert (await record(engine, taken.job.id)).progress is None
    assert await engine.inspector.logs(taken.job.id) == []


async def test_a_journal_is_written_whatever_a_cancel_made_of_the_settlement(
    engine: Engine,
) -> None:
    taken = await running(engine)
    await engine.jobs.cancel([taken.job.id], **BY)

    await settle_one(engine, replace(released(taken), journal=Journal(pieces=pieces("bye"))))

    assert (await record(engine, taken.job.id)).state is JobState.CANCELLED
    assert await logged(engine, taken.job.id) == ["bye"]


async def test_content_of_a_journal_never_makes_a_settle_fail(engine: Engine) -> None:
    taken, other = await running(engine), await running(engine)
    journal = Journal(
        progress=Progress(done=float("-inf"), note=AWKWARD), pieces=(Piece(0, b"\xff\x00"),)
    )

    answers = await engine.jobs.settle(
        [replace(completed(taken), journal=journal), completed(other)]
    )

    assert [one.answer for one in answers] == [SettleAnswer.DONE] * 2
    (kept,) = await engine.inspector.logs(taken.job.id)
    assert kept.piece.data == b"\xff\x00"


# ── reading ──────────────────────────────────────────────────────────────────────────────────


async def test_logs_go_on_behind_the_given_place(engine: Engine) -> None:
    first = await running(engine)
    await engine.jobs.record([recording(first, *"abc")])
    await settle_one(engine, released(first))
    await engine.jobs.record([recording(await claim_one(engine), *"de")])
    read: list[bytes] = []
    after: tuple[int, int] | None = None
    pages = 0
    while page := await engine.inspector.logs(first.job.id, after=after, limit=2):
        assert len(page) <= 2
        read += [one.piece.data for one in page]
        after = (page[-1].lease, page[-1].piece.number)
        pages += 1

    assert (pages, b"".join(read)) == (3, b"abcde")


async def test_a_reader_finds_what_was_said_since(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.record([recording(taken, "a")])
    (seen,) = await engine.inspector.logs(taken.job.id)
    await engine.jobs.record([recording(taken, "a", "b")])

    (news,) = await engine.inspector.logs(taken.job.id, after=(seen.lease, seen.piece.number))

    assert news.piece == Piece(1, b"b")


async def test_logs_of_another_tenant_are_not_given(engine: Engine) -> None:
    taken = await running(engine, new_job(tenant="blue"))
    await engine.jobs.record([recording(taken, "secret")])

    assert await engine.inspector.logs(taken.job.id, tenant="green") == []
    assert len(await engine.inspector.logs(taken.job.id, tenant="blue")) == 1
    assert len(await engine.inspector.logs(taken.job.id)) == 1


async def test_an_unknown_job_has_no_logs(engine: Engine) -> None:
    ended = await finished(engine)

    assert await engine.inspector.logs(new_id()) == []
    assert await engine.inspector.logs(ended.job.id, tenant="default") == []


def _progress(taken: Claim, progress: Progress) -> Recording:
    return Recording(taken.job.id, taken.fence, Journal(progress=progress))
