"""What became of jobs that somebody wanted to change, in words."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from lamplighter.cli import output, shapes
from lamplighter.model.job import TERMINAL, JobRecord, JobState, Mark
from lamplighter.port.schedules import BEHIND_A_RUN
from lamplighter.port.values import ChangeAnswer, Changed

FAILED = 1

_REFUSED = frozenset({ChangeAnswer.CONFLICT, ChangeAnswer.UNKNOWN})
_UNKNOWN = "no such job is in this store; check the id and the address of the store"
_LETTER = "it is not dead; only dead letters are {} here"


def print_answers(
    verb: str,
    answers: Sequence[Changed],
    before: Mapping[str, JobRecord],
    *,
    letters: bool = False,
    as_json: bool,
) -> None:
    """Print what became of each job; the exit code says whether all went well.

    ``before`` are the jobs as they were, as far as they are known; with ``letters`` only dead ones
    were meant.
    """
    if as_json:
        output.print_json({"jobs": [shapes.changed(answer) for answer in answers]})
    else:
        output.print_table(
            ["id", "answer", "state now", "~about"],
            (
                [
                    answer.id,
                    output.status(answer.answer.value),
                    output.status(answer.state.value if answer.state else "gone"),
                    (words(verb, answer, before.get(answer.id), letters=letters), "dim"),
                ]
                for answer in answers
            ),
            empty="nothing to do",
        )
    if any(answer.answer in _REFUSED for answer in answers):
        sys.exit(FAILED)


def words(verb: str, changed: Changed, before: JobRecord | None, *, letters: bool = False) -> str:
    """Say what an answer means; nothing if it is what was asked for."""
    match changed.answer:
        case ChangeAnswer.UNKNOWN:
            return _UNKNOWN
        case ChangeAnswer.CONFLICT:
            return _conflict(verb, changed.state, letters=letters)
        case ChangeAnswer.ALREADY:
            return _already(verb, before)
        case ChangeAnswer.REQUESTED:
            return "it runs, and is told to stop"
        case ChangeAnswer.DONE:
            return _done(verb, changed.state, before)


_LETTERS = {"retry": "retried", "replay": "run again", "purge": "removed"}


def _conflict(verb: str, state: JobState | None, *, letters: bool) -> str:
    ended = state in TERMINAL
    if verb == "replay" and not ended:
        return "it has not ended; only what has ended is replayed"
    if letters and (ended or verb != "retry" or state is JobState.WAITING):
        return _LETTER.format(_LETTERS[verb])
    if verb in {"purge", "erase"}:
        return "it has not ended; cancel it first, or wait"
    if state is JobState.RUNNING:
        return "it is running already; to begin anew, cancel it first"
    if verb == "retry":
        return "it has ended; only waiting and dead jobs are retried"
    return f"it has ended, so there is nothing to {verb}"


def _already(verb: str, before: JobRecord | None) -> str:
    hold = None if before is None else before.hold
    match verb:
        case "cancel":
            return "that was asked before"
        case "hold" if _is_queued(hold):
            return (
                "it waits for the run before it and goes on then; `lamplighter schedules hold` "
                "keeps it longer"
            )
        case "hold":
            return f"held before by {_who(hold)}" if hold else "held before"
        case "unhold":
            return "it was not held; `lamplighter why` says what it waits for"
        case "retry":
            return "it is due already; `lamplighter why` says what it waits for"
        case _:
            return ""


def _done(verb: str, state: JobState | None, before: JobRecord | None) -> str:
    if verb == "unhold" and before is not None and _is_queued(before.hold):
        return "it does not wait for the run before it any more: both may run at once"
    if verb == "hold" and state is JobState.RUNNING:
        return "it runs on; if it is tried again, it waits until it is unheld"
    if verb == "retry" and before is not None and before.hold is not None:
        return f"it is still held by {_who(before.hold)}"
    return ""


def _is_queued(hold: Mark | None) -> bool:
    """Tell whether a schedule holds its job until the run before has ended."""
    return hold is not None and (hold.by, hold.reason) == BEHIND_A_RUN


def _who(hold: Mark) -> str:
    return f"{hold.by}: {hold.reason}" if hold.reason else hold.by
