"""submit: store new jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from lamplighter.engines.postgres import arrays, faults, ids, records
from lamplighter.engines.postgres.call import Call
from lamplighter.model.errors import StoreError
from lamplighter.model.job import NO_EXTRAS, Delivery, NewJob
from lamplighter.port import texts
from lamplighter.port.store import queue_topic
from lamplighter.port.values import SubmitAnswer, Submitted

T = TypeVar("T")

MARK = records.mark_to_text("submit", "submitted held")
"""Who holds a job that is stored held."""
_AT_LEAST_ONCE = Delivery.AT_LEAST_ONCE
_CREATED = SubmitAnswer.CREATED
_PARAMETERS = ", ".join(["%s"] * 21)
# A number that is too large is told as such only where its type is said.
_ONE = "%s, %s::integer, %s, %s, %s, %s, %s, %s::bigint, %s::bigint, %s, %s, %s::integer, %s, %s"


class Herald(Protocol):
    """Tells those who wait that there is work."""

    def word(self, topic: str) -> tuple[str, str] | None:
        """Return a channel and what to say there now, or None if it is to be said later."""
        ...

    def said(self, topic: str) -> None:
        """Note that the word has been said."""
        ...

    def mute(self) -> None:
        """Note that nothing more can be said for a while."""
        ...


async def submit(
    call: Call, jobs: Sequence[NewJob], herald: Herald | None = None
) -> list[Submitted]:
    """Store what is new; the store answers only for the others."""
    if len(jobs) == 1 and jobs[0].key is None:
        return [await _submit_one(call, jobs[0], herald)]
    return await _submit_many(call, jobs)


async def _submit_many(call: Call, jobs: Sequence[NewJob]) -> list[Submitted]:
    rows = await call.rows(
        f"SELECT n, answer, id FROM {call.function('submit')}({_PARAMETERS})",
        (*_lanes(jobs), *_essentials(jobs), *_options(jobs), *_keys(jobs)),
    )
    answers = [Submitted(job.id, _CREATED) for job in jobs]
    for place, answer, job_id in rows:
        answers[place - 1] = Submitted(job_id, SubmitAnswer(answer))
    return answers


async def _submit_one(call: Call, job: NewJob, herald: Herald | None) -> Submitted:
    values = (
        job.queue,
        int(job.level),
        job.type,
        job.requirement,
        ids.uuid(job.id),
        job.tenant,
        job.args,
        job.delay_ms,
        job.run_at_ms,
        None if job.extras is NO_EXTRAS else texts.extras_to_text(job.extras),
        None if job.delivery is _AT_LEAST_ONCE else job.delivery.value,
        job.cost,
        job.schedule,
        MARK if job.held else None,
    )
    topic = queue_topic(job.queue)
    word = herald.word(topic) if herald is not None and not job.delay_ms else None
    try:
        if herald is None or word is None:
            statement = f"SELECT {call.function('submit_one')}({_ONE})"
            ((created,),) = await call.rows(statement, values)
        else:
            statement = f"CALL {call.function('submit_and_tell')}({_ONE}, %s, %s, NULL)"
            ((created,),) = await call.rows(statement, (*values, *word))
            if created:
                herald.said(topic)
    except StoreError as error:
        if herald is not None and faults.full_of_news(error):
            # The job was committed before the word; what came of it did not arrive.
            herald.mute()
            return Submitted(job.id, _CREATED)
        if faults.known_id(error):
            return (await _submit_many(call, [job]))[0]
        raise
    return Submitted(job.id, _CREATED if created else SubmitAnswer.ALREADY)


def columns(jobs: Sequence[NewJob]) -> tuple[object, ...]:
    """Return jobs as parameters for a verb that knows their schedules and does without keys."""
    *others, _, held, _ = _options(jobs)
    return (*_lanes(jobs), *_essentials(jobs), *others, held)


def _lanes(jobs: Sequence[NewJob]) -> tuple[object, ...]:
    """Return the lanes of all jobs, the ids, and the lane of each job unless there is only one."""
    lanes: dict[tuple[str, int, str, str], int] = {}
    of_jobs = [
        lanes.setdefault((job.queue, job.level, job.type, job.requirement), len(lanes) + 1)
        for job in jobs
    ]
    queues, levels, types, requirements = zip(*lanes, strict=True)
    return (
        arrays.texts(queues),
        arrays.numbers(int(level) for level in levels),
        arrays.texts(types),
        arrays.texts(requirements),
        ids.uuids([job.id for job in jobs]),
        arrays.numbers(of_jobs) if len(lanes) > 1 else None,
    )


def _essentials(jobs: Sequence[NewJob]) -> tuple[object, ...]:
    """Return tenants and arguments."""
    tenants = [job.tenant for job in jobs]
    if len(set(tenants)) == 1:
        tenants = tenants[:1]
    return (arrays.texts(tenants), *arrays.joined([job.args for job in jobs]))


def _options(jobs: Sequence[NewJob]) -> tuple[object, ...]:
    """Return what most submissions do without; a column in which nobody has anything is None."""
    extras = _unless_all(
        None,
        [None if j.extras is NO_EXTRAS else texts.extras_to_text(j.extras) for j in jobs],
        list,
    )
    deliveries = _unless_all(
        None,
        [None if job.delivery is _AT_LEAST_ONCE else job.delivery.value for job in jobs],
        list,
    )
    held = _unless_all(False, [job.held for job in jobs], arrays.flags)
    return (
        _unless_all(0, [job.delay_ms for job in jobs], arrays.numbers),
        _unless_all(None, [job.run_at_ms for job in jobs], arrays.numbers),
        extras,
        deliveries,
        _unless_all(1, [job.cost for job in jobs], arrays.numbers),
        _unless_all(None, [job.schedule for job in jobs], list),
        held,
        None if held is None else MARK,
    )


def _keys(jobs: Sequence[NewJob]) -> tuple[list[str | None] | None, ...]:
    keys = [job.key for job in jobs]
    if keys.count(None) == len(keys):
        return None, None, None
    return (
        [None if key is None else key.scope for key in keys],
        [None if key is None else key.key for key in keys],
        [None if key is None else key.body for key in keys],
    )


def _unless_all(usual: T, values: list[T], write: Callable[[list[T]], object]) -> object:
    """Write a column, unless every job has the usual there."""
    return None if values.count(usual) == len(values) else write(values)
