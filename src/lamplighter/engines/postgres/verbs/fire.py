"""fire: write plans for schedules, each wholly or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from lamplighter.engines.postgres import arrays, records
from lamplighter.engines.postgres.call import Call, Row
from lamplighter.engines.postgres.verbs.submit import columns
from lamplighter.model.ids import schedule_key
from lamplighter.port import texts
from lamplighter.port.schedules import BEHIND_A_RUN, FireAnswer, Fired, Firing
from lamplighter.port.texts import backfill_to_text

T = TypeVar("T")

BY = "schedule"
"""Who holds and cancels what a plan says."""
WHY = "replaced"
CANCEL_MARK = records.mark_to_text(BY, WHY)
QUEUED_MARK = records.mark_to_text(*BEHIND_A_RUN)
_PLANS = ", ".join(["%s"] * 20)
BATCH = ", ".join(["%s"] * 17)
"""The fields of new jobs, see `job_batch` in sql/types.sql."""


async def fire(call: Call, firings: Sequence[Firing]) -> list[Fired]:
    """Write plans, answering in order; the store tells only what is not as planned.

    Plans for the same schedule follow each other, in as many calls.
    """
    answers: dict[int, Fired] = {}
    for places in _rounds([schedule_key(one.tenant, one.id) for one in firings]):
        plans = [firings[place] for place in places]
        (row,) = await call.rows(
            f"SELECT * FROM {call.function('fire')}(ROW({_PLANS}, "
            f"ROW({BATCH})::{call.function('job_batch')}, %s, %s)::{call.function('fire_call')})",
            (*_plans(plans), *_skips(plans), *_runs(plans), QUEUED_MARK, CANCEL_MARK, WHY),
        )
        answers |= zip(places, _answers(plans, row), strict=True)
    return [answers[place] for place in range(len(firings))]


def _rounds(keys: Sequence[str]) -> list[list[int]]:
    """Return the places of all, so that no key is twice in one round."""
    rounds: list[list[int]] = []
    seen: dict[str, int] = {}
    for place, one in enumerate(keys):
        number = seen[one] = seen.get(one, -1) + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(place)
    return rounds


def _plans(plans: Sequence[Firing]) -> tuple[object, ...]:
    holds = [None if one.hold is None else _mark(one.hold) for one in plans]
    backfills = [None if one.backfill is None else backfill_to_text(one.backfill) for one in plans]
    return (
        arrays.texts([schedule_key(one.tenant, one.id) for one in plans]),
        arrays.numbers([one.version for one in plans]),
        arrays.numbers([one.cursor_ms for one in plans]),
        arrays.numbers([one.next_cursor_ms for one in plans]),
        arrays.numbers([one.due_ms for one in plans]),
        _unless_empty(holds),
        _unless_empty(backfills),
        arrays.texts([texts.clean(one.zones) for one in plans]),
        arrays.numbers([one.keep[0] for one in plans]),
        arrays.numbers([one.keep[1] for one in plans]),
        arrays.numbers([len(one.runs) for one in plans]),
    )


def _mark(reason: str) -> str:
    return records.mark_to_text(BY, reason)


def _skips(plans: Sequence[Firing]) -> tuple[object, ...]:
    skips = [(place, skip) for place, plan in enumerate(plans, 1) for skip in plan.skips]
    if not skips:
        return (None,) * 5
    return (
        arrays.numbers([place for place, _ in skips]),
        arrays.numbers([skip.due_ms for _, skip in skips]),
        arrays.numbers([skip.first_ms for _, skip in skips]),
        arrays.texts([texts.clean(skip.reason) for _, skip in skips]),
        arrays.numbers([skip.count for _, skip in skips]),
    )


def _runs(plans: Sequence[Firing]) -> tuple[object, ...]:
    runs = [(place, run) for place, plan in enumerate(plans, 1) for run in plan.runs]
    if not runs:
        return (None,) * 20
    return (
        arrays.numbers([place for place, _ in runs]),
        arrays.numbers([run.due_ms for _, run in runs]),
        arrays.texts([run.kind.value for _, run in runs]),
        arrays.texts([run.overlap.value for _, run in runs]),
        *columns([run.job for _, run in runs]),
    )


def _answers(plans: Sequence[Firing], row: Row) -> list[Fired]:
    stale = set[int](row[0] or ())
    fates = dict[int, str](zip(row[1] or (), row[2] or (), strict=True))
    queued_jobs = dict[int, str](zip(row[3] or (), row[4] or (), strict=True))
    skipped = dict[int, int](zip(row[5] or (), row[6] or (), strict=True))
    answers: list[Fired] = []
    number = 0
    for place, plan in enumerate(plans, 1):
        numbers = range(number + 1, number + 1 + len(plan.runs))
        number += len(plan.runs)
        if place in stale:
            answers.append(Fired(plan.id, FireAnswer.STALE))
            continue
        started = [run.job.id for n, run in zip(numbers, plan.runs, strict=True) if n not in fates]
        if place in queued_jobs:
            started.insert(0, queued_jobs[place])
        answers.append(
            Fired(
                plan.id,
                FireAnswer.DONE,
                tuple(started),
                queued=sum(fates.get(n) == "queued" for n in numbers) if fates else 0,
                skipped=skipped.get(place, 0),
            )
        )
    return answers


def _unless_empty(values: list[str | None]) -> list[str | None] | None:
    return None if values.count(None) == len(values) else values
