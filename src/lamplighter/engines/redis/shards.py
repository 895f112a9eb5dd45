"""Which part of a store a job lives in. A shard is a complete little scheduler."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TypeVar

from lamplighter.model import ids

T = TypeVar("T")
A = TypeVar("A")

MOST_SHARDS = 1 << ids.SHARD_BITS
"""More cannot be told apart by the bits in an id."""


def shard_of(job_id: str, shards: int) -> int:
    """Return the shard of a job. What is no id of ours is in none, so that any will do."""
    if shards == 1:
        return 0
    try:
        return ids.shard_of(job_id) % shards
    except (KeyError, IndexError):
        return 0


def shard_of_schedule(tenant: str, schedule_id: str, shards: int) -> int:
    """Return the shard of a schedule, its runs and its jobs."""
    return 0 if shards == 1 else ids.shard_of_schedule(tenant, schedule_id) % shards


def shard_of_text(text: str, shards: int) -> int:
    """Return the shard of a name or key, which have no id; always the same for one text."""
    return 0 if shards == 1 else zlib.crc32(text.encode("utf-8", "replace")) % shards


def split(
    items: Sequence[T], shards: int, job_id: Callable[[T], str] = attrgetter("id")
) -> dict[int, tuple[list[int], Sequence[T]]]:
    """Sort items by the shard of their job: for each shard, their places and the items."""
    return _sorted(items, lambda item: shard_of(job_id(item), shards), shards)


def split_schedules(
    items: Sequence[T], key: Callable[[T], tuple[str, str]], shards: int
) -> dict[int, tuple[list[int], Sequence[T]]]:
    """Sort items by the shard of their schedule, given by tenant and id; see `split`."""
    return _sorted(items, lambda item: shard_of_schedule(*key(item), shards), shards)


def _sorted(
    items: Sequence[T], shard_of_item: Callable[[T], int], shards: int
) -> dict[int, tuple[list[int], Sequence[T]]]:
    if shards == 1:
        return {0: (list(range(len(items))), items)}
    found: dict[int, tuple[list[int], list[T]]] = {}
    for place, item in enumerate(items):
        places, mine = found.setdefault(shard_of_item(item), ([], []))
        places.append(place)
        mine.append(item)
    return dict(found)


def joined(answers: Sequence[tuple[Sequence[int], Sequence[A]]]) -> list[A]:
    """Put the answers of several shards into the order of the question; see `split`."""
    if len(answers) == 1:
        return list(answers[0][1])
    pairs = [pair for places, mine in answers for pair in zip(places, mine, strict=True)]
    pairs.sort(key=_place)
    return [answer for _, answer in pairs]


def _place(pair: tuple[int, object]) -> int:
    return pair[0]
