"""A store holds what docs/internals/keyspace.md says, and its indexes agree with its records."""

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from lamplighter.engines.redis.audit import audit
from lamplighter.engines.redis.keys import EXPIRING, KINDS
from lamplighter.model.activity import Tally
from lamplighter.model.filters import Filter
from lamplighter.model.job import Level
from lamplighter.model.journal import Journal, Progress
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import AbandonCause, Abandoned
from lamplighter.model.retry import Retry
from lamplighter.port.access import About, NewToken, entries_of
from lamplighter.port.conformance.builders import (
    claim,
    completed,
    failed,
    key,
    pieces,
    released,
    submit,
)
from lamplighter.port.conformance.schedule_builders import (
    at,
    backfill_of,
    fire,
    new_schedule,
    put,
    run_at,
    skip_of,
    wanted_run,
)
from lamplighter.port.schedules import Overlap, RunKind, ScheduleFilter
from lamplighter.port.values import (
    NewWorker,
    QueueSettings,
    Recording,
    Retention,
    TenantSettings,
    TypeInfo,
    TypeSettings,
)
from tests.unit.redis.stores import Store, opened

DOCUMENT = Path(__file__).parents[3] / "docs/internals/keyspace.md"
ROW = re.compile(r"^\| `([a-z_]+)[^`]*` \| (\w+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
BY = {"by": "test", "reason": "for the test"}
DAY_MS = 86_400_000
SAID = Journal(progress=Progress(done=1), pieces=pieces("one", "two"))
NOTHING_KEPT = Retention(finished_ms=0, finished_count=0, dead_ms=0, key_ms=0)


def documented() -> dict[str, tuple[str, str]]:
    """Type and end of each key, by the word it begins with."""
    rows = ROW.findall(DOCUMENT.read_text(encoding="utf-8"))
    return {name: (kind, goes) for name, kind, _, _, goes in rows}


@pytest.fixture(params=[1, 3])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store of one shard, and one of several."""
    async with opened(tmp_path, request.param) as store:
        yield store


@pytest.fixture
async def one_shard(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path, 1) as store:
        yield store


async def live(store: Store):
    """A varied life: jobs in every state there is, and all that belongs to them."""
    engine, clock = store.engine, store.clock
    work = TypeInfo(name="work", schema="{}", hash="h", queue="default")
    await engine.membership.join(
        NewWorker(id="host-1:a b", host="host", pid=1, queues=("default",), slots=5, types=(work,))
    )
    await engine.membership.lead("prune", "host-1", 10_000)
    await engine.activity.tally("host-1:a b", 1, Tally(started=1))
    token = NewToken(prefix="a", digest="d", name="shop", scopes=("admin",), lifetime_ms=10_000)
    await engine.access.put_token(token, by="test")
    await engine.access.revoke_token("a", **BY)
    await engine.access.spend("c", "h", 10_000)
    await engine.settings.enter_queues(["q 7"], tenant="a b", most=5)
    entries = entries_of([About("q 2"), About("j", "a b")], action="done", **BY)
    await engine.access.note_audit(entries)
    await engine.settings.put_queue("q 2", QueueSettings(max_wait_ms=5_000), **BY)
    await engine.settings.put_tenant("blue", TenantSettings(weight=3), **BY)
    await engine.settings.put_type("mail", TypeSettings(held=True), **BY)
    jobs = [store.new_job(tenant=f"tenant {n % 5}", level=Level(n % 4)) for n in range(60)]
    jobs += [store.new_job(tenant="blue", key=key(f"key {n}")) for n in range(6)]
    jobs += [store.new_job("mail", queue="q 2", tenant="naïve") for _ in range(6)]
    jobs += [store.new_job(held=True), store.new_job(delay_ms=60_000)]
    ids = await submit(engine, *jobs)
    clock.advance(seconds=1)
    first = await claim(engine, 40, worker="host-1")
    assert len(first) == 40
    await engine.jobs.record([Recording(one.job.id, one.fence, SAID) for one in first[:12]])
    await engine.jobs.cancel([first[0].job.id, first[20].job.id], **BY)
    await engine.jobs.hold([first[1].job.id, first[21].job.id, ids[-1]], **BY)
    await engine.jobs.settle([completed(one, b"1") for one in first[:8]])
    await engine.jobs.settle([failed(one) for one in first[8:14]])
    await engine.jobs.settle([failed(one, retry=Retry(max_attempts=1)) for one in first[14:20]])
    await engine.jobs.settle([released(one) for one in first[20:24]])
    shared = Abandoned(AbandonCause.CHILD_DIED)
    await engine.jobs.settle([settle(one, shared) for one in first[24:28]])
    left = {one.job.id for one in first}
    waiting = [job.id for job in jobs if job.id not in left]
    await engine.jobs.cancel(waiting[:5], **BY)
    await engine.jobs.hold(waiting[4:8], **BY)
    await engine.jobs.unhold([waiting[6], ids[-2]], **BY)
    await engine.jobs.retry([ids[-1], first[9].job.id, first[14].job.id], **BY)
    await engine.jobs.replay([first[2].job.id, first[15].job.id, waiting[0]], **BY)
    await engine.jobs.purge([first[3].job.id, first[16].job.id, waiting[1]], **BY)
    await engine.settings.put_tenant("tenant 1", TenantSettings(held=True), **BY)


async def live_by_the_calendar(store: Store):
    """Schedules of all kinds, with runs of every class."""
    engine, clock = store.engine, store.clock
    names = [f"täglich {n}:%" for n in range(8)]
    await put(engine, *(new_schedule(name, due_ms=at(n - 4)) for n, name in enumerate(names)))
    await engine.schedules.due_schedules(limit=3, lease_ms=10_000)
    for name in names[:6]:
        runs = [
            run_at(at(n), Overlap.QUEUE_ALL, schedule=name, run_at_ms=at(0)) for n in range(1, 5)
        ]
        await fire(engine, *runs, schedule=name, skips=[skip_of(at(-3), at(-1), count=3)])
    taken = await claim(engine, 100)
    mine = [one for one in taken if one.job.schedule is not None]
    others = [one for one in taken if one.job.schedule is None]
    assert len(mine) >= 6
    await engine.jobs.settle([released(one) for one in others])
    await engine.jobs.settle([completed(one) for one in mine[:3]])
    await engine.jobs.settle([failed(one, retry=Retry(max_attempts=1)) for one in mine[3:5]])
    await engine.jobs.replay([mine[0].job.id, mine[3].job.id], **BY)
    for name in names[:6]:
        again = run_at(at(9), Overlap.CANCEL_RUNNING, schedule=name, run_at_ms=at(0))
        await fire(engine, *([again] if name in names[:2] else []), schedule=name, keep=(0, 2))
    await engine.schedules.trigger(names[6], wanted_run(schedule=names[6]), **BY)
    await engine.schedules.backfill(names[7], backfill_of(at(-9), at(-1)), **BY)
    past = run_at(at(-8), kind=RunKind.BACKFILL, schedule=names[7], run_at_ms=at(0))
    await fire(engine, past, schedule=names[7], due_ms=clock.now_ms())
    await engine.schedules.hold_schedules(names[4:6], **BY)
    await engine.schedules.unhold_schedules(names[5:6], **BY)
    await engine.schedules.delete_schedules(names[1:2], **BY)


async def wind_up(store: Store):
    """Let every job end, and keep nothing of it."""
    engine, clock = store.engine, store.clock
    page = await engine.schedules.schedules(ScheduleFilter(), limit=100)
    if page.schedules:
        await engine.schedules.delete_schedules([one.id for one in page.schedules], **BY)
    await engine.settings.put_tenant("tenant 1", TenantSettings(held=False), **BY)
    await engine.settings.put_type("mail", TypeSettings(held=False), **BY)
    clock.advance(seconds=60)
    while expired := await engine.jobs.rescue(100):
        await engine.jobs.settle([completed(one.claim) for one in expired])
    held = await engine.inspector.jobs(Filter(statuses=("paused",)), limit=500)
    await engine.jobs.unhold([record.job.id for record in held.jobs], **BY)
    clock.advance(seconds=120)
    while taken := await claim(engine, 50, "default", "q 2", types=("work", "mail")):
        await engine.jobs.settle([completed(one) for one in taken])
    await engine.membership.leave("host-1:a b")
    clock.advance(ms=8 * DAY_MS)
    assert await engine.jobs.rescue(100) == []
    while (await engine.jobs.prune(NOTHING_KEPT, 100)).more:
        pass
    assert await engine.access.prune_access(DAY_MS, 100) == 4
    await engine.settings.remove_queue("q 7", **BY)


def test_the_document_and_the_program_know_the_same_keys() -> None:
    assert {name: kind for name, (kind, _) in documented().items()} == KINDS
    expiring = {name for name, (_, goes) in documented().items() if "expires" in goes}
    assert expiring == EXPIRING


async def test_a_varied_life_leaves_no_key_that_the_document_does_not_name(store: Store):
    await live(store)
    await live_by_the_calendar(store)

    found = store.keys()

    assert found.keys() <= documented().keys()
    # The life was varied: all but news, and where retention goes on.
    idle = {"told", "news", "profiles", "knows", "waiters", "wake", "oldest_page", "prune"}
    assert found.keys() >= documented().keys() - idle
    for name, keys in found.items():
        for one in keys:
            assert store.client.type(one).decode() == documented()[name][0], one
            assert (store.client.pttl(one) >= 0) == (name in EXPIRING), one


async def test_after_a_varied_life_the_indexes_agree_with_the_records(store: Store):
    await live(store)
    await live_by_the_calendar(store)

    assert await store.faults() == ()
    assert (await audit(store.call)).jobs == sum((await store.engine.inspector.counts()).values())


async def test_when_all_jobs_are_gone_only_what_is_said_to_stay_is_left(store: Store):
    await live(store)
    await live_by_the_calendar(store)
    await wind_up(store)

    left = store.keys().keys()
    stays = {name for name, (_, goes) in documented().items() if goes.startswith("stays")}

    # The last page takes new jobs, and virtual times go when the clock passes them.
    assert left - stays <= {"page", "gone", "share"}
    assert sum((await store.engine.inspector.counts()).values()) == 0
    assert await store.faults() == ()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda p, _: ("ZREM", p + "line:1", "default"), "indexed"),
        (lambda p, _: ("DEL", p + "turn:1:default"), "waits, but is not in"),
        (lambda p, _: ("HINCRBY", p + "waits", "default", "1"), "but 3 are counted"),
        (lambda p, _: ("DEL", p + "waits"), "but 0 are counted"),
        (lambda p, _: ("HSET", p + "waits", "nobody", "1"), "0 jobs of tenant nobody"),
        (lambda p, _: ("DEL", p + "heads:1"), "heads has nothing"),
        (lambda p, _: ("DEL", p + "active:default"), "does not know"),
        (lambda p, id_: ("HDEL", p + "run", id_), "recorded as `leases`"),
        (lambda p, _: ("DEL", p + "lease:30000"), "runs, but is not in lease:30000"),
        (lambda p, _: ("DEL", p + "spans"), "spans does not have it"),
        (lambda p, _: ("DEL", p + "ended:succeeded"), "has ended, but is not in"),
        (lambda p, _: ("HSET", p + "hold", "0" * 26, "{}"), "recorded as `hold`"),
        (lambda p, _: ("DEL", p + "page:0"), "recorded as `jobs`"),
        (lambda p, _: ("INCR", p + "removed"), "recorded as `jobs`"),
    ],
)
async def test_the_audit_finds_damage(
    one_shard: Store, damage: Callable[[str, str], tuple[str, ...]], words: str
) -> None:
    store = one_shard
    await submit(store.engine, *(store.new_job() for _ in range(4)))
    first, second = await claim(store.engine, 2)
    await store.engine.jobs.settle([completed(first)])
    assert await store.faults() == ()

    store.client.execute_command(*damage(store.key(""), second.job.id))

    assert any(words in fault for fault in await store.faults()), await store.faults()


FIRST = "default\x01first"
"""The name of the schedule `first`."""


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda p, _: ("DEL", p + "schedules"), "but is not in schedules"),
        (lambda p, _: ("ZREM", p + "schedules", FIRST), "schedule default/first is due at"),
        (
            lambda p, _: ("ZADD", p + "schedules", "5", "default\x01held"),
            "is held, but stands in schedules",
        ),
        (lambda p, _: ("ZADD", p + "schedules", "5", "nobody"), "2 `looks` of schedules"),
        (
            lambda p, _: ("DEL", p + "schedule:default%01first"),
            "is in schedule_names, but nowhere else",
        ),
        (lambda p, _: ("HDEL", p + "specs", FIRST), "schedule default/first has nothing in specs"),
        (lambda p, _: ("ZREM", p + "schedule_names", FIRST), "2 `specs` of schedules were found"),
        (lambda p, id_: ("DEL", p + "job:" + id_), "has a run that is started, but its job"),
    ],
)
async def test_the_audit_finds_damage_to_schedules(
    one_shard: Store, damage: Callable[[str, str], tuple[str, ...]], words: str
) -> None:
    store = one_shard
    await put(store.engine, *(new_schedule(name) for name in ("first", "second", "held")))
    await store.engine.schedules.hold_schedules(["held"], **BY)
    run = run_at(at(1), schedule="second")
    await fire(store.engine, run, schedule="second", due_ms=at(2))
    assert await store.faults() == ()

    store.client.execute_command(*damage(store.key(""), run.job.id))

    assert any(words in fault for fault in await store.faults()), await store.faults()
