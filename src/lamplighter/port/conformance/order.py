"""The order of hand-outs: queues and quotas, levels, due times, the longest waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.model.job import Level
from lamplighter.port.conformance.builders import (
    claim,
    failed,
    handed_out,
    new_job,
    released,
    request,
    running,
    settle_one,
    submit,
    with_quotas,
)
from lamplighter.port.values import QueueSettings

if TYPE_CHECKING:
    from lamplighter.model.job import Claim
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine


async def test_queues_are_served_in_the_order_asked(engine: Engine) -> None:
    second = await submit(engine, *(new_job(queue="second") for _ in range(3)))
    first = await submit(engine, *(new_job(queue="first") for _ in range(3)))

    assert await handed_out(engine, 2, "first", "second") == first[:2]
    assert await handed_out(engine, 2, "first", "second") == [first[2], second[0]]


async def test_a_queue_goes_before_a_level(engine: Engine) -> None:
    await submit(engine, new_job(queue="second", level=Level.CRITICAL))
    (low,) = await submit(engine, new_job(queue="first", level=Level.LOW))

    assert await handed_out(engine, 1, "first", "second") == [low]


async def test_quotas_are_filled_first_and_then_the_rest_in_order(engine: Engine) -> None:
    for queue in ("a", "b"):
        await submit(engine, *(new_job(queue=queue) for _ in range(10)))

    answer = await engine.jobs.claim(with_quotas(request(limit=8), ("a", 1), ("b", 3)))

    # a and b up to their quotas, then the other four from a.
    assert _queues(answer.claims) == {"a": 5, "b": 3}


async def test_a_quota_no_job_fills_goes_to_the_others(engine: Engine) -> None:
    await submit(engine, new_job(queue="a"), *(new_job(queue="b") for _ in range(10)))

    answer = await engine.jobs.claim(with_quotas(request(limit=8), ("a", 6), ("b", 2)))

    assert _queues(answer.claims) == {"a": 1, "b": 7}


async def test_quotas_beyond_the_limit_do_not_raise_it(engine: Engine) -> None:
    for queue in ("a", "b"):
        await submit(engine, *(new_job(queue=queue) for _ in range(10)))

    answer = await engine.jobs.claim(with_quotas(request(limit=4), ("a", 3), ("b", 3)))

    assert _queues(answer.claims) == {"a": 3, "b": 1}


async def test_inside_a_queue_a_higher_level_goes_first(engine: Engine) -> None:
    jobs = {level: new_job(level=level) for level in Level}
    await submit(engine, *(jobs[level] for level in sorted(Level, reverse=True)))

    assert await handed_out(engine, 10) == [jobs[level].id for level in sorted(Level)]


async def test_a_tenants_jobs_go_in_the_order_they_fall_due(
    engine: Engine, clock: VirtualClock
) -> None:
    delays = [3_000, 1_000, 2_000, 1_000]
    late, first, middle, second = await submit(engine, *(new_job(delay_ms=d) for d in delays))
    clock.advance(seconds=10)
    (now,) = await submit(engine, new_job())

    assert await handed_out(engine, 10) == [first, second, middle, late, now]


async def test_a_job_given_back_is_behind_nobody_who_is_due_later(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    clock.advance(seconds=1)
    (earlier,) = await submit(engine, new_job())
    clock.advance(seconds=1)
    await settle_one(engine, released(taken))
    clock.advance(seconds=1)
    (later,) = await submit(engine, new_job())

    assert await handed_out(engine, 10) == [earlier, taken.job.id, later]


async def test_a_failed_job_does_not_block_those_behind_it(engine: Engine) -> None:
    first, second = await submit(engine, new_job(), new_job())
    (taken,) = await claim(engine)
    assert taken.job.id == first

    await settle_one(engine, failed(taken))

    assert await handed_out(engine, 10) == [second]


async def test_every_tenth_hand_out_goes_to_who_has_waited_longest(
    engine: Engine, clock: VirtualClock
) -> None:
    (low,) = await submit(engine, new_job(level=Level.LOW))
    clock.advance(ms=60_001)
    critical = await submit(engine, *(new_job(level=Level.CRITICAL) for _ in range(30)))

    order = await handed_out(engine, 31)

    assert order == [*critical[:9], low, *critical[9:]]


async def test_waiting_no_longer_than_max_wait_changes_nothing(
    engine: Engine, clock: VirtualClock
) -> None:
    (low,) = await submit(engine, new_job(level=Level.LOW))
    clock.advance(ms=60_000)
    critical = await submit(engine, *(new_job(level=Level.CRITICAL) for _ in range(30)))

    assert await handed_out(engine, 31) == [*critical, low]


async def test_max_wait_is_set_per_queue(engine: Engine, clock: VirtualClock) -> None:
    await engine.settings.put_queue(
        "default", QueueSettings(max_wait_ms=5_000), by="test", reason="impatient"
    )
    (low,) = await submit(engine, new_job(level=Level.LOW))
    clock.advance(ms=5_001)
    critical = await submit(engine, *(new_job(level=Level.CRITICAL) for _ in range(12)))

    assert await handed_out(engine, 13) == [*critical[:9], low, *critical[9:]]


async def test_the_longest_waiting_is_chosen_from_the_asked_types_only(
    engine: Engine, clock: VirtualClock
) -> None:
    await submit(engine, new_job("other", level=Level.LOW))
    clock.advance(ms=60_001)
    critical = await submit(engine, *(new_job(level=Level.CRITICAL) for _ in range(12)))

    assert await handed_out(engine, 12) == critical


async def test_no_tenth_hand_out_is_lost_over_several_claims(
    engine: Engine, clock: VirtualClock
) -> None:
    lows = await submit(engine, *(new_job(level=Level.LOW) for _ in range(5)))
    clock.advance(ms=60_001)
    await submit(engine, *(new_job(level=Level.CRITICAL) for _ in range(60)))

    taken = [one for _ in range(17) for one in await claim(engine, 3)]

    assert [one.handout for one in taken] == list(range(1, 52))
    assert [one.handout for one in taken if one.job.id in lows] == [10, 20, 30, 40, 50]


def _queues(claims: list[Claim]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in claims:
        found[one.job.queue] = found.get(one.job.queue, 0) + 1
    return found
