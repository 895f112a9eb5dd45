"""settle: write what claims came to, if their fences still hold."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lamplighter.engines.postgres import arrays, ids
from lamplighter.engines.postgres.call import Call
from lamplighter.engines.postgres.verbs.record import journals
from lamplighter.model.job import JobState
from lamplighter.model.lifecycle import Next, Settlement
from lamplighter.port import texts
from lamplighter.port.values import SettleAnswer, Settled

_SUCCEEDED = JobState.SUCCEEDED
_PARAMETERS = ", ".join(["%s"] * 18)


async def settle(call: Call, settlements: Sequence[Settlement]) -> list[Settled]:
    """Send plain successes as columns and all else as JSON; of the former only refusals return."""
    verb = f"SELECT n, answer, state FROM {call.function('settle')}({_PARAMETERS}, "
    rows = await call.rows(
        f"{verb}false)",
        (
            ids.uuids([one.id for one in settlements]),
            arrays.numbers([one.fence.lease for one in settlements]),
            arrays.texts([one.fence.nonce for one in settlements]),
            *arrays.joined([one.next.result for one in settlements]),
            _notes(settlements),
            _flags([one.only_if_expired for one in settlements]),
            _flags([one.only_if_unstarted for one in settlements]),
            _others(settlements),
            *journals([one.journal for one in settlements]),
        ),
        instead=f"{verb}true)",
    )
    done = SettleAnswer.DONE
    answers = [Settled(one.id, done, _SUCCEEDED) for one in settlements]
    for row in rows:
        place: int = row[0] - 1
        state = None if row[2] is None else JobState(row[2])
        answers[place] = Settled(answers[place].id, SettleAnswer(row[1]), state)
    return answers


def _notes(settlements: Sequence[Settlement]) -> list[str | None] | None:
    notes = [one.next.result_note for one in settlements]
    if notes.count(None) == len(notes):
        return None
    return [note and texts.clean(note) for note in notes]


def _flags(given: Sequence[bool]) -> str | None:
    """Say which are only to be written on a condition; None: no one is."""
    return arrays.flags(given) if any(given) else None


def _others(settlements: Sequence[Settlement]) -> str | None:
    """Write all but the plain successes as JSON, each with its place."""
    others = [
        {
            "n": place,
            "outcome": one.outcome,
            "history": one.history,
            "next": _next(one.next),
            "cancelled": None if one.cancelled is None else _next(one.cancelled),
        }
        for place, one in enumerate(settlements, 1)
        if one.next.state is not _SUCCEEDED or one.cancelled is not None or one.only_if_expired
    ]
    return json.dumps(others) if others else None


def _next(following: Next) -> dict[str, object]:
    error = following.error
    return {
        "state": following.state.value,
        "delay": following.delay_ms,
        "reason": None if following.reason is None else texts.clean(following.reason),
        "attempt": following.attempt,
        "crashes": following.crashes,
        "losses": following.losses,
        "suspect": following.suspect,
        "version": following.version,
        "error": texts.error_to_text(error),
        "fingerprint": None if error is None else texts.clean(error.fingerprint),
    }
