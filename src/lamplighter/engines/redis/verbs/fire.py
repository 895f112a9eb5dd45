"""fire, trigger: write plans for schedules, and make a run of one now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lamplighter.engines.redis import inputs, records
from lamplighter.engines.redis.arrivals import arguments_of
from lamplighter.engines.redis.call import Argument, Call
from lamplighter.engines.redis.schedule_records import OVERLAPS, STATES, check_id, plan_to_text
from lamplighter.engines.redis.shards import joined, shard_of, shard_of_schedule, split_schedules
from lamplighter.model.errors import InvalidInput
from lamplighter.model.ids import ID_LENGTH, schedule_key
from lamplighter.model.names import shown
from lamplighter.port.schedules import (
    BEHIND_A_RUN,
    FireAnswer,
    Fired,
    Firing,
    Run,
    ScheduleAnswer,
    Triggered,
)
from lamplighter.port.texts import is_nobody

_AT_ONCE = 100
"""Plans, jobs and skips in one script: nobody else is served meanwhile."""
_STALE, _AGAIN, _UNKNOWN = b"stale", b"again", b"unknown"
_QUEUED_MARK = records.mark_to_text(*BEHIND_A_RUN)


async def fire(call: Call, firings: Sequence[Firing]) -> list[Fired]:
    """Write each; the store refuses those that are stale."""
    for firing in firings:
        _check(firing, call.shards)
    parts: list[tuple[Sequence[int], list[Fired]]] = []
    for shard, (places, mine) in split_schedules(firings, _key, call.shards).items():
        answers: list[Fired] = []
        for some in _portions(mine):
            answers += await _fire(call, some, shard)
        parts.append((places, answers))
    return joined(parts)


def _key(firing: Firing) -> tuple[str, str]:
    return firing.tenant, firing.id


async def _fire(call: Call, firings: Sequence[Firing], shard: int) -> list[Fired]:
    """Write some plans, and those once more that had too many jobs to cancel before."""
    said: list[Any] = [_AGAIN] * len(firings)
    while left := [place for place, answer in enumerate(said) if answer == _AGAIN]:
        arguments = _arguments([firings[place] for place in left])
        found = await call.run("fire", arguments, shard=shard)
        for place, answer in zip(left, found, strict=True):
            said[place] = answer
    return [_answer(firing.id, answer) for firing, answer in zip(firings, said, strict=True)]


def _portions(firings: Iterable[Firing]) -> Iterable[list[Firing]]:
    """Cut plans into portions of bounded work, each schedule once in a portion."""
    portion: list[Firing] = []
    names: set[tuple[str, str]] = set()
    size = 0
    for firing in firings:
        more = max(1, len(firing.runs) + len(firing.skips))
        if portion and (size + more > _AT_ONCE or _key(firing) in names):
            yield portion
            portion, size = [], 0
            names.clear()
        portion.append(firing)
        names.add(_key(firing))
        size += more
    if portion:
        yield portion


def _arguments(firings: Sequence[Firing]) -> list[Argument]:
    try:
        arguments = _jobs_of([(firing.id, run) for firing in firings for run in firing.runs])
        for firing in firings:
            arguments += (schedule_key(*_key(firing)), plan_to_text(firing))
    except inputs.Unkept as error:
        raise inputs.refusal(error) from error
    return arguments


def _jobs_of(runs: Sequence[tuple[str, Run]]) -> list[Argument]:
    """Pack the jobs of runs, each of them given with its schedule."""
    jobs = [run.job for _, run in runs]
    return arguments_of(
        jobs,
        [
            records.body_of(run.job, records.occurrence_of(schedule_id, run.due_ms))
            for schedule_id, run in runs
        ],
        bytes([records.flags_of(job) & ~records.HELD | records.SCHEDULE for job in jobs]),
        mark=_QUEUED_MARK,
    )


def _answer(schedule_id: str, said: Any) -> Fired:
    if said == _STALE:
        return Fired(schedule_id, FireAnswer.STALE)
    queued, skipped, started = said
    text = started.decode()
    ids = (text,)  # most plans start one job
    if len(text) != ID_LENGTH:
        ids = tuple(text[at : at + ID_LENGTH] for at in range(0, len(text), ID_LENGTH))
    return Fired(schedule_id, FireAnswer.DONE, ids, queued, skipped)


# ── trigger ──────────────────────────────────────────────────────────────────────────────────


async def trigger(call: Call, schedule_id: str, run: Run, tenant: str) -> Triggered:
    """Let the store judge the run as one that is due now."""
    check_id(schedule_id)
    _check_run(tenant, schedule_id, run, call.shards)
    if is_nobody(tenant):
        return Triggered(schedule_id, ScheduleAnswer.UNKNOWN)
    try:
        job = _jobs_of([(schedule_id, run)])
        arguments = (*job, schedule_key(tenant, schedule_id), OVERLAPS[run.overlap])
    except inputs.Unkept as error:
        raise inputs.refusal(error) from error
    said: list[Any] = [_AGAIN]
    while said[0] == _AGAIN:
        shard = shard_of_schedule(tenant, schedule_id, call.shards)
        said = await call.run("trigger", arguments, shard=shard)
    if said[0] == _UNKNOWN:
        return Triggered(schedule_id, ScheduleAnswer.UNKNOWN)
    _, state, has_job = said
    job_id = run.job.id if has_job else None
    return Triggered(schedule_id, ScheduleAnswer.DONE, job_id, STATES[state])


# ── what is refused ──────────────────────────────────────────────────────────────────────────


def _check(firing: Firing, shards: int) -> None:
    check_id(firing.id)
    if len(firing.runs) > _AT_ONCE or len(firing.skips) > _AT_ONCE:
        number = max(len(firing.runs), len(firing.skips))
        raise InvalidInput(
            f"{number} runs or skips in one plan for the schedule {shown(firing.id)}, the limit is "
            f"{_AT_ONCE}",
            hint="plan the first of them, and the others when it is due again",
            value=number,
        )
    for run in firing.runs:
        _check_run(firing.tenant, firing.id, run, shards)


def _check_run(tenant: str, schedule_id: str, run: Run, shards: int) -> None:
    """Refuse a job that is not where its schedule is, or that somebody else may have made."""
    job = run.job
    place = shard_of_schedule(tenant, schedule_id, shards)
    if shard_of(job.id, shards) != place:
        raise InvalidInput(
            f"the job `{job.id}` is in shard {shard_of(job.id, shards)} of {shards} by its id, but "
            f"in shard {place} by its schedule {shown(schedule_id)}",
            hint="make its id with lamplighter.model.ids.of_occurrence, or with the bits that "
            "lamplighter.model.ids.shard_of_schedule gives",
            value=job.id,
        )
    if job.key is not None:
        raise InvalidInput(
            f"a job of the schedule {shown(schedule_id)} has the idempotency key "
            f"{shown(job.key.key)}",
            hint="leave it out: the id of such a job says that it is made once",
            value=job.key.key,
        )
