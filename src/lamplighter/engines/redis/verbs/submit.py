"""submit: store new jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lamplighter.engines.redis import inputs, records
from lamplighter.engines.redis.arrivals import arguments_of
from lamplighter.engines.redis.call import Argument, Call
from lamplighter.engines.redis.shards import joined, shard_of, split
from lamplighter.model import ids
from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import NewJob
from lamplighter.model.names import shown
from lamplighter.port.values import SubmitAnswer, Submitted

_CREATED = SubmitAnswer.CREATED
_ANSWERS = {answer.value.encode(): answer for answer in SubmitAnswer}


class Herald(Protocol):
    """Tells those who wait that there is work."""

    def word(self, job: NewJob) -> Sequence[Argument]:
        """Return what the submission of one job is to tell in the same step."""
        ...


async def submit(
    call: Call, jobs: Sequence[NewJob], herald: Herald | None = None
) -> list[Submitted]:
    """Store what is new; the store answers only for the others.

    In a store of several shards each shard's jobs are one write.
    """
    news = herald.word(jobs[0]) if herald is not None and len(jobs) == 1 else ()
    try:
        return await _submit(call, jobs, news)
    except inputs.Unkept as error:
        raise inputs.refusal(error) from error


async def _submit(call: Call, jobs: Sequence[NewJob], news: Sequence[Argument]) -> list[Submitted]:
    if call.shards > 1:
        _check_places(jobs, call.shards)
    parts: list[tuple[Sequence[int], list[Submitted]]] = []
    for shard, (places, mine) in split(jobs, call.shards).items():
        answers = [Submitted(job.id, _CREATED) for job in mine]
        said = await call.run("submit", [*_arguments(mine), *news], shard=shard)
        for place, answer, job_id in zip(said[::3], said[1::3], said[2::3], strict=True):
            answers[place - 1] = Submitted(job_id.decode(), _ANSWERS[answer])
        parts.append((places, answers))
    return joined(parts)


def _check_places(jobs: Sequence[NewJob], shards: int) -> None:
    """Refuse jobs that are not where their key is: elsewhere it would not meet itself."""
    for job in jobs:
        if job.key is None:
            continue
        place = ids.shard_of_key(job.tenant, job.key.scope, job.key.key)
        if shard_of(job.id, shards) != place % shards:
            raise InvalidInput(
                f"the job `{job.id}` is in shard {shard_of(job.id, shards)} of {shards} by its id, "
                f"but in shard {place % shards} by its idempotency key {shown(job.key.key)}",
                hint=f"make its id with the shard bits of its key, which are {place}: "
                "lamplighter.model.ids.shard_of_key gives them; an App does so by itself",
                value=job.id,
            )


def _arguments(jobs: Sequence[NewJob]) -> list[Argument]:
    return arguments_of(
        jobs,
        [records.body_of(job) for job in jobs],
        bytes([records.flags_of(job) for job in jobs]),
        _keys(jobs),
    )


def _keys(jobs: Sequence[NewJob]) -> list[Argument]:
    """Return the idempotency keys, each with the number of its job, its scope and its body."""
    keys: list[Argument] = []
    for place, job in enumerate(jobs, 1):
        if job.key is not None:
            keys += (place, job.key.scope, job.key.key, job.key.body)
    return keys
