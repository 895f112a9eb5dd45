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
