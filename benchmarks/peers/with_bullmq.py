"""BullMQ: in Node; finishing a job and fetching the next is one script. See `bullmq/side.mjs`."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.peers.adapter import PAYLOAD
from benchmarks.peers.facts import Facts

CONCURRENCY = 50
"""Jobs of one worker at the same time; the example of its documentation."""

_HERE = Path(__file__).resolve().parent
_INSTALLED = _HERE.parent.parent / "build" / "bullmq"


def _version(package: str) -> str:
    file = _INSTALLED / "node_modules" / package / "package.json"
    return json.loads(file.read_text(encoding="utf-8"))["version"]


FACTS = Facts(
    name="BullMQ",
    version=_version("bullmq"),
    settings=f"Node, ioredis {_version('ioredis')}, 2 processes, concurrency={CONCURRENCY}, "
    "removeOnComplete, addBulk by 1,000, else defaults",
    promises={
        "delivery": "at least once; a job that fails is tried again only if it says so, then kept",
        "lost worker": "lock per job, 30 s; looked for every 30 s, given back once by default, "
        "then failed",
        "late finish": "refused: a lock has a random token",
        "commits": "each in memory at once, on disk within a second or two",
        "history": "none with these settings; else the job with its result and logs",
        "fairness": "priority, then order of submission; no tenants in the open version",
        "job's end": "the job is deleted, an event is added to a stream",
    },
    waiting="local n = 0 for _, k in ipairs({'wait', 'active', 'paused'}) do "
    "n = n + redis.call('LLEN', 'bull:bench:' .. k) end "
    "return n + redis.call('ZCARD', 'bull:bench:delayed')",
)


def command(role: str, *rest: str) -> list[str]:
    """Give what takes the place of this process."""
    program = str(_HERE / "bullmq" / "side.mjs")
    return ["node", program, str(_INSTALLED), role, *rest, PAYLOAD, str(CONCURRENCY)]
