"""jobs, dead_groups: many jobs, newest first, over all shards."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Argument, Call
from lamplighter.model.filters import Filter, coarse_statuses, matcher, statuses_of
from lamplighter.model.job import JobRecord
from lamplighter.port.cursors import cursor_of, place_of
from lamplighter.port.texts import clean
from lamplighter.port.values import SCAN_LIMIT, DeadGroup, DeadGroups, JobPage

_BATCH = 500
_LEAST = 100
"""What a look counts for at least: it takes time even where no job is any more."""
_ID_PARTS, _ID_BYTES = 5, 6
"""An id as numbers: five of six bytes each hold its characters."""

_RUN = 2
"""Place of the running claim in an entry of `lua/lib/seen.lua`."""
_NOBODY: Mapping[str, Collection[str]] = {}

Place = tuple[int, ...]


async def seen(call: Call, ids: Sequence[str], shard: int) -> list[JobRecord]:
    """Read jobs of one shard; those that are not there are left out."""
    found: list[JobRecord] = []
    rest = list(ids)
    while rest:
        now, *entries = await call.run("inspect_jobs", rest[:_BATCH], shard=shard)
        unstarted = await unstarted_of(call, entries)
        # A large answer ends early.
        found += [
            record_of(job_id, entry, now, unstarted)
            for job_id, entry in zip(rest, entries, strict=False)
            if entry
        ]
        rest = rest[len(entries) :]
    return found


async def unstarted_of(call: Call, entries: Sequence[Sequence[bytes]]) -> dict[str, frozenset[str]]:
    """Read what the workers of these jobs, as far as they run, said last of those not started."""
    holders = sorted({records.holder_of(entry[_RUN]) for entry in entries if entry and entry[_RUN]})
    found: dict[str, frozenset[str]] = {}
    for start in range(0, len(holders), _BATCH):
        some = holders[start : start + _BATCH]
        said = await call.run("inspect_unstarted", [clean(holder) for holder in some])
        found |= {
            holder: frozenset(ids.decode().split()) for holder, ids in zip(some, said, strict=True)
        }
    return found


def record_of(
    job_id: str,
    entry: Sequence[bytes],
    now: int,
    unstarted: Mapping[str, Collection[str]] = _NOBODY,
) -> JobRecord:
    """Read an entry as `lua/lib/seen.lua` makes it; ``unstarted`` is as `unstarted_of` reads it."""
    value, lane, run, ends, hold, cancel, progress = entry
    return records.record_of(
        job_id,
        value,
        records.lane_of(lane),
        now=now,
        run=run or None,
        expires=int(ends) if ends else None,
        hold=hold or None,
        cancel=cancel or None,
        progress=progress or None,
        unstarted=unstarted.get(records.holder_of(run), ()) if run and unstarted else (),
    )


async def jobs(call: Call, which: Filter, limit: int, cursor: str | None) -> JobPage:
    """List jobs, newest first; a page looks at a bounded stretch of them.

    Dead letters have an index of their own and are listed by the time of death.
    """
    only_dead = statuses_of(which) == frozenset({"dead"})
    kind: _Kind = _Dead() if only_dead else _All()
    text = filter_text(which)
    streams = [
        _Stream(call, kind, shard, text, place)
        for shard, place in enumerate(kind.places(cursor, call.shards))
    ]
    picked = await _pick(streams, limit)
    by_id = {
        record.job.id: record
        for shard in range(call.shards)
        for record in await seen(call, [one.id for one in picked if one.shard == shard], shard)
    }
    # A job may have changed between the two looks.
    matches = matcher(which)
    found = [by_id[one.id] for one in picked if one.id in by_id and matches(by_id[one.id])]
    if all(stream.over for stream in streams):
        return JobPage(found, None)
    last = picked[-1].place if len(picked) == limit else None
    return JobPage(found, cursor_of(kind.goes_on(streams, last)))


async def _pick(streams: Sequence[_Stream], limit: int) -> list[_Found]:
    """Take the newest of all shards, up to a limit or until enough was looked at."""
    picked: list[_Found] = []
    while len(picked) < limit:
        hungry = [stream for stream in streams if stream.hungry]
        looked = sum(stream.looked for stream in streams)
        for stream in hungry:
            if looked < SCAN_LIMIT or stream.looked == 0:
                await stream.fill(limit)
                break
        else:
            ready = [stream for stream in streams if not stream.empty]
            newest = max(ready, key=lambda stream: stream.newest.order, default=None)
            if newest is None or not all(one.is_behind(newest.newest) for one in hungry):
                break
            picked.append(newest.take())
    return picked


@dataclass(frozen=True, slots=True)
class _Found:
    """A job that a filter means: where it stands among all, and in its own shard."""

    shard: int
    id: str
    order: tuple[int, str]
    place: Place


@dataclass(frozen=True, slots=True)
class _Look:
    """What one look at a shard came to."""

    place: Place
    more: bool
    looked: int
    found: list[_Found]


class _Kind(Protocol):
    """An order of jobs: how shards are asked for it, and what a cursor is."""

    script: str
    shared: bool
    """Whether a place means the same in every shard."""

    def places(self, cursor: str | None, shards: int) -> list[Place]:
        """Read where each shard goes on."""
        ...

    def goes_on(self, streams: Sequence[_Stream], last: Place | None) -> Place:
        """Say where all shards go on; ``last`` is the place of the last job of a full page."""
        ...

    def asked(self, place: Place) -> tuple[Argument, ...]:
        """Return a place as the script wants it."""
        ...

    def read(self, said: Sequence[Any], shard: int) -> _Look:
        """Read what the script says."""
        ...


class _All:
    """All jobs in the order of their arrival, which each shard counts for itself."""

    script = "inspect_find"
    shared = False

    def places(self, cursor: str | None, shards: int) -> list[Place]:
        return [(number,) for number in place_of(cursor, shards)]

    def goes_on(self, streams: Sequence[_Stream], last: Place | None) -> Place:
        return tuple(stream.place[0] for stream in streams)

    def asked(self, place: Place) -> tuple[Argument, ...]:
        return place

    def read(self, said: Sequence[Any], shard: int) -> _Look:
        place, more, looked, *rest = said
        found = [
            _Found(shard, job_id.decode(), (created, job_id.decode()), (seq,))
            for job_id, seq, created in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
        ]
        return _Look((place,), more == 1, max(_LEAST, looked), found)


class _Dead:
    """Dead letters by the time of death, then by their ids."""

    script = "inspect_dead"
    shared = True

    def places(self, cursor: str | None, shards: int) -> list[Place]:
        return [place_of(cursor, 1 + _ID_PARTS)] * shards

    def goes_on(self, streams: Sequence[_Stream], last: Place | None) -> Place:
        # A page that is not full ends where a shard had been looked at for long enough.
        return last or max(stream.place for stream in streams if stream.hungry)

    def asked(self, place: Place) -> tuple[Argument, ...]:
        return place[0], id_of(place[1:])

    def read(self, said: Sequence[Any], shard: int) -> _Look:
        finished, last, more, looked, *rest = said
        found = [
            _Found(shard, job_id.decode(), (at, job_id.decode()), (at, *numbers_of(job_id)))
            for job_id, at in zip(rest[::2], rest[1::2], strict=True)
        ]
        return _Look((finished, *numbers_of(last)), more == 1, max(_LEAST, looked), found)


@dataclass(slots=True)
class _Stream:
    """The jobs of one shard that a filter means, from a place on, read as they are needed."""

    call: Call
    kind: _Kind
    shard: int
    filter: str
    place: Place
    """Where the next page goes on: behind what was taken, not behind what was only read."""
    looked: int = 0
    _read: Place = ()
    _more: bool = True
    _found: deque[_Found] = field(default_factory=deque[_Found])

    @property
    def empty(self) -> bool:
        return not self._found

    @property
    def over(self) -> bool:
        return not self._more and not self._found

    @property
    def hungry(self) -> bool:
        """Whether nobody knows what comes next."""
        return self._more and not self._found

    @property
    def newest(self) -> _Found:
        return self._found[0]

    def is_behind(self, found: _Found) -> bool:
        """Tell whether all that may still come goes behind a job of another shard."""
        return self.kind.shared and found.place > self.place

    async def fill(self, wanted: int) -> None:
        """Look a bit further."""
        asked = (*self.kind.asked(self.place), min(wanted, _BATCH), self.filter)
        said = await self.call.run(self.kind.script, asked, shard=self.shard)
        look = self.kind.read(said, self.shard)
        self._found.extend(look.found)
        self._read, self._more = look.place, look.more
        self.looked += look.looked
        if self.empty:
            self.place = look.place
        elif not self.kind.shared:
            # Also where nothing is taken for this page: what comes meanwhile is not on the next.
            self.place = (look.found[0].place[0] + 1,)

    def take(self) -> _Found:
        """Take the newest."""
        taken = self._found.popleft()
        self.place = self._read if self.empty else taken.place
        return taken


def id_of(numbers: Sequence[int]) -> bytes:
    """Read the characters of an id; numbers that are none give something like one."""
    most = (1 << 8 * _ID_BYTES) - 1
    text = b"".join(min(number, most).to_bytes(_ID_BYTES, "big") for number in numbers)
    return text.rstrip(b"\0")


def numbers_of(job_id: bytes) -> tuple[int, ...]:
    """Write the characters of an id as numbers, for a cursor."""
    text = job_id[: _ID_PARTS * _ID_BYTES].ljust(_ID_PARTS * _ID_BYTES, b"\0")
    return tuple(
        int.from_bytes(text[at : at + _ID_BYTES], "big") for at in range(0, len(text), _ID_BYTES)
    )


def filter_text(which: Filter) -> str:
    """Write a filter as `lua/lib/filter.lua` reads it; what is not asked for is left out."""
    asked: dict[str, object] = {
        "statuses": sorted(coarse_statuses(which)) or None,
        "types": _wanted(which.types),
        "queues": _wanted(which.queues),
        "tenants": _wanted(which.tenants),
        "schedules": _wanted(which.schedules),
        "fingerprints": _wanted(which.fingerprints),
        "tag": None if which.tag is None else clean(which.tag),
        "created_after": which.created_after_ms,
        "created_before": which.created_before_ms,
        "finished_after": which.finished_after_ms,
        "finished_before": which.finished_before_ms,
    }
    return json.dumps({name: value for name, value in asked.items() if value is not None})


def _wanted(names: Sequence[str]) -> list[str] | None:
    """Return the names that something in a store can have. All others are the name of nothing."""
    return [name for name in names if clean(name) == name] if names else None


# ── dead letters by their cause ──────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Group:
    count: int
    newest: tuple[int, str]
    shard: int


async def dead_groups(call: Call, which: Filter, most: int) -> DeadGroups:
    """Group dead letters by type and fingerprint; the newest of each tells its story."""
    statuses = statuses_of(which)
    if statuses and "dead" not in statuses:
        return DeadGroups([], at_least=False)
    groups: dict[tuple[str, str], _Group] = {}
    older = False
    for shard in range(call.shards):
        older |= await _count(call, which, shard, groups, most)
    found: list[DeadGroup] = []
    for shard in range(call.shards):
        mine = {group.newest[1]: key for key, group in groups.items() if group.shard == shard}
        for record in await seen(call, list(mine), shard):
            key = mine[record.job.id]
            found.append(_group(key, groups[key], record))
    found.sort(key=lambda group: (-group.count, group.type, group.fingerprint))
    return DeadGroups(found, at_least=older)


async def _count(
    call: Call, which: Filter, shard: int, groups: dict[tuple[str, str], _Group], most: int
) -> bool:
    """Add the dead letters of a shard; True: there are older ones, which were not looked at."""
    place: tuple[Argument, Argument] = (_Dead().asked(place_of(None, 1 + _ID_PARTS))[0], b"\xff")
    text, looked, more = filter_text(which), 0, 1
    while more and looked < most:
        finished, last, more, count, *rest = await call.run(
            "inspect_dead", (*place, "", text, most - looked), shard=shard
        )
        place, looked = (finished, last), looked + count
        for type_, fingerprint, number, at, newest in rest:
            key = (type_.decode(), fingerprint.decode("utf-8", "replace"))
            group = groups.setdefault(key, _Group(0, (at, newest.decode()), shard))
            group.count += number
            if (at, newest.decode()) > group.newest:
                group.newest, group.shard = (at, newest.decode()), shard
    return bool(more)


def _group(key: tuple[str, str], group: _Group, record: JobRecord) -> DeadGroup:
    return DeadGroup(
        fingerprint=key[1],
        type=key[0],
        queue=record.job.queue,
        error=record.error,
        reason=record.reason or "",
        count=group.count,
        newest_at_ms=group.newest[0],
        example=group.newest[1],
    )
