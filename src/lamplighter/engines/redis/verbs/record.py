"""record: keep what running attempts have to say, if their fences still hold."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from lamplighter.engines.redis.call import Argument, Call
from lamplighter.engines.redis.shards import joined, split
from lamplighter.model.job import Fence
from lamplighter.model.journal import NO_NEWS, Journal
from lamplighter.port import texts
from lamplighter.port.values import Recorded, Recording

_FENCE = Struct("<I16s")
_JOURNAL = Struct("<BIqqI")
_PIECE = Struct("<QI")
_HELD = b"held"


async def record(call: Call, recordings: Sequence[Recording]) -> list[Recorded]:
    """Check each fence and keep what is said under it."""
    parts: list[tuple[Sequence[int], list[Recorded]]] = []
    for shard, (places, mine) in split(recordings, call.shards).items():
        said = await call.run(*_asked(mine), shard=shard)
        answers = [
            Recorded(one.id, answer == _HELD) for one, answer in zip(mine, said, strict=True)
        ]
        parts.append((places, answers))
    if call.replicated and any(one.started for one in recordings):
        # A failover that forgot the mark would let the job start again.
        await call.run("confirm", ())
    return joined(parts)


def _asked(recordings: Sequence[Recording]) -> tuple[str, list[Argument]]:
    """Return the script that writes these, and its arguments."""
    arguments: list[Argument] = []
    if all(one.started and one.journal == NO_NEWS for one in recordings):
        for one in recordings:
            arguments += (one.id, fence_of(one.fence))
        return "start", arguments
    for one in recordings:
        mark = b"1" if one.started else b""
        arguments += (one.id, fence_of(one.fence) + mark, journal_of(one.journal))
    return "record", arguments


def fence_of(fence: Fence) -> bytes:
    """Pack the right to write about a job; `lua/lib/fence.lua` compares it."""
    return _FENCE.pack(fence.lease, fence.nonce.encode())


def journal_of(journal: Journal) -> bytes:
    """Pack what an attempt says; `lua/lib/journal.lua` reads it."""
    progress = (
        b"" if journal.progress is None else texts.progress_to_text(journal.progress).encode()
    )
    first, end = journal.drop
    parts = [
        _JOURNAL.pack(journal.progress is not None, len(progress), first, end, len(journal.pieces)),
        progress,
    ]
    for piece in journal.pieces:
        parts += (_PIECE.pack(piece.number, len(piece.data)), piece.data)
    return b"".join(parts)
