"""The keys of a store, described once; scripts build them from the prefix of their shard.

All keys of a shard begin with ``{prefix:number}:``, whose braces keep them together in a cluster.
Names of people's making are percent-encoded in keys (`encode`), and plain inside values.

    meta            that it is ours, version, shards, when it was made, mark; only in shard 0
    mark:<mark>     the mark of this very store, in every shard: scripts refuse to run without
    job:<id>        a job, finished ones too, until it is purged or pruned: see layout.py
    run             id -> its running claim
    lease:<ms>      id -> when its lease of this length ends; `spans` is the set of lengths
    turn:<lane>:<tenant>    waiting jobs of a tenant: due, then sequence number and id
    waits                   how many of them each tenant has, in all lanes
    line:<lane>     awake turns: tenant -> virtual time
    heads:<lane>    awake turns: when their heads fell due
    asleep:<lane>   turns whose head is due later: tenant -> when
    shut:<lane>     turns of held tenants
    share:<band>    tenant -> virtual time in a queue and level
    bands           band -> its clock; `band` has their numbers, `band_lanes` their lanes
    lanes, lane     number of a lane by its name, and the other way round
    active:<queue>  lanes of a queue that have a turn
    handed          queue -> hand-outs so far
    seq             last sequence number
    page:<n>        ids of 256 jobs in the order of submission; `oldest_page` is the first
    gone, removed   how empty pages are, and how many jobs were removed
    hold, cancel    id -> who, why, when
    progress        id -> how far it has come
    log:<id>        lease:number -> piece of the log
    attempts:<id>   attempts that are over
    ended:<state>   id -> when it ended
    key:<tenant>:<scope>:<key>  an idempotency key; `keys` has when each was made
    requests        nonces of claims that handed out something, and when
    claimed         nonce -> how many of its jobs still run
    prune           where retention goes on
    schedule:<name> a schedule; its name is its tenant, a byte 1, and its id. `specs` has what it is
                    to do, `schedule_names` all names in their order
    schedules       name -> when it is to be looked at next
    runs:<class>:<name> what became of a schedule's occurrences: see lua/lib/runs.lua
    queue, tenant, type     settings by name; `settings_version` counts their changes
    brought         queue -> tenant whose token has brought it; `brought_by:<tenant>` the queues
                    of one
    worker:<id>     a worker; `workers` has their last beats
    types           versions of types that workers can run; `types_seen` when each was last alive
    activity        minute -> what workers counted in it; `tallies` has the number of the last
                    tally of each, `tallied` when that was
    tokens          prefix -> a token; `token_ids` all prefixes in their order, `revoked_tokens` who
                    ended one and why, `token_ends` when each stops or has stopped to be good
    spent           what is good for a single use -> who has used it; `spent_ends` when nobody
                    would take it any more
    audit           id -> what somebody has changed; `audit_log` ids in their order, `audit_seq` the
                    last number
    audit_of:<tenant>   ids of entries about what belongs to a tenant, in their order
    roles           role -> who holds it until when
    told            counts news of all topics; only in shard 0, like the next five, which expire
    news:<topic>    number of the last news of which not all were told who should have been
    profiles:<topic>    profiles of those who wait for it: sets of topics and types
    knows:<profile> the types of a profile
    waiters:<profile>   who waits for news, and until when
    wake:<ear>      what somebody who waits was told
"""

from __future__ import annotations

import re
from urllib.parse import quote

PREFIX = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""What a prefix may be: nothing that a pattern or a hash tag would read in its own way."""

KINDS = {
    **dict.fromkeys(
        ("mark", "job", "seq", "page", "oldest_page", "removed", "key", "told"), "string"
    ),
    **dict.fromkeys(("settings_version", "news", "schedule", "audit_seq"), "string"),
    **dict.fromkeys(("meta", "run", "band", "bands", "band_lanes", "lanes", "lane"), "hash"),
    **dict.fromkeys(("handed", "waits", "hold", "cancel", "progress", "log"), "hash"),
    **dict.fromkeys(("claimed", "prune", "queue", "tenant", "type", "worker"), "hash"),
    **dict.fromkeys(("types", "roles", "specs", "activity", "tallies"), "hash"),
    **dict.fromkeys(("tokens", "revoked_tokens", "spent", "audit", "brought"), "hash"),
    **dict.fromkeys(("lease", "turn", "line", "heads", "asleep", "shut", "share"), "zset"),
    **dict.fromkeys(("gone", "ended", "keys", "requests", "workers", "types_seen"), "zset"),
    **dict.fromkeys(("waiters", "schedules", "schedule_names", "runs", "tallied"), "zset"),
    **dict.fromkeys(("token_ids", "token_ends", "spent_ends", "audit_log", "audit_of"), "zset"),
    **dict.fromkeys(("spans", "active", "profiles", "knows", "brought_by"), "set"),
    **dict.fromkeys(("attempts", "wake"), "list"),
}
"""The type of each key, by the word it begins with. Tests compare every key with it."""
EXPIRING = frozenset({"news", "profiles", "knows", "waiters", "wake"})
"""Hints. Nothing else may expire."""


def shard_prefix(prefix: str, shard: int) -> str:
    """Return what all keys of a shard begin with."""
    return f"{{{prefix}:{shard}}}:"


def mark_key(prefix: str, shard: int, mark: str) -> str:
    """Return the key whose presence in a shard says that the store with this mark is there."""
    return f"{shard_prefix(prefix, shard)}mark:{mark}"


def encode(name: str) -> str:
    """Write a name as a part of a key; `encode` in `lua/lib/keys.lua` writes the same."""
    # The one character beside ours that `quote` never touches.
    return quote(name, safe="").replace("~", "%7E")
