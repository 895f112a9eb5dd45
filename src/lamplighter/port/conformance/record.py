"""Record: what running attempts have to say is kept, and only as long as they run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.model.filters import Filter
from lamplighter.model.job import Fence
from lamplighter.model.journal import PIECE_LIMIT, Journal, Piece, Progress
from lamplighter.port.conformance.builders import (
    claim,
    claim_one,
    completed,
    logged,
    new_id,
    new_job,
    pieces,
    record,
    recording,
    released,
    rescue_and_claim_again,
    running,
    settle_one,
    submit,
)
from lamplighter.port.values import LogPiece, Recorded, Recording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.model.job import Claim, JobRecord
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "test", "reason": "for the test"}
HALF = Progress(done=30, total=60, note="invoices")
AWKWARD = "\x00 \ud800 \udfff ' \" -- \N{BUG} \x1b[31m"


async def test_record_answers_for_each_recording_in_order(engine: Engine) -> None:
    await submit(engine, new_job(), new_job())
    first, second = await claim(engine, 2)
    unknown = Recording(new_id(), first.fence, Journal(progress=HALF))

    answers = await engine.jobs.record([recording(second, "b"), unknown, recording(first, "a")])

    assert answers == [
        Recorded(second.job.id, held=True),
        Recorded(unknown.id, held=False),
        Recorded(first.job.id, held=True),
    ]
    assert await logged(engine, first.job.id) == ["a"]
    assert await logged(engine, second.job.id) == ["b"]


async def test_recording_nothing_is_answered_with_nothing(engine: Engine) -> None:
    taken = await running(engine)

    assert await engine.jobs.record([]) == []
    assert await engine.jobs.record([recording(taken)]) == [Recorded(taken.job.id, held=True)]
    assert (await record(engine, taken.job.id)).progress is None
    assert await engine.inspector.logs(taken.job.id) == []


@pytest.mark.parametrize("wrong", ["lease", "nonce"])
async def test_nothing_is_kept_under_another_fence(engine: Engine, wrong: str) -> None:
    taken = await running(engine)
    fence = taken.fence
    other = (
        Fence(fence.lease, "f" * 16) if wrong == "nonce" else Fence(fence.lease + 1, fence.nonce)
    )

    (answer,) = await engine.jobs.record([replace(_all_of_it(taken), fence=other)])

    assert not answer.held
    await _has_said_nothing(engine, taken.job.id)


@pytest.mark.parametrize("how", ["succeeded", "waiting", "cancelled"])
async def test_nothing_is_kept_once_the_attempt_was_settled(engine: Engine, how: str) -> None:
    taken = await running(engine)
    if how == "cancelled":
        await engine.jobs.cancel([taken.job.id], **BY)
    await settle_one(engine, completed(taken) if how == "succeeded" else released(taken))
    assert (await record(engine, taken.job.id)).state == how

    (answer,) = await engine.jobs.record([_all_of_it(taken)])

    assert not answer.held
    await _has_said_nothing(engine, taken.job.id)


async def test_a_rescued_attempt_can_say_nothing_about_the_next_one(
    engine: Engine, clock: VirtualClock
) -> None:
    first = await running(engine)
    clock.advance(seconds=61)
    second = await rescue_and_claim_again(engine, first)

    late, own = await engine.jobs.record([_all_of_it(first), recording(second, "mine")])

    assert (late.held, own.held) == (False, True)
    assert (await record(engine, first.job.id)).progress is None
    assert await logged(engine, first.job.id) == ["mine"]


async def test_an_attempt_is_heard_after_its_lease_ended_but_before_it_was_rescued(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    clock.advance(seconds=3_600)

    (answer,) = await engine.jobs.record([_all_of_it(taken)])

    assert answer.held
    assert (await record(engine, taken.job.id)).progress == HALF


async def test_recording_does_not_extend_the_lease(engine: Engine, clock: VirtualClock) -> None:
    taken = await running(engine)
    before = (await record(engine, taken.job.id)).expires_at_ms
    clock.advance(seconds=10)

    await engine.jobs.record([_all_of_it(taken)])

    assert (await record(engine, taken.job.id)).expires_at_ms == before


async def test_a_refused_recording_does_not_harm_the_others_of_its_call(engine: Engine) -> None:
    taken = await running(engine)
    bad = replace(_all_of_it(taken), id=new_id())

    answers = await engine.jobs.record([bad, _all_of_it(taken), bad])

    assert [one.held for one in answers] == [False, True, False]
    assert (await record(engine, taken.job.id)).progress == HALF


async def test_more_recordings_than_a_batch_are_refused_before_anything_is_written(
    engine: Engine,
) -> None:
    taken = await running(engine)

    with pytest.raises(InvalidInput):
        await engine.jobs.record([_all_of_it(taken)] * (engine.capabilities.max_batch + 1))

    await _has_said_nothing(engine, taken.job.id)


# ── progress ─────────────────────────────────────────────────────────────────────────────────


async def test_progress_replaces_what_the_attempt_said_before(engine: Engine) -> None:
    taken = await running(engine)
    later = Progress(done=60.5)

    await engine.jobs.record([_progress(taken, HALF)])
    assert (await record(engine, taken.job.id)).progress == HALF
    await engine.jobs.record([_progress(taken, later)])

    assert (await record(engine, taken.job.id)).progress == later


async def test_the_last_progress_of_a_call_counts(engine: Engine) -> None:
    taken = await running(engine)
    later = Progress(done=60.5)

    await engine.jobs.record([_progress(taken, HALF), _progress(taken, later)])

    assert (await record(engine, taken.job.id)).progress == later


async def test_a_recording_without_progress_leaves_it(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.record([_progress(taken, HALF)])

    await engine.jobs.record([recording(taken, "a line")])

    assert (await record(engine, taken.job.id)).progress == HALF


async def test_progress_is_still_seen_when_the_job_has_ended(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.record([_progress(taken, HALF)])

    await settle_one(engine, completed(taken))

    assert (await record(engine, taken.job.id)).progress == HALF


async def test_progress_is_seen_while_the_job_waits_and_gone_once_it_is_claimed_again(
    engine: Engine,
) -> None:
    taken = await running(engine)
    await engine.jobs.record([_progress(taken, HALF)])
    await settle_one(engine, released(taken))
    assert (await record(engine, taken.job.id)).progress == HALF

    await claim_one(engine)

    assert (await record(engine, taken.job.id)).progress is None


async def test_listed_jobs_have_their_progress(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.record([_progress(taken, HALF)])
    await submit(engine, new_job())

    (_, found) = await _listed(engine)

    assert (found.job.id, found.progress) == (taken.job.id, HALF)


# ── logs ─────────────────────────────────────────────────────────────────────────────────────


async def test_pieces_are_kept_under_the_lease_and_their_number(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.record([_pieces(taken, {1: b"one", 0: b"zero"})])
    await engine.jobs.record([_pieces(taken, {7: b"seven"})])

    found = await engine.inspector.logs(taken.job.id)

    assert found == [
        LogPiece(1, Piece(0, b"zero")),
        LogPiece(1, Piece(1, b"one")),
        LogPiece(1, Piece(7, b"seven")),
    ]


async def test_a_piece_that_is_there_is_left_as_it_is(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.record([_pieces(taken, {0: b"first"})])

    again = await engine.jobs.record([_pieces(taken, {0: b"second", 1: b"new"})])

    assert again == [Recorded(taken.job.id, held=True)]
    assert await logged(engine, taken.job.id) == ["first", "new"]


async def test_recording_twice_is_recording_once(engine: Engine) -> None:
    taken = await running(engine)
    said = Recording(
        taken.job.id, taken.fence, Journal(progress=HALF, pieces=pieces("a", "b", "c"), drop=(1, 2))
    )

    first = await engine.jobs.record([said])
    again = await engine.jobs.record([said])

    assert again == first
    assert await logged(engine, taken.job.id) == ["a", "c"]
    assert (await record(engine, taken.job.id)).progress == HALF


async def test_each_attempt_has_pieces_of_its_own(engine: Engine) -> None:
    first = await running(engine)
    await engine.jobs.record([recording(first, "from the first")])
    await settle_one(engine, released(first))
    second = await claim_one(engine)

    await engine.jobs.record([recording(second, "from the second")])

    found = await engine.inspector.logs(first.job.id)
    assert found == [
        LogPiece(first.fence.lease, Piece(0, b"from the first")),
        LogPiece(second.fence.lease, Piece(0, b"from the second")),
    ]


async def test_pieces_from_the_first_up_to_the_second_number_are_dropped(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.record([recording(taken, *"abcdef")])

    await engine.jobs.record([_dropping(taken, (1, 4))])

    assert await logged(engine, taken.job.id) == ["a", "e", "f"]


async def test_pieces_are_dropped_after_those_of_the_same_recording_were_written(
    engine: Engine,
) -> None:
    taken = await running(engine)
    said = Journal(pieces=pieces(*"abc"), drop=(0, 2))

    await engine.jobs.record([Recording(taken.job.id, taken.fence, said)])

    assert await logged(engine, taken.job.id) == ["c"]


async def test_recordings_of_one_call_are_written_one_after_the_other(engine: Engine) -> None:
    taken = await running(engine)

    await engine.jobs.record([_dropping(taken, (0, 9)), recording(taken, *"ab")])

    assert await logged(engine, taken.job.id) == ["a", "b"]


async def test_only_pieces_of_the_same_lease_and_job_are_dropped(engine: Engine) -> None:
    first = await running(engine)
    await engine.jobs.record([recording(first, "from the first")])
    await settle_one(engine, released(first))
    second = await claim_one(engine)
    other = await running(engine)
    await engine.jobs.record([recording(other, "another job")])

    await engine.jobs.record([_dropping(second, (0, 9))])

    assert await logged(engine, first.job.id) == ["from the first"]
    assert await logged(engine, other.job.id) == ["another job"]


async def test_an_empty_stretch_drops_nothing(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.record([recording(taken, *"abc")])

    await engine.jobs.record([_dropping(taken, (2, 2)), _dropping(taken, (2, 0))])

    assert await logged(engine, taken.job.id) == ["a", "b", "c"]


async def test_a_log_outlives_the_end_of_its_job(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.record([recording(taken, "a line")])

    await settle_one(engine, completed(taken))

    assert await logged(engine, taken.job.id) == ["a line"]


async def test_a_log_of_the_usual_size_is_kept_byte_for_byte(engine: Engine) -> None:
    taken = await running(engine)
    data = [bytes([number]) * PIECE_LIMIT for number in range(16)]

    await engine.jobs.record([_pieces(taken, dict(enumerate(data)))])

    found = await engine.inspector.logs(taken.job.id)
    assert [one.piece.data for one in found] == data


async def test_content_never_makes_a_recording_fail(engine: Engine) -> None:
    taken = await running(engine)
    huge = Progress(done=float("inf"), total=-(2**70), note=AWKWARD + "x" * 200_000)
    data = AWKWARD.encode("utf-8", "surrogatepass") + b"\xff\x00"

    answers = await engine.jobs.record(
        [_progress(taken, huge), _pieces(taken, {0: data, 1: b"", 2: b"x" * 2_000_000})]
    )

    assert [one.held for one in answers] == [True, True]
    found = await record(engine, taken.job.id)
    assert found.progress is not None
    assert (found.progress.done, found.progress.total) == (float("inf"), -(2**70))
    assert "x" in found.progress.note
    assert found.progress.note.encode("utf-8")
    kept = [one.piece.data for one in await engine.inspector.logs(taken.job.id)]
    assert kept == [data, b"", b"x" * 2_000_000]


def _progress(taken: Claim, progress: Progress) -> Recording:
    return Recording(taken.job.id, taken.fence, Journal(progress=progress))


def _pieces(taken: Claim, data: dict[int, bytes]) -> Recording:
    kept = tuple(Piece(number, piece) for number, piece in data.items())
    return Recording(taken.job.id, taken.fence, Journal(pieces=kept))


def _dropping(taken: Claim, stretch: tuple[int, int]) -> Recording:
    return Recording(taken.job.id, taken.fence, Journal(drop=stretch))


def _all_of_it(taken: Claim) -> Recording:
    journal = Journal(progress=HALF, pieces=pieces("a line"))
    return Recording(taken.job.id, taken.fence, journal)


async def _has_said_nothing(engine: Engine, job_id: str) -> None:
    assert (await record(engine, job_id)).progress is None
    assert await engine.inspector.logs(job_id) == []


async def _listed(engine: Engine) -> Sequence[JobRecord]:
    return (await engine.inspector.jobs(Filter(), limit=10)).jobs
