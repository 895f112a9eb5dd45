"""What commands change is noted in the audit log of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lamplighter.model.job import JobRecord
from lamplighter.port.access import About, entries_of
from lamplighter.port.store import Engine
from lamplighter.port.values import ChangeAnswer, Changed


@dataclass(frozen=True, slots=True)
class Note:
    """What is done, by whom and why."""

    action: str
    by: str
    reason: str


_DONE = frozenset({ChangeAnswer.DONE, ChangeAnswer.REQUESTED, ChangeAnswer.ALREADY})


async def note(
    engine: Engine, action: str, changed: Sequence[About], *, by: str, reason: str = ""
) -> None:
    """Note what was changed, by whom and why."""
    entries = entries_of(changed, by=by, action=action, reason=reason)
    size = engine.capabilities.max_batch
    for start in range(0, len(entries), size):
        await engine.access.note_audit(entries[start : start + size])


async def known(engine: Engine, ids: Sequence[str]) -> dict[str, JobRecord]:
    """Read jobs before something is done to them; those that are not there are left out."""
    records = [await engine.inspector.job(job_id) for job_id in ids]
    return {record.job.id: record for record in records if record is not None}


def tenants(records: Mapping[str, JobRecord]) -> dict[str, str]:
    """Say whose jobs are."""
    return {job_id: record.job.tenant for job_id, record in records.items()}


def done(answers: Sequence[Changed], owners: Mapping[str, str]) -> list[About]:
    """Return what is to be noted of jobs: what was done to each, and not what was refused."""
    return [
        About(answer.id, owners.get(answer.id), answer.answer.value)
        for answer in answers
        if answer.answer in _DONE
    ]
