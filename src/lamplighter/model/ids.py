"""Job ids: 128 bits — 48 of milliseconds, 10 of shard, 70 of chance — as 26 Crockford characters.

Ids sort roughly by the client's time. Nothing relies on that: order in a queue is the store's
own sequence, because clients' clocks differ.

The shard bits are the client's choice. A store that is divided keeps a job in the shard that they
give, modulo the number of its shards; other stores do not look at them. Jobs with an idempotency
key have the bits of their key (`shard_of_key`), so that the key always meets itself; jobs of a
schedule have those of the schedule; others share theirs with what is submitted together with them.
"""

from __future__ import annotations

import zlib
from hashlib import blake2b

from lamplighter.model.errors import InvalidName
from lamplighter.model.names import shown

ID_LENGTH = 26
SHARD_BITS = 10
RANDOM_BITS = 70
KEY_SEPARATOR = "\x01"
"""Stands between tenant and id in the key of a schedule; names have no control characters."""

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {character: index for index, character in enumerate(_ALPHABET)}
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]


def compose(milliseconds: int, shard: int, chance: int) -> str:
    """Build an id from its three parts; ``chance`` holds 70 random bits."""
    # Numbers of more than 60 bits are slow to take apart; one text of many parts is not.
    pairs = _PAIRS
    head, middle, tail = milliseconds & 0xFFFFFFFFFFFF, chance >> 40, chance & 0xFFFFFFFFFF
    return (
        f"{pairs[head >> 40]}{pairs[head >> 30 & 1023]}{pairs[head >> 20 & 1023]}"
        f"{pairs[head >> 10 & 1023]}{pairs[head & 1023]}{pairs[shard]}"
        f"{pairs[middle >> 20]}{pairs[middle >> 10 & 1023]}{pairs[middle & 1023]}"
        f"{pairs[tail >> 30]}{pairs[tail >> 20 & 1023]}"
        f"{pairs[tail >> 10 & 1023]}{pairs[tail & 1023]}"
    )


def check_id(value: object) -> str:
    """Return the id in its canonical form, or say why it cannot be one."""
    text = value.strip().upper() if isinstance(value, str) else ""
    if len(text) != ID_LENGTH or any(c not in _VALUES for c in text) or text[0] > "7":
        raise InvalidName(
            f"{shown(value)} is not a job id",
            hint=f"a job id has {ID_LENGTH} characters of 0-9 and A-Z without I, L, O and U; "
            "`lamplighter jobs list` shows the ids in the store",
            value=value,
        )
    return text


def milliseconds_of(job_id: str) -> int:
    """Return the client's time, in milliseconds since 1970, at which the id was made."""
    value = 0
    for character in job_id[:10]:
        value = value << 5 | _VALUES[character]
    return value


def shard_of(job_id: str) -> int:
    """Return the shard the id was made for."""
    return _VALUES[job_id[10]] << 5 | _VALUES[job_id[11]]


def shard_of_key(tenant: str, scope: str, key: str) -> int:
    """Return the shard for jobs with an idempotency key: always the same for the same key."""
    name = f"{tenant}\0{scope}\0{key}"
    return zlib.crc32(name.encode("utf-8", "replace")) & ((1 << SHARD_BITS) - 1)


def schedule_key(tenant: str, schedule_id: str) -> str:
    """Return what identifies a schedule in the whole store: its tenant and its id as one text.

    Keys sort by tenant, then by id: no name has a character as low as the one between them.
    """
    return f"{tenant}{KEY_SEPARATOR}{schedule_id}"


def split_schedule_key(key: str) -> tuple[str, str]:
    """Return the tenant and the id in a key."""
    tenant, _, schedule_id = key.partition(KEY_SEPARATOR)
    return tenant, schedule_id


def shard_of_schedule(tenant: str, schedule_id: str) -> int:
    """Return the shard for a schedule and its jobs: always the same for the same schedule."""
    key = schedule_key(tenant, schedule_id)
    return zlib.crc32(key.encode("utf-8", "replace")) & ((1 << SHARD_BITS) - 1)


def of_occurrence(tenant: str, schedule_id: str, due_ms: int) -> str:
    """Return the id of the job for an occurrence: always the same for the same occurrence.

    So whoever plans it a second time, in whatever state the store is, makes no second job.
    """
    chance = _drawn(f"{schedule_key(tenant, schedule_id)}\0{due_ms}")
    return compose(due_ms, shard_of_schedule(tenant, schedule_id), chance)


def of_wish(tenant: str, schedule_id: str, created_ms: int, key: str) -> str:
    """Return the id of the job that is wished for under a key: always the same for the same key.

    A schedule that was removed and made anew is another one.
    """
    chance = _drawn(f"{schedule_key(tenant, schedule_id)}\0{created_ms}\0{key}")
    return compose(created_ms, shard_of_schedule(tenant, schedule_id), chance)


def _drawn(name: str) -> int:
    digest = blake2b(name.encode("utf-8", "replace"), digest_size=9).digest()
    return int.from_bytes(digest) & ((1 << RANDOM_BITS) - 1)


def moved(job_id: str, shard: int) -> str:
    """Return the same id in another shard."""
    return job_id[:10] + _PAIRS[shard] + job_id[12:]
