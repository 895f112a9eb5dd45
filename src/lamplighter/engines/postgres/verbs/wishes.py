"""What the operators' verbs for schedules share: send each once, answer for every naming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamplighter.engines.postgres.call import Call
from lamplighter.engines.postgres.filters import wanted
from lamplighter.port.schedules import ScheduleAnswer, ScheduleChanged
from lamplighter.port.texts import is_nobody

DONE, ALREADY, UNKNOWN = ScheduleAnswer.DONE, ScheduleAnswer.ALREADY, ScheduleAnswer.UNKNOWN


async def change(
    call: Call,
    verb: str,
    schedule_ids: Sequence[str],
    tenant: str,
    *parameters: object,
    again: Mapping[ScheduleAnswer, ScheduleAnswer],
) -> list[ScheduleChanged]:
    """Run a verb and answer in order.

    ``again`` says what a schedule that the call names twice is answered the second time, where
    that differs from the first.
    """
    if is_nobody(tenant):
        return [ScheduleChanged(one, UNKNOWN) for one in schedule_ids]
    places = ", ".join(["%s"] * (2 + len(parameters)))
    rows = await call.rows(
        f"SELECT id, answer FROM {call.function(verb)}({places})",
        (wanted(list(dict.fromkeys(schedule_ids))), tenant, *parameters),
    )
    found = {schedule_id: ScheduleAnswer(answer) for schedule_id, answer in rows}
    answers: list[ScheduleChanged] = []
    for schedule_id in schedule_ids:
        answer = found.get(schedule_id, UNKNOWN)
        answers.append(ScheduleChanged(schedule_id, answer))
        found[schedule_id] = again.get(answer, answer)
    return answers
