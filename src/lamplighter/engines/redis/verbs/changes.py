"""What the operators' verbs share: send each job once, answer for every time it was named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamplighter.engines.redis.call import Argument, Call
from lamplighter.engines.redis.shards import joined, split
from lamplighter.model.job import JobState
from lamplighter.port.values import ChangeAnswer, Changed

DONE, ALREADY = ChangeAnswer.DONE, ChangeAnswer.ALREADY
_AT_ONCE = 100
"""Jobs in one script: nobody else is served meanwhile, and operators are in no hurry."""


async def change(
    call: Call,
    verb: str,
    job_ids: Sequence[str],
    *parameters: Argument,
    again: Mapping[ChangeAnswer, ChangeAnswer],
) -> list[Changed]:
    """Run a verb on the shards of these jobs and answer in order.

    ``again`` says what a job that the call names twice is answered the second time, where that
    differs from the first.
    """
    given = list(dict.fromkeys(job_ids))
    parts: list[tuple[Sequence[int], list[Changed]]] = []
    for shard, (places, ids) in split(given, str, call.shards).items():
        found: list[Changed] = []
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            said = await call.run(verb, (*parameters, *some), shard=shard)
            found += _answers(some, said)
        parts.append((places, found))
    by_id = dict(zip(given, joined(parts), strict=True))
    answers: list[Changed] = []
    for job_id in job_ids:
        one = by_id[job_id]
        answers.append(one)
        by_id[job_id] = Changed(job_id, again.get(one.answer, one.answer), one.state)
    return answers


def _answers(ids: Sequence[str], said: Sequence[bytes]) -> list[Changed]:
    """Read an answer and a state for each; one that is not there any more has no state."""
    return [
        Changed(job_id, ChangeAnswer(what.decode()), JobState(state.decode()) if state else None)
        for job_id, what, state in zip(ids, said[::2], said[1::2], strict=True)
    ]
