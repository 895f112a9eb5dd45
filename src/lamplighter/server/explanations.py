"""Why a job is not running, as the service says it: to operators all, to a tenant its own part."""

from __future__ import annotations

from datetime import datetime

import msgspec

from lamplighter.model.job import JobRecord, Status
from lamplighter.port.values import Reason, Why
from lamplighter.server.auth import Principal
from lamplighter.server.marks import Note, maybe_instant, note


class WhyNot(msgspec.Struct, kw_only=True, frozen=True):
    """One reason why a job is not running."""

    why: str
    text: str
    until: datetime | None
    count: int | None
    note: Note | None


class Explanation(msgspec.Struct, kw_only=True, frozen=True):
    """Why a job is not running, the most decisive reason first."""

    id: str
    status: Status
    reasons: list[WhyNot]


_TENANT_REASONS = frozenset(
    {
        Why.FINISHED,
        Why.BLOCKED,
        Why.NOT_DUE,
        Why.BEHIND,
        Why.SUSPECT,
        Why.TIMED_OUT,
    }
)
"""Reasons that are about the tenant's own jobs alone."""
_TENANT_HOLDS = {
    Why.HELD_JOB: "the job itself is held by {by}",
    Why.HELD_TENANT: "its tenant `{tenant}` is held by {by}",
}
"""Holds of what belongs to the tenant: it is told by whom, and why."""
_TENANT_TEXTS = {
    Why.RUNNING: "it is running",
    Why.WORKER_SUSPECT: "it is running; its worker is silent",
    Why.WORKER_DEAD: "its worker is dead, and it has not been given back yet",
    Why.HELD_QUEUE: "its queue `{queue}` is held",
    Why.HELD_TYPE: "its type `{type}` is held",
    Why.NO_WORKER: "no live worker can run it",
    Why.NO_VERSION: "no live version of its type takes its arguments",
    Why.VERSION: "not every live version of its type takes its arguments",
    Why.NO_ROOM: "all workers that could run it are busy",
    Why.NEXT: "it is the next of its tenant",
}


def why_not(reason: Reason, job: JobRecord, principal: Principal) -> WhyNot:
    """Return one reason why a job is not running.

    A tenant is not told what belongs to the operators: workers, hosts, global holds. A reason that
    is not known to be free of these is told by its kind alone.
    """
    if principal.tenant is None or reason.why in _TENANT_REASONS:
        return _told(reason, reason.text, note(reason.mark, principal), reason.count)
    if reason.why in _TENANT_HOLDS and (held := note(reason.mark, principal)) is not None:
        text = _TENANT_HOLDS[reason.why].format(tenant=job.job.tenant, by=held.by)
        return _told(reason, f"{text}: {held.reason}" if held.reason else text, held)
    text = _TENANT_TEXTS.get(reason.why, reason.why.value.replace("_", " "))
    return _told(reason, text.format(queue=job.job.queue, type=job.job.type))


def _told(reason: Reason, text: str, note: Note | None = None, count: int | None = None) -> WhyNot:
    return WhyNot(
        why=reason.why.value,
        text=text,
        until=maybe_instant(reason.until_ms),
        count=count,
        note=note,
    )
