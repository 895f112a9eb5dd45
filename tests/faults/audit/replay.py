"""Makes what a Redis server wrote to its log into changes of jobs.

Everything that jobs consist of is kept here as the server has it: their values, their running
claims and the ends of their leases. A command that would change one of these in a way that is not
known here is an error, so that nothing is overlooked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote

from lamplighter.engines.redis import records
from lamplighter.model.job import TERMINAL, JobRecord, JobState
from lamplighter.port import texts
from tests.faults.audit import author_of
from tests.faults.audit.aof import Command, Transaction
from tests.faults.history import Ending, Write

_WATCHED = frozenset({b"job", b"run", b"lease", b"lane"})
_ID = 26


@dataclass(slots=True)
class Shard:
    """What one shard of a store has."""

    number: int
    values: dict[str, bytes] = field(default_factory=dict[str, bytes])
    runs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    leases: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    """When the lease of a length and a job ends."""
    lanes: dict[int, bytes] = field(default_factory=dict[int, bytes])
    keys: dict[str, str] = field(default_factory=dict[str, str])
    """Jobs by their idempotency keys, as these are written in the store."""
    now: int = 0
    """The store's time at the last transaction, as far as that shows it."""

    def record(self, job_id: str) -> JobRecord | None:
        """Give a job as it is now."""
        value, run = self.values.get(job_id), self.runs.get(job_id)
        if value is None:
            return None
        lane = records.lane_of(self.lanes[int.from_bytes(value[2:6], "little")])
        expires = None if run is None else self.leases.get((_length_of(run), job_id))
        return records.record_of(job_id, value, lane, now=0, run=run, expires=expires)


@dataclass(slots=True)
class _Step:
    """One transaction, while it is gone through."""

    shard: Shard
    before: dict[str, JobRecord | None] = field(default_factory=dict[str, "JobRecord | None"])
    times: list[int] = field(default_factory=list[int])
    """What the transaction shows of the time at which it was made."""

    def touch(self, job_id: str) -> None:
        """Say that a job is about to change."""
        if job_id not in self.before:
            self.before[job_id] = self.shard.record(job_id)


class Replay:
    """All shards of a store, from their first job on."""

    def __init__(self) -> None:
        self.shards: dict[bytes, Shard] = {}
        """By what the keys of each begin with."""
        self.writes: list[Write] = []
        self.unfinished: set[str] = set()

    def take(self, transaction: Transaction) -> list[Write]:
        """Go on by one transaction; gives the changes it made."""
        steps: dict[bytes, _Step] = {}
        for command in transaction:
            for prefix, part in _by_shard(command):
                shard = self.shards.setdefault(prefix, Shard(_number_of(prefix)))
                _apply(steps.setdefault(prefix, _Step(shard)), part)
        found = [write for step in steps.values() for write in self._changes(step)]
        self.writes += found
        return found

    def records(self) -> Iterable[JobRecord]:
        """Give all jobs as they are now."""
        for shard in self.shards.values():
            for job_id in shard.values:
                record = shard.record(job_id)
                if record is not None:
                    yield record

    def _changes(self, step: _Step) -> Iterable[Write]:
        shard = step.shard
        after = {job_id: shard.record(job_id) for job_id in step.before}
        step.times += [time for one in after.items() for time in _times(step.before, *one)]
        shard.now = max(step.times, default=shard.now)
        for job_id, new in after.items():
            old = step.before[job_id]
            if new is None or new.state in TERMINAL:
                self.unfinished.discard(job_id)
            else:
                self.unfinished.add(job_id)
            if old != new:
                number = len(self.writes) + 1
                yield _write(number, job_id, old, new, shard)


# ── commands ─────────────────────────────────────────────────────────────────────────────────


def _by_shard(command: Command) -> Iterable[tuple[bytes, Command]]:
    """Cut the prefix off the keys of a command; one that names several keys becomes several."""
    name, *words = command
    name = name.upper()
    if name in (b"FLUSHALL", b"FLUSHDB", b"SWAPDB"):
        raise ValueError(f"somebody did {command!r} to the store")
    if name == b"MSET":
        pairs = [[b"SET", key, value] for key, value in _pairs(words)]
    elif name in (b"DEL", b"UNLINK"):
        pairs = [[b"DEL", key] for key in words]
    else:
        pairs = [[name, *words]]
    for part in pairs:
        prefix, end, key = part[1].partition(b"}:")
        if end:
            yield prefix + end, [part[0], key, *part[2:]]


def _apply(step: _Step, command: Command) -> None:
    name, key, *words = command
    kind, _, rest = key.partition(b":")
    change = _CHANGES.get((kind, name))
    if change is not None:
        change(step, rest.decode(), words)
    elif kind in _WATCHED:
        raise ValueError(f"the audit does not know what {name!r} does to {key!r}")


def _pairs(words: Command) -> Iterable[tuple[bytes, bytes]]:
    return zip(words[::2], words[1::2], strict=True)


def _set_job(step: _Step, job_id: str, words: Command) -> None:
    step.touch(job_id)
    (step.shard.values[job_id],) = words


def _patch_job(step: _Step, job_id: str, words: Command) -> None:
    step.touch(job_id)
    offset, data = int(words[0]), words[1]
    value = step.shard.values[job_id]
    step.shard.values[job_id] = value[:offset] + data + value[offset + len(data) :]


def _delete_job(step: _Step, job_id: str, _: Command) -> None:
    step.touch(job_id)
    step.shard.values.pop(job_id, None)


def _set_run(step: _Step, _: str, words: Command) -> None:
    for job_id, run in _pairs(words):
        step.touch(job_id.decode())
        step.shard.runs[job_id.decode()] = run


def _delete_run(step: _Step, _: str, words: Command) -> None:
    for job_id in words:
        step.touch(job_id.decode())
        step.shard.runs.pop(job_id.decode(), None)


def _set_lease(step: _Step, length: str, words: Command) -> None:
    for score, job_id in _pairs(words):
        step.touch(job_id.decode())
        step.shard.leases[int(length), job_id.decode()] = int(float(score))
        step.times.append(int(float(score)) - int(length))


def _delete_lease(step: _Step, length: str, words: Command) -> None:
    for job_id in words:
        step.touch(job_id.decode())
        step.shard.leases.pop((int(length), job_id.decode()), None)


def _set_lane(step: _Step, _: str, words: Command) -> None:
    step.shard.lanes |= {int(number): text for number, text in _pairs(words)}


def _note_attempt(step: _Step, job_id: str, words: Command) -> None:
    for value in words:
        finished = records.attempt_of(job_id, value).finished_at_ms
        if finished is not None:
            step.times.append(finished)


def _set_key(step: _Step, name: str, words: Command) -> None:
    step.shard.keys[name] = words[0][8 : 8 + _ID].decode()


def _delete_key(step: _Step, name: str, _: Command) -> None:
    step.shard.keys.pop(name, None)


_CHANGES: dict[tuple[bytes, bytes], Callable[[_Step, str, Command], None]] = {
    (b"job", b"SET"): _set_job,
    (b"job", b"SETRANGE"): _patch_job,
    (b"job", b"DEL"): _delete_job,
    (b"run", b"HSET"): _set_run,
    (b"run", b"HDEL"): _delete_run,
    (b"lease", b"ZADD"): _set_lease,
    (b"lease", b"ZREM"): _delete_lease,
    (b"lane", b"HSET"): _set_lane,
    (b"attempts", b"RPUSH"): _note_attempt,
    (b"key", b"SET"): _set_key,
    (b"key", b"DEL"): _delete_key,
}


# ── changes ──────────────────────────────────────────────────────────────────────────────────


def tenant_and_key(name: str) -> tuple[str, str]:
    """Read the name of an idempotency key, as the store writes it."""
    tenant, _, key = name.split(":")
    return unquote(tenant), unquote(key)


def ending_of(record: JobRecord) -> Ending:
    """Give a job as it is, in the words of a history."""
    job = record.job
    return Ending(
        job_id=job.id,
        type=job.type,
        tenant=job.tenant,
        state=record.state.value,
        attempt=job.attempt,
        crashes=job.crashes,
        losses=job.losses,
        reason=record.reason,
        suspect=job.suspect,
        lease=record.lease,
        error=texts.error_to_text(record.error),
    )


def _times(
    before: dict[str, JobRecord | None], job_id: str, new: JobRecord | None
) -> Iterable[int]:
    """Give the times of a job that its change has set to the time of the change."""
    old = before[job_id]
    if new is None:
        return
    if old is None:
        yield new.job.created_at_ms
    for at in ("claimed_at_ms", "finished_at_ms"):
        time = getattr(new, at)
        if time is not None and (old is None or time != getattr(old, at)):
            # A settle copies when the job was claimed; that is not its own time.
            if at == "claimed_at_ms" and new.state is not JobState.RUNNING:
                continue
            yield time


def _write(
    number: int, job_id: str, old: JobRecord | None, new: JobRecord | None, shard: Shard
) -> Write:
    known = new or old
    assert known is not None
    crashes = _grew(old, new, "crashes")
    return Write(
        number=number,
        job_id=job_id,
        old_state=old and old.state.value,
        new_state=new and new.state.value,
        now_ms=shard.now,
        part=shard.number,
        tenant=known.job.tenant,
        queue=known.job.queue,
        level=int(known.job.level),
        generation=known.job.generation,
        old_generation=old.job.generation if old else 0,
        lease=new.lease if new else 0,
        old_lease=old.lease if old else 0,
        nonce=new and new.nonce,
        old_nonce=old and old.nonce,
        worker=new and new.worker,
        due_ms=new.job.due_at_ms if new else 0,
        claimed_ms=new and new.claimed_at_ms,
        old_expires_ms=old and old.expires_at_ms,
        attempt=new.job.attempt if new else 0,
        abandoned=_grew(old, new, "losses") or (_grew(old, new, "suspect") and not crashes),
        crashed=crashes,
        author=author_of(_written(old, new)),
    )


def _grew(old: JobRecord | None, new: JobRecord | None, name: str) -> bool:
    return bool(old and new and getattr(new.job, name) > getattr(old.job, name))


def _written(old: JobRecord | None, new: JobRecord | None) -> str | None:
    """Give the result or the error that came with a change."""
    if old is None or new is None:
        return None
    if new.result is not None and new.result != old.result:
        return new.result.decode()
    return texts.error_to_text(new.error) if new.error != old.error else None


def _number_of(prefix: bytes) -> int:
    return int(prefix.removesuffix(b"}:").rpartition(b":")[2])


def _length_of(run: bytes) -> int:
    """Give the length of a lease, in milliseconds, from its claim."""
    return int.from_bytes(run[36:44], "little")
