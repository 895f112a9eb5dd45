"""The fields of stored records, each declared once, by the names of their columns.

Stores with tables make the columns of their statements from these groups, and `port/rows.py` reads
rows in exactly this order. A field that is added here is read, written and reset wherever its group
is.
"""

from __future__ import annotations

SUBMITTED = ("id", "tenant", "due", "created", "args", "extras", "delivery", "cost", "schedule")
"""What a submission gives, beside the lane: queue, level, type and requirement."""

COUNTERS = ("attempt", "crashes", "losses", "suspect")
"""What attempts have come to: written with each that fails, at zero in a new life."""

JOB = (*SUBMITTED, *COUNTERS, "generation")
"""What a worker sees of a job, beside the lane."""

CLAIM = ("lease", "nonce", "worker", "handout")
"""What a claim gives it."""

RECORD = (
    "state", "hold", "cancel", "claimed", "expires", "finished", "reason", "result", "result_note",
    "error",
)  # fmt: skip
"""The rest, for people and programs that look."""

ATTEMPT = (
    "job_id", "generation", "lease", "number", "worker", "outcome", "started", "finished", "error",
    "nonce",
)  # fmt: skip
"""A past attempt of a job."""

SCHEDULE = (
    "id", "spec", "tenant", "type", "version", "cursor", "due", "created", "changed", "fired",
    "skipped", "failures", "last_due", "last_job", "hold", "backfill", "zones",
)  # fmt: skip
"""A schedule."""

RUN = ("due", "kind", "state", "at", "job_id", "reason", "first", "count", "finished")
"""What became of an occurrence of a schedule."""

GROUPS = {
    "submitted": SUBMITTED,
    "counters": COUNTERS,
    "job": JOB,
    "claim": CLAIM,
    "record": RECORD,
    "attempt": ATTEMPT,
    "schedule": SCHEDULE,
    "run": RUN,
}
"""All groups, by the names that statements use."""
