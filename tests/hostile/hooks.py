"""What Schemathesis has to be told beside its settings; it loads this in its own environment."""

import json
import os
from typing import Any

import schemathesis

TOPICS = ("overview", "workers", "queues", "dlq", "schedules")


@schemathesis.serializer("application/x-ndjson")
def lines(_: Any, value: Any) -> bytes:
    """Send texts as they are, anything else as JSON on a single line."""
    written = value if isinstance(value, str) else json.dumps(value)
    return written.encode("utf-8", "surrogatepass")


@schemathesis.hook
def map_query(context: Any, query: Any) -> Any:
    """Ask for topics that there are, mostly: no chance would find their names."""
    if context.operation.path != "/v1/events":
        return query
    known = (*TOPICS, f"job:{os.environ['LAMPLIGHTER_HOSTILE_JOB']}", None)
    topic = known[len(repr(query)) % len(known)]
    return query if topic is None else {**(query or {}), "topic": [topic]}
