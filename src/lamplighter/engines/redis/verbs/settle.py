"""settle: write what claims came to, if their fences still hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from struct import Struct

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Argument, Call
from lamplighter.engines.redis.layout import NEXT
from lamplighter.engines.redis.shards import joined, split
from lamplighter.engines.redis.verbs.record import fence_of, journal_of
from lamplighter.model.job import JobState
from lamplighter.model.lifecycle import Next, Settlement
from lamplighter.port import texts
from lamplighter.port.values import SettleAnswer, Settled

_SUCCEEDED = JobState.SUCCEEDED
_PLAIN = Struct("<cBI")
_OTHER = Struct("<cBB")
_PLAIN_SUCCESS = _PLAIN.pack(b"S", 0, 0)
_ONLY_IF_EXPIRED, _HISTORY, _CANCELLED, _ONLY_IF_UNSTARTED = 1, 2, 4, 8
_NOTE_LIMIT = 60_000
"""Bytes of a note; its length must fit into two of them."""
_LETTERS = {
    JobState.WAITING: b"W",
    JobState.SUCCEEDED: b"S",
    JobState.DEAD: b"D",
    JobState.CANCELLED: b"C",
    JobState.EXPIRED: b"E",
}


async def settle(call: Call, settlements: Sequence[Settlement]) -> list[Settled]:
    """Send each with its fence; the store says what became of it."""
    parts: list[tuple[Sequence[int], list[Settled]]] = []
    for shard, (places, mine) in split(settlements, call.shards).items():
        arguments: list[Argument] = []
        for one in mine:
            journal = b"" if one.journal is None else journal_of(one.journal)
            arguments += (one.id, fence_of(one.fence) + _outcome(one), journal)
        said = await call.run("settle", arguments, shard=shard)
        answers = [Settled(one.id, *_answer(text)) for one, text in zip(mine, said, strict=True)]
        parts.append((places, answers))
    return joined(parts)


@cache
def _answer(text: bytes) -> tuple[SettleAnswer, JobState | None]:
    answer, state = text.decode().split(" ")
    return SettleAnswer(answer), JobState(state) if state else None


def _outcome(one: Settlement) -> bytes:
    """Pack what a claim came to; `lua/settle.lua` reads it."""
    following = one.next
    if following.state is _SUCCEEDED and one.cancelled is None and not one.only_if_expired:
        result, note = following.result, following.result_note
        if result is None and note is None:
            return _PLAIN_SUCCESS
        flags = _given(records.RESULT, result) + _given(records.NOTE, note)
        return _PLAIN.pack(b"S", flags, len(result or b"")) + (result or b"") + _note(note)
    outcome = one.outcome.encode()
    flags = (
        (_ONLY_IF_EXPIRED if one.only_if_expired else 0)
        + (_HISTORY if one.history else 0)
        + _given(_CANCELLED, one.cancelled)
        + (_ONLY_IF_UNSTARTED if one.only_if_unstarted else 0)
    )
    return b"".join(
        (
            _OTHER.pack(b"O", flags, len(outcome)),
            outcome,
            _next(following),
            b"" if one.cancelled is None else _next(one.cancelled),
        )
    )


def _next(following: Next) -> bytes:
    """Pack what a job becomes."""
    reason, note, version = following.reason, following.result_note, following.version
    return NEXT.pack(
        {
            "state": _LETTERS[following.state],
            "delay": following.delay_ms,
            "attempt": following.attempt,
            "crashes": following.crashes,
            "losses": following.losses,
            "suspect": following.suspect,
            "reason": None if reason is None else texts.clean(reason).encode(),
            "result": following.result,
            "note": None if note is None else _note(note),
            "error": (texts.error_to_text(following.error) or "").encode(),
            "version": None if version is None else version.encode(),
        }
    )


def _note(note: str | None) -> bytes:
    """Write a note, cut where its length could not be kept."""
    text = texts.clean(note or "").encode()
    if len(text) > _NOTE_LIMIT:
        text = text[:_NOTE_LIMIT].decode("utf-8", "ignore").encode()
    return text


def _given(flag: int, value: object) -> int:
    return 0 if value is None else flag
