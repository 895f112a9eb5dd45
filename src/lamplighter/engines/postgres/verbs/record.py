"""record: keep what running attempts have to say, if their fences still hold."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.postgres import arrays, ids
from lamplighter.engines.postgres.call import Call
from lamplighter.model.journal import NO_NEWS, Journal
from lamplighter.port import texts
from lamplighter.port.values import Recorded, Recording

_PARAMETERS = ", ".join(["%s"] * 12)


async def record(call: Call, recordings: Sequence[Recording]) -> list[Recorded]:
    """Check each fence and keep what is said under it."""
    verb = f"SELECT n, busy FROM {call.function('record')}({_PARAMETERS}, "
    rows = await call.rows(
        f"{verb}false)",
        (
            ids.uuids([one.id for one in recordings]),
            arrays.numbers([one.fence.lease for one in recordings]),
            arrays.texts([one.fence.nonce for one in recordings]),
            *journals([one.journal for one in recordings]),
            arrays.flags([one.started for one in recordings])
            if any(one.started for one in recordings)
            else None,
        ),
        instead=f"{verb}true)",
    )
    busy: dict[int, bool] = dict(rows)
    return [
        Recorded(one.id, held=busy.get(place) is False, busy=busy.get(place, False))
        for place, one in enumerate(recordings, 1)
    ]


def journals(given: Sequence[Journal | None]) -> tuple[object, ...]:
    """Return what journals say as columns: progress and drops of each, then all pieces.

    Columns in which there is nothing are None.
    """
    if given.count(None) == len(given):
        return (None,) * 8
    said = [journal or NO_NEWS for journal in given]
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
