"""submit: store new jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import moves
from lamplighter.engines.sqlite.statements import load
from lamplighter.port import texts
from lamplighter.port.rows import row_of
from lamplighter.port.values import SubmitAnswer, Submitted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Row, Transaction
    from lamplighter.model.job import NewJob

SQL = load("submit")
_HELD_AT_SUBMIT = ("submit", "submitted held")


def submit(tx: Transaction, jobs: Sequence[NewJob]) -> list[Submitted]:
    """Store what is new; see the port for the answers."""
    answers: list[Submitted | None] = [None] * len(jobs)
    fresh = without_known(tx, jobs, answers)
    store(tx, fresh)
    created = SubmitAnswer.CREATED
    return [
        Submitted(job.id, created) if answer is None else answer
        for job, answer in zip(jobs, answers, strict=True)
    ]


def store(tx: Transaction, jobs: Sequence[NewJob], held: tuple[str, str] = _HELD_AT_SUBMIT) -> None:
    """Write jobs of which neither the id nor the key exists, and tell their turns.

    ``held`` says who holds some of them, and why.
    """
    lane_of, now = tx.catalog.lane, tx.now
    mark = texts.mark_to_text(*held, now)
    rows: list[Row] = []
    places: list[moves.Place] = []
    for seq, job in enumerate(jobs, tx.number(SQL["last"]) + 1):
        due = now + job.delay_ms if job.run_at_ms is None else max(now, job.run_at_ms)
        lane = lane_of(tx, job.queue, job.level, job.type, job.requirement).id
        hold = mark if job.held else None
        rows.append((*row_of(job, created=now, due=due), seq, lane, len(job.args), hold))
        if hold is None:
            places.append((lane, job.tenant, due, seq))
    tx.many(SQL["insert"], rows)
    moves.enter(tx, places)
    for job in jobs:
        if job.key is not None:
            key = job.key
            tx.run(SQL["insert_key"], job.tenant, key.scope, key.key, key.body, job.id, tx.now)


def without_known(
    tx: Transaction, jobs: Sequence[NewJob], answers: list[Submitted | None]
) -> list[NewJob]:
    """Answer for ids and keys that exist already, here or earlier in the call."""
    known = {row[0] for row in tx.all(SQL["known"], json.dumps([job.id for job in jobs]))}
    keys: dict[tuple[str, str, str], tuple[str, str]] = {}
    fresh: list[NewJob] = []
    for index, job in enumerate(jobs):
        if job.id in known:
            answers[index] = Submitted(job.id, SubmitAnswer.ALREADY)
            continue
        if job.key is not None:
            answer = _by_key(tx, job, keys)
            if answer is not None:
                answers[index] = answer
                continue
            keys[job.tenant, job.key.scope, job.key.key] = (job.key.body, job.id)
        known.add(job.id)
        fresh.append(job)
    return fresh


def _by_key(
    tx: Transaction, job: NewJob, keys: dict[tuple[str, str, str], tuple[str, str]]
) -> Submitted | None:
    assert job.key is not None  # noqa: S101 - the caller has looked
    given = keys.get((job.tenant, job.key.scope, job.key.key))
    if given is not None:
        body, owner, alive = given[0], given[1], True
    else:
        row = tx.one(SQL["key"], job.tenant, job.key.scope, job.key.key)
        if row is None:
            return None
        body, owner, alive = row[0], row[1], row[2] is not None
    if body != job.key.body:
        return Submitted(owner, SubmitAnswer.CONFLICT)
    return Submitted(owner, SubmitAnswer.ALREADY if alive else SubmitAnswer.GONE)
