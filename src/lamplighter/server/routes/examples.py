"""Examples for the reference, of one and the same job."""

from __future__ import annotations

from typing import Any

ID = "01K9ZQ4T7M0G3E8V5C2R6W1XNB"

SUBMISSION: dict[str, Any] = {
    "type": "charge",
    "arguments": {"order_id": "o-1", "cents": 995},
    "delay": 60,
}

JOB: dict[str, Any] = {
    "id": ID,
    "type": "charge",
    "queue": "payments",
    "tenant": "default",
    "status": "scheduled",
    "next_run": "2030-01-31T12:01:00Z",
    "created_at": "2030-01-31T12:00:00Z",
    "started_at": None,
    "finished_at": None,
    "result": None,
    "result_note": None,
    "reason": None,
    "error": None,
    "progress": None,
    "omitted": [],
}

CANCELLED: dict[str, Any] = {
    **JOB,
    "status": "cancelled",
    "next_run": None,
    "finished_at": "2030-01-31T12:00:10Z",
    "reason": "key-1f0c9a2b7d3e: not needed any more",
}

CANCELLING: dict[str, Any] = {
    **JOB,
    "status": "cancelling",
    "next_run": None,
    "started_at": "2030-01-31T12:01:00Z",
}

JOB_INPUT: dict[str, Any] = {
    "id": ID,
    "arguments": {"order_id": "o-1", "cents": 995},
    "metadata": {},
    "tags": ["eu"],
    "priority": "normal",
    "delivery": "at_least_once",
    "timeout": None,
    "retry": {"max_attempts": 3, "fixed": 10},
    "schedule": None,
    "progress": {"done": 1, "total": 2, "note": "charging"},
    "hold": None,
    "cancel": None,
}

SCHEDULE_ID = "nightly-report"

NEW_SCHEDULE: dict[str, Any] = {
    "id": SCHEDULE_ID,
    "type": "report",
    "arguments": {"kind": "full"},
    "cron": "30 2 * * *",
    "timezone": "Europe/Berlin",
}

PUT_SCHEDULE: dict[str, Any] = {
    "id": SCHEDULE_ID,
    "tenant": "default",
    "answer": "created",
    "version": 1,
    "next_run": "2030-02-01T01:30:00Z",
}

SCHEDULE: dict[str, Any] = {
    "id": SCHEDULE_ID,
    "type": "report",
    "tenant": "default",
    "version": 1,
    "next_run": "2030-02-01T01:30:00Z",
    "spec": {
        "calendar": {
            "kind": "cron",
            "expression": "30 2 * * *",
            "timezone": "Europe/Berlin",
            "gap": "next_valid",
            "overlap": "first",
        },
        "description": "At 02:30 every day, Europe/Berlin time. A time that the clocks skip "
        "happens when the gap ends; one that they show twice happens the first time.",
        "arguments": {"kind": "full"},
        "queue": "default",
        "priority": "normal",
        "timeout": None,
        "tags": [],
        "metadata": {},
        "overlap": "skip",
        "catch_up": "latest",
        "window": 3600,
        "jitter": 0,
        "shift": 0,
        "start": None,
        "end": None,
        "max_runs": None,
        "hold_after": None,
        "keep_succeeded": 100,
        "keep_failed": 100,
        "omitted": [],
    },
    "unreadable": None,
    "fired": 31,
    "skipped": 0,
    "failures": 0,
    "last_due": "2030-01-31T01:30:00Z",
    "last_job": ID,
    "hold": None,
    "backfill": None,
    "created_at": "2030-01-01T00:00:00Z",
    "changed_at": "2030-01-01T00:00:00Z",
}

BACKFILLING: dict[str, Any] = {
    **SCHEDULE,
    "version": 2,
    "backfill": {
        "from": "2030-01-01T00:00:00Z",
        "to": "2030-01-31T00:00:00Z",
        "at": "2030-01-01T00:00:00Z",
        "at_once": 2,
        "made": 0,
    },
}

RUN: dict[str, Any] = {
    "due": "2030-01-31T01:30:00Z",
    "state": "succeeded",
    "kind": "due",
    "job": ID,
    "reason": None,
    "first": None,
    "count": 1,
    "written_at": "2030-01-31T01:30:00Z",
    "started_at": "2030-01-31T01:30:00Z",
    "finished_at": "2030-01-31T01:30:09Z",
}

PREVIEW: dict[str, Any] = {
    "id": SCHEDULE_ID,
    "shift": 0,
    "clocks": {
        "at": "2030-03-31T01:00:00Z",
        "timezone": "Europe/Berlin",
        "effect": "moved",
        "wall": "2030-03-31T02:30:00",
    },
    "runs": [
        {"utc": "2030-03-30T01:30:00Z", "local": "2030-03-30T02:30:00+01:00", "mark": None},
        {
            "utc": "2030-03-31T01:00:00Z",
            "local": "2030-03-31T03:00:00+02:00",
            "mark": "moved out of a gap",
        },
    ],
}

FORETOLD: dict[str, Any] = {
    "description": SCHEDULE["spec"]["description"],
    **{name: PREVIEW[name] for name in ("shift", "clocks", "runs")},
}

DEAD_GROUP: dict[str, Any] = {
    "fingerprint": "5d41402abc4b2a76",
    "type": "charge",
    "queue": "payments",
    "count": 12,
    "newest_at": "2030-01-31T12:00:00Z",
    "example": ID,
    "reason": "it failed 4 times",
    "error": {"type": "CardDeclined", "message": "no money"},
}

QUEUE: dict[str, Any] = {
    "name": "payments",
    "ready": 12,
    "scheduled": 3,
    "running": 4,
    "waiting_by_priority": {"critical": 0, "high": 5, "normal": 10, "low": 0},
    "oldest_due_seconds": 0.8,
    "max_wait_seconds": 60,
    "held": False,
    "hold": None,
}

TENANT: dict[str, Any] = {
    "name": "acme",
    "weight": 3,
    "waiting": 12,
    "running": 4,
    "held": False,
    "hold": None,
}

COUNTS: dict[str, Any] = {
    "started": 1_204,
    "succeeded": 1_190,
    "failed": 1,
    "retried": 9,
    "snoozed": 0,
    "cancelled": 0,
    "rescued": 0,
    "stale": 0,
}

LAG: dict[str, Any] = {"p50_seconds": 0.006, "p95_seconds": 0.021, "p99_seconds": 0.09}
