"""What the operators' verbs share: send each job once, answer for every time it was named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamplighter.engines.postgres import ids
from lamplighter.engines.postgres.call import Call
from lamplighter.model.job import JobState
from lamplighter.port.values import ChangeAnswer, Changed

DONE, ALREADY = ChangeAnswer.DONE, ChangeAnswer.ALREADY


async def change(
    call: Call,
    verb: str,
    job_ids: Sequence[str],
    *parameters: object,
    again: Mapping[ChangeAnswer, ChangeAnswer],
) -> list[Changed]:
    """Run a verb and answer in order.

    ``again`` says what a job that the call names twice is answered the second time, where that
    differs from the first.
    """
    given = list(dict.fromkeys(job_ids))
    places = ", ".join(["%s"] * (1 + len(parameters)))
    rows = await call.rows(
        f"SELECT id, answer, state FROM {call.function(verb)}({places})",
        (ids.uuids(given), *parameters),
    )
    found = {
        job_id: Changed(job_id, ChangeAnswer(answer), None if state is None else JobState(state))
        for job_id, answer, state in rows
    }
    answers: list[Changed] = []
    for job_id in job_ids:
        one = found.get(job_id) or Changed(job_id, ChangeAnswer.UNKNOWN, None)
        answers.append(one)
        found[job_id] = Changed(job_id, again.get(one.answer, one.answer), one.state)
    return answers
