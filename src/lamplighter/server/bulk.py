"""Many jobs changed by one request: a bounded part of all that a filter means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lamplighter.model.changes import Action, ChangeAnswer, Changed
from lamplighter.model.filters import Filter
from lamplighter.model.job import TERMINAL, JobRecord
from lamplighter.port.access import About
from lamplighter.port.bulk import BulkChange
from lamplighter.server import auditing
from lamplighter.server.route import Request

MOST = 1_000
"""Jobs that one request may be about."""

_LOOKS = 20
"""Pages that one request reads at most; a page may be short."""
_REVIVES = frozenset({Action.RETRY, Action.REPLAY})
"""What makes a job wait again that has ended."""
_EFFECTIVE = (ChangeAnswer.DONE, ChangeAnswer.REQUESTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a request wants done."""

    action: Action
    which: Filter
    described: Callable[[str], str]
    """Writes what was meant into the audit log of a tenant."""
    reason: str
    dry_run: bool
    limit: int
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """What one request came to."""

    ids: list[str]
    """Jobs that were meant, the newest first."""
    answers: Counter[ChangeAnswer]
    next: str | None


async def carry_out(request: Request[Any, Any], order: Order) -> Part:
    """Change some of the jobs that are meant, or foretell it; says where to go on."""
    service, listing = request.service, f"{order.action} {order.which!r}"
    change = BulkChange(
        await service.client.engine(),
        order.action,
        order.which,
        by=request.principal.name,
        reason=order.reason,
        cursor=service.cursors.read(order.cursor, listing),
        repeated=service.client.repeated,
    )
    ids, answers = list[str](), Counter[ChangeAnswer]()
    for _ in range(_LOOKS):
        page = await change.read(order.limit - len(ids))
        if order.dry_run:
            changed = change.foretell(page)
        else:
            if order.action in _REVIVES:
                revived = sum(record.state in TERMINAL for record in page)
                await service.quotas.admit_jobs(request.principal, revived)
            changed = await change.change(page)
            await _note(request, order, page, changed)
        ids += [record.job.id for record in page]
        answers.update(one.answer for one in changed)
        if change.over or len(ids) >= order.limit:
            break
    return Part(ids, answers, service.cursors.written(change.cursor, listing))


async def _note(
    request: Request[Any, Any], order: Order, jobs: Sequence[JobRecord], changed: Sequence[Changed]
) -> None:
    """Note for each tenant what was done to how many of its jobs."""
    counts: dict[str, Counter[ChangeAnswer]] = {}
    for record, one in zip(jobs, changed, strict=True):
        counts.setdefault(record.job.tenant, Counter())[one.answer] += 1
    about: list[About] = []
    for tenant, count in sorted(counts.items()):
        told = [f"{count[answer]} {answer}" for answer in _EFFECTIVE if count[answer]]
        if told:
            about.append(About(order.described(tenant), tenant, ", ".join(told)))
    await auditing.note(request, *about, reason=order.reason)
