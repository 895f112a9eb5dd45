"""Schedules and their runs as programs read them."""

from __future__ import annotations

import json

from lamplighter.cli import output
from lamplighter.cli.shapes import Shape, mark, plain
from lamplighter.model.errors import InvalidInput
from lamplighter.model.recurring import Spec
from lamplighter.model.schedule import Preview, encode
from lamplighter.port.schedules import Backfill, RunRecord, RunState, ScheduleChanged
from lamplighter.schedules import Schedule
from lamplighter.secrecy import concealed


def schedule(found: Schedule) -> Shape:
    """Everything about a schedule; what cannot be read of it is told as `unreadable`."""
    record = found.record
    return {
        "id": record.id,
        **_spec(found),
        "tenant": record.tenant,
        "next_run": output.instant(found.next_run_ms),
        "fired": record.fired,
        "skipped": record.skipped,
        "failures": record.failures,
        "last_due": output.instant(record.last_due_ms),
        "last_job": record.last_job,
        "hold": mark(record.hold),
        "backfill": _backfill(record.backfill),
        "version": record.version,
        "zone_data": record.zones,
        "created_at": output.instant(record.created_at_ms),
        "changed_at": output.instant(record.changed_at_ms),
    }


def _spec(found: Schedule) -> Shape:
    try:
        spec = found.spec
    except InvalidInput as error:
        return {"type": found.record.type, "unreadable": error.cause}
    template, policy, extras = spec.template, spec.policy, spec.template.extras
    return {
        "calendar": encode(spec.calendar),
        "description": spec.calendar.describe(),
        "type": template.type,
        "arguments": arguments(spec),
        "queue": template.queue,
        "priority": template.level.label,
        "timeout": extras.timeout,
        "tags": list(extras.tags),
        "metadata": dict(extras.metadata),
        "retry": None if extras.retry is None else json.loads(extras.retry.to_json()),
        "overlap": policy.overlap.value,
        "catch_up": policy.catch_up.value,
        "window": policy.window_ms / 1000,
        "jitter": policy.jitter_ms / 1000,
        "shift": found.shift.total_seconds(),
        "start": output.instant(policy.start_ms),
        "end": output.instant(policy.end_ms),
        "max_runs": policy.max_runs,
        "hold_after": policy.hold_after,
        "keep_succeeded": policy.keep_succeeded,
        "keep_failed": policy.keep_failed,
    }


def arguments(spec: Spec) -> object:
    """Return the arguments of a schedule's jobs without those that are secret."""
    return plain(concealed(spec.template.args, spec.template.extras.secrets))


def _backfill(found: Backfill | None) -> Shape | None:
    if found is None:
        return None
    return {
        "from": output.instant(found.from_ms),
        "to": output.instant(found.to_ms),
        "at": output.instant(found.cursor_ms),
        "at_once": found.limit,
        "made": found.made,
    }


def run(found: RunRecord) -> Shape:
    """What became of an occurrence."""
    return {
        "due": output.instant(found.due_ms),
        "state": found.state.value,
        "kind": found.kind.value,
        "job": found.job_id,
        "reason": found.reason,
        "first": output.instant(found.first_ms),
        "count": found.count,
        "written_at": output.instant(found.at_ms),
        "started_at": output.instant(found.started_at_ms),
        "finished_at": output.instant(found.finished_at_ms),
        "late_ms": late_ms(found),
    }


def late_ms(found: RunRecord) -> int | None:
    """Tell how long after its due time it was started, or at least was given its job."""
    if found.state is RunState.SKIPPED:
        return None
    return max(0, (found.started_at_ms or found.at_ms) - found.due_ms)


def preview(found: Preview) -> Shape:
    """One occurrence to come."""
    return {"utc": utc(found), "local": found.local.isoformat(), "mark": found.mark}


def utc(found: Preview) -> str:
    """Write the instant of an occurrence to come."""
    return found.utc.isoformat().replace("+00:00", "Z")


def changed(answer: ScheduleChanged) -> Shape:
    """The answer to one operator's wish."""
    return {"id": answer.id, "answer": answer.answer.value}
