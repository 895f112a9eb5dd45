"""record: keep what running attempts have to say, if their fences still hold."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.postgres import arrays, ids
from lamplighter.engines.postgres.call import Call
from lamplighter.model.journal import Journal
from lamplighter.port import texts
from lamplighter.port.values import Recorded, Recording

_PARAMETERS = ", ".join(["%s"] * 11)


async def record(call: Call, recordings: Sequence[Recording]) -> list[Recorded]:
    """Check each fence and keep what is said under it."""
    rows = await call.rows(
        f"SELECT n FROM {call.function('record')}({_PARAMETERS})",
        (
            ids.uuids([one.id for one in recordings]),
            arrays.numbers([one.fence.lease for one in recordings]),
            arrays.texts([one.fence.nonce for one in recordings]),
            *journals([one.journal for one in recordings]),
        ),
    )
    held = {row[0] for row in rows}
    return [Recorded(one.id, place in held) for place, one in enumerate(recordings, 1)]


def journals(given: Sequence[Journal | None]) -> tuple[object, ...]:
    """Give what journals say as columns: progress and drops of each, then all pieces.

    Columns in which there is nothing are None.
    """
    if given.count(None) == len(given):
        return (None,) * 8
    said = [journal or _SILENCE for journal in given]
    progresses = [
        None if one.progress is None else texts.progress_to_text(one.progress) for one in said
    ]
    drops = any(one.drop[1] > one.drop[0] for one in said)
    pieces = [(place, piece) for place, one in enumerate(said, 1) for piece in one.pieces]
    return (
        progresses if any(progresses) else None,
        arrays.numbers([one.drop[0] for one in said]) if drops else None,
        arrays.numbers([one.drop[1] for one in said]) if drops else None,
        arrays.numbers([place for place, _ in pieces]) if pieces else None,
        arrays.numbers([piece.number for _, piece in pieces]) if pieces else None,
        *arrays.joined([piece.data for _, piece in pieces]),
    )


_SILENCE = Journal()
