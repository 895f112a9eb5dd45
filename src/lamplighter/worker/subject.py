"""Which job a line of the log is about."""

from __future__ import annotations

from lamplighter.observability.logs import Subject
from lamplighter.worker import capture
from lamplighter.worker.run import Run


def subject() -> Subject:
    """Name the job whose handler logs, and what hides its secrets; nothing outside of jobs."""
    sink = capture.speaker.get() or capture.current.get()
    if not isinstance(sink, Run):
        return {}, None
    job = sink.claim.job
    about = {
        "job_id": job.id,
        "tenant": job.tenant,
        "attempt": job.attempt + 1,
        "type": job.type,
        "queue": job.queue,
    }
    return about, sink.redact
