"""Values that PostgreSQL cannot take are refused as the caller's, whichever verb they came to."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.model.errors import InvalidInput, StoreDamaged
from lamplighter.model.filters import Filter
from lamplighter.model.job import Fence, IdempotencyKey, JobState
from lamplighter.model.lifecycle import Next
from lamplighter.port.conformance.builders import failed, new_id, new_job, running
from lamplighter.port.store import Engine
from lamplighter.port.values import (
    ClaimRequest,
    QueueSettings,
    Renewal,
    Retention,
    SubmitAnswer,
    TenantSettings,
)

BY = {"by": "ada", "reason": "test"}
WIDE, WIDER, WIDEST = 2**31, 2**63, 10**30
NUL, HALF = "a\0b", "a\ud800"

Ask = Callable[[Engine], Awaitable[object]]


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    opened = connect(url)
    await opened.open()
    yield opened
    await opened.close()


def asking(**fields: object) -> ClaimRequest:
    usual = ClaimRequest(
        nonce="0" * 16,
        worker="w",
        queues=(("default", 5),),
        types=("work",),
        limit=5,
        lease_ms=30_000,
    )
    return replace(usual, **fields)


NUMBERS: dict[str, tuple[int, Ask]] = {
    "a claim's limit": (WIDE, lambda e: e.jobs.claim(asking(limit=WIDE))),
    "a claim's quota": (WIDE, lambda e: e.jobs.claim(asking(queues=(("q", WIDE),)))),
    "a claim's lease": (WIDER, lambda e: e.jobs.claim(asking(lease_ms=WIDER))),
    "a cost": (WIDE, lambda e: e.jobs.submit([new_job(cost=WIDE)])),
    "a cost in a batch": (WIDE, lambda e: e.jobs.submit([new_job(), new_job(cost=WIDE)])),
    "an instant": (WIDER, lambda e: e.jobs.submit([new_job(run_at_ms=WIDER)])),
    "an instant long ago": (-(2**70), lambda e: e.jobs.submit([new_job(run_at_ms=-(2**70))])),
    "a delay": (WIDER - 1, lambda e: e.jobs.submit([new_job(delay_ms=WIDER - 1)])),
    "a listing's limit": (WIDE, lambda e: e.inspector.jobs(Filter(), limit=WIDE)),
    "a date": (WIDEST, lambda e: e.inspector.jobs(Filter(finished_after_ms=WIDEST), limit=5)),
    "a date of the dead": (
        WIDER,
        lambda e: e.inspector.dead_groups(Filter(finished_before_ms=WIDER)),
    ),
    "a log's place": (WIDEST, lambda e: e.inspector.logs(new_id(), after=(WIDEST, 1))),
    "a log's limit": (WIDE, lambda e: e.inspector.logs(new_id(), limit=WIDE)),
    "a rescue's limit": (WIDE, lambda e: e.jobs.rescue(WIDE)),
    "a prune's limit": (WIDE, lambda e: e.jobs.prune(Retention(), WIDE)),
    "a retention": (WIDEST, lambda e: e.jobs.prune(Retention(finished_ms=WIDEST), 5)),
    "a longest wait": (
        WIDER,
        lambda e: e.settings.put_queue("q", QueueSettings(max_wait_ms=WIDER), **BY),
    ),
    "a renewal": (WIDEST, lambda e: e.jobs.renew([Renewal(new_id(), Fence(1, "n"))], WIDEST)),
    "a fence": (WIDE, lambda e: e.jobs.renew([Renewal(new_id(), Fence(WIDE, "n"))], 1000)),
    "a beat": (WIDE, lambda e: e.membership.beat("w", WIDE)),
    "a term": (WIDER, lambda e: e.membership.lead("role", "w", WIDER)),
}


@pytest.mark.parametrize("what", NUMBERS)
async def test_a_number_that_is_too_large_is_named(engine: Engine, what: str):
    value, ask = NUMBERS[what]

    with pytest.raises(InvalidInput, match="too large") as refused:
        await ask(engine)

    assert refused.value.value == value
    assert str(value) in refused.value.cause
    assert refused.value.hint


async def test_a_delay_that_ends_beyond_all_time_is_refused_in_a_batch(engine: Engine):
    taken = await running(engine)
    again = Next(state=JobState.WAITING, delay_ms=WIDER - 1)

    with pytest.raises(InvalidInput, match="too large"):
        await engine.jobs.submit([new_job(), new_job(delay_ms=WIDER - 1)])
    with pytest.raises(InvalidInput, match="too large"):
        await engine.jobs.settle([replace(failed(taken), next=again)])


TEXTS: dict[str, Callable[[Engine, str], Awaitable[object]]] = {
    "a tenant": lambda e, text: e.jobs.submit([new_job(tenant=text)]),
    "a tenant in a batch": lambda e, text: e.jobs.submit([new_job(), new_job(tenant=text)]),
    "a queue": lambda e, text: e.jobs.submit([new_job(queue=text)]),
    "a key": lambda e, text: e.jobs.submit([new_job(key=IdempotencyKey(key=text, body="b"))]),
    "a schedule": lambda e, text: e.jobs.submit([replace(new_job(), schedule=text)]),
    "a nonce": lambda e, text: e.jobs.claim(asking(nonce=text)),
    "a type": lambda e, text: e.jobs.claim(asking(types=("work", text))),
    "a fence": lambda e, text: e.jobs.renew([Renewal(new_id(), Fence(1, text))], 1000),
    "a held tenant": lambda e, text: e.settings.put_tenant(text, TenantSettings(held=True), **BY),
    "a worker": lambda e, text: e.membership.beat(text, 1),
}


@pytest.mark.parametrize("text", [NUL, HALF], ids=["NUL", "half of a character"])
@pytest.mark.parametrize("what", TEXTS)
async def test_a_text_that_cannot_be_kept_is_named(
    engine: Engine, admin: psycopg.Connection, what: str, text: str
):
    with pytest.raises(InvalidInput, match="cannot keep") as refused:
        await TEXTS[what](engine, text)

    assert text in str(refused.value.value)
    str(refused.value).encode()  # what is shown can be shown
    assert refused.value.hint


@pytest.mark.parametrize("bad", ["", "x" * 26, "0" * 25, "é" * 26])
async def test_what_is_no_job_id_is_not_stored(engine: Engine, bad: str):
    for jobs in ([new_job(id=bad)], [new_job(), new_job(id=bad)]):
        with pytest.raises(InvalidInput, match="job") as refused:
            await engine.jobs.submit(jobs)
        assert "26 characters" in refused.value.hint
    assert await engine.inspector.queues() == []


async def test_a_refused_value_costs_no_connection(engine: Engine, admin: psycopg.Connection):
    await engine.jobs.rescue(1)
    before = connections(admin)
    for text in (NUL, HALF):
        with pytest.raises(InvalidInput):
            await engine.jobs.claim(asking(nonce=text))

    assert (await engine.jobs.submit([new_job()]))[0].answer is SubmitAnswer.CREATED
    assert connections(admin) == before


def connections(admin: psycopg.Connection) -> set[int]:
    rows = admin.execute(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
    ).fetchall()
    return {pid for (pid,) in rows}


async def test_a_function_that_is_gone_is_not_the_callers_fault(
    engine: Engine, admin: psycopg.Connection, url: str
):
    schema = url.partition("schema=")[2].partition("&")[0]
    admin.execute(f"DROP FUNCTION {schema}.rescue")

    with pytest.raises(StoreDamaged, match="rescue"):
        await engine.jobs.rescue(5)
