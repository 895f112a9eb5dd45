"""The reads of schedules: one, many, and the runs of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamplighter.engines.redis.call import Argument, Call
from lamplighter.engines.redis.schedule_records import due_of_run, is_id, run_of, schedule_of
from lamplighter.engines.redis.shards import shard_of_schedule
from lamplighter.model.ids import schedule_key
from lamplighter.port.cursors import cursor_of, place_of
from lamplighter.port.schedules import (
    RunPage,
    RunRecord,
    ScheduleFilter,
    SchedulePage,
    ScheduleRecord,
)
from lamplighter.port.stretches import Stretch, stretches
from lamplighter.port.texts import clean
from lamplighter.port.values import SCAN_LIMIT

_AT_ONCE = 100


async def schedule(call: Call, tenant: str, schedule_id: str) -> ScheduleRecord | None:
    """Return one schedule."""
    name = schedule_key(tenant, schedule_id)
    if not is_id(name):
        return None
    shard = shard_of_schedule(tenant, schedule_id, call.shards)
    stretch = (f"[{name}", name, 1, *_filter(ScheduleFilter()))
    _, _, *found = await call.run("inspect_schedules", stretch, shard=shard)
    # Where there is none, one whose name goes on is told.
    return schedule_of(*found) if found and found[0] == name.encode() else None


async def schedules(
    call: Call, which: ScheduleFilter, limit: int, cursor: str | None
) -> SchedulePage:
    """List schedules by key over all shards; a filter looks at a bounded stretch per page."""
    found: list[ScheduleRecord] = []
    for stretch in stretches(which, cursor):
        page = await _look(call, which, stretch, limit - len(found))
        found += page.schedules
        if page.cursor is not None or len(found) == limit:
            return SchedulePage(found, page.cursor or _key(found[-1]))
    return SchedulePage(found, None)


async def _look(call: Call, which: ScheduleFilter, stretch: Stretch, limit: int) -> SchedulePage:
    """List schedules of one stretch."""
    filter_ = _filter(which)
    streams = [_Stream(call, shard, stretch, filter_) for shard in range(call.shards)]
    found: list[ScheduleRecord] = []
    while len(found) < limit:
        hungry = min((one for one in streams if one.hungry), key=_place, default=None)
        looked = sum(one.looked for one in streams)
        # Each is looked at once: a page that ends has come further than the one before.
        if hungry is not None and (looked < SCAN_LIMIT or hungry.looked == 0):
            await hungry.fill(min(_AT_ONCE, limit - len(found)))
            continue
        ready = min((one for one in streams if one.records), key=_first, default=None)
        if hungry is not None and (ready is None or _first(ready) > hungry.place):
            # What comes next may be in a shard that was looked at up to there.
            return SchedulePage(found, hungry.place.decode())
        if ready is None:
            return SchedulePage(found, None)
        found.append(ready.records.pop(0))
    left = any(one.records or not one.over for one in streams)
    return SchedulePage(found, _key(found[-1]) if found and left else None)


class _Stream:
    """Schedules of one shard that a filter means, in their order."""

    def __init__(
        self, call: Call, shard: int, stretch: Stretch, filter_: Sequence[Argument]
    ) -> None:
        self._call = call
        self._shard = shard
        self._prefix = stretch.prefix.encode()
        self._filter = filter_
        self.place: bytes = (stretch.after or "").encode()
        """The key behind which it goes on."""
        self.records: list[ScheduleRecord] = []
        self.over = False
        self.looked = 0

    @property
    def hungry(self) -> bool:
        """Whether it must be looked at before anything can be given."""
        return not self.records and not self.over

    async def fill(self, wanted: int) -> None:
        """Look at some more."""
        prefix = self._prefix
        bound = b"(" + self.place if self.place >= prefix and self.place else b"[" + prefix
        said = await self._call.run(
            "inspect_schedules", (bound, prefix, wanted, *self._filter), shard=self._shard
        )
        more, last, *found = said
        entries = zip(found[::3], found[1::3], found[2::3], strict=True)
        self.records += [schedule_of(*entry) for entry in entries]
        self.place = last or self.place
        self.over = not more
        self.looked += _AT_ONCE


def _first(stream: _Stream) -> bytes:
    return _key(stream.records[0]).encode()


def _key(record: ScheduleRecord) -> str:
    return schedule_key(record.tenant, record.id)


def _place(stream: _Stream) -> bytes:
    return stream.place


def _filter(which: ScheduleFilter) -> list[Argument]:
    """Write a filter; `lua/inspect_schedules.lua` reads it. What cannot be a name is nobody's."""
    return [
        "" if which.held is None else int(which.held),
        0 if which.zones_not is None else 1,
        clean(which.zones_not or ""),
        which.prefix,
        *(name.encode("utf-8", "replace") for name in which.types),
    ]


async def runs(
    call: Call, tenant: str, schedule_id: str, limit: int, cursor: str | None
) -> RunPage:
    """List a schedule's runs, the latest due first."""
    (before,) = place_of(cursor, 1)
    found: list[RunRecord] = []
    name = schedule_key(tenant, schedule_id)
    if not is_id(name):
        return RunPage(found, None)
    shard = shard_of_schedule(tenant, schedule_id, call.shards)
    while len(found) < limit:
        wanted = min(_AT_ONCE, limit - len(found))
        said: list[Any] = await call.run("inspect_runs", (name, before, wanted), shard=shard)
        page = list(zip(said[::2], said[1::2], strict=True))
        found += [run_of(schedule_id, run, claimed) for run, claimed in page]
        if len(page) < wanted:
            return RunPage(found, None)
        before = due_of_run(page[-1][0])
    return RunPage(found, cursor_of((before,)))
