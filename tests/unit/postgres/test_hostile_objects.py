"""Somebody who may create things in `public` cannot get us to run them."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.model.errors import StoreForbidden
from lamplighter.model.filters import Filter
from lamplighter.model.job import NewJob
from lamplighter.port.access import About, NewToken, entries_of
from lamplighter.port.conformance.builders import completed, failed, key, new_job, recording
from lamplighter.port.schedules import (
    Backfill,
    Firing,
    NewSchedule,
    Overlap,
    Run,
    RunKind,
    ScheduleFilter,
    Skip,
)
from lamplighter.port.store import Engine
from lamplighter.port.values import (
    ClaimRequest,
    NewWorker,
    QueueSettings,
    Renewal,
    Retention,
    TenantSettings,
    TypeSettings,
)
from tests.servers.stores import with_parts

DATABASE = "with_a_stranger"
STRANGER, OWNER, RUNNER = "stranger_in_public", "owner_beside_stranger", "runner_beside_stranger"
BY = {"by": "ada", "reason": "test"}

# Each fits a call of ours better than PostgreSQL's own, as long as that is written without care.
TRAPS = {
    "has_database_privilege": ("(name, text)", "boolean", "true"),
    "unnest": ("(text[])", "SETOF text", None),
    "nextval": ("(text)", "bigint", "1"),
    "jsonb_build_object": ("(text, bigint)", "jsonb", "'{}'"),
    "times": ("(numeric, integer)", "numeric", "$1"),
    "same": ("(oid, regnamespace)", "boolean", "true"),
}
OPERATORS = (
    "CREATE OPERATOR public.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = public.times)",
    "CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regnamespace, FUNCTION = public.same)",
)
CARELESS = (
    "SELECT has_database_privilege(current_database(), 'CREATE')",
    "SELECT * FROM unnest('{a}'::text[])",
    "SELECT nextval('anything'::text)",
    "SELECT jsonb_build_object('at', 1::bigint)",
    "SELECT extract(epoch FROM now()) * 1000",
    "SELECT 1::oid = 'public'::regnamespace",
)


@pytest.fixture
def store(url: str, admin: psycopg.Connection) -> Iterator[str]:
    """A store in a database where a stranger may create what he likes, and has set traps."""
    admin.execute(f"CREATE DATABASE {DATABASE}")
    place = with_parts(url, DATABASE)
    inside = place.partition("?")[0]
    with psycopg.connect(inside, autocommit=True) as made:
        for role in (STRANGER, OWNER, RUNNER):
            made.execute(f"CREATE ROLE {role} LOGIN")
        made.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
        made.execute(f"CREATE SCHEMA mine AUTHORIZATION {OWNER}")
    with psycopg.connect(inside.replace("postgres@", f"{STRANGER}@"), autocommit=True) as stranger:
        set_traps(stranger)
    yield with_parts(place, schema="mine")
    admin.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
    for role in (STRANGER, OWNER, RUNNER):
        admin.execute(f"DROP ROLE {role}")


def set_traps(stranger: psycopg.Connection) -> None:
    for name, (parameters, gives, answer) in TRAPS.items():
        # What a sequence counts is not taken back with a transaction.
        stranger.execute(f"CREATE SEQUENCE public.calls_of_{name}")
        stranger.execute(f"GRANT ALL ON SEQUENCE public.calls_of_{name} TO PUBLIC")
        end = "RETURN NEXT 'x'" if answer is None else f"RETURN {answer}"
        stranger.execute(
            f"CREATE FUNCTION public.{name}{parameters} RETURNS {gives} LANGUAGE plpgsql AS $$ "
            f"BEGIN PERFORM pg_catalog.nextval('public.calls_of_{name}'::regclass); {end}; END $$"
        )
    for operator in OPERATORS:
        stranger.execute(operator)


def caught(store: str) -> list[str]:
    with psycopg.connect(store.partition("?")[0], autocommit=True) as admin:
        return [
            name
            for name in TRAPS
            if admin.execute(f"SELECT is_called FROM public.calls_of_{name}").fetchone() == (True,)
        ]


def as_user(store: str, user: str) -> str:
    return store.replace("postgres@", f"{user}@")


async def test_careless_statements_fall_into_each_of_the_traps(store: str):
    with psycopg.connect(as_user(store, RUNNER).partition("?")[0], autocommit=True) as careless:
        for statement in CARELESS:
            careless.execute(statement)

    assert caught(store) == list(TRAPS)


async def test_no_call_runs_what_a_stranger_has_put_into_public(store: str):
    owner, root = connect(as_user(store, OWNER)), connect(store)
    await owner.migrate()
    await owner.grant(run=[RUNNER])
    await owner.open()
    await tokens(owner)
    await owner.close()
    running = connect(as_user(store, RUNNER))
    await running.open()
    await do_everything(running)
    await running.close()
    await running.check_up()

    with psycopg.connect(store.partition("?")[0], autocommit=True) as admin:
        admin.execute("UPDATE mine.meta SET value = 1 WHERE name = 'functions'")
    with pytest.raises(StoreForbidden, match=OWNER):
        await root.migrate()
    await root.check_up()
    await root.grant(run=[RUNNER])
    await owner.migrate()

    assert caught(store) == []


async def do_everything(engine: Engine) -> None:
    """Call every verb at least once, on jobs in every state."""
    jobs, ids = engine.jobs, [job.id for job in await work(engine)]
    for verb in (jobs.hold, jobs.unhold, jobs.retry, jobs.cancel, jobs.replay, jobs.purge):
        await verb(ids, **BY)
    await jobs.rescue(10)
    await jobs.claims_of("w")
    await jobs.prune(Retention(), 10)
    worker = NewWorker(id="w", host="h", pid=1, queues=("default",), slots=1)
    await engine.membership.join(worker)
    await engine.membership.beat("w", 1)
    await engine.membership.lead("prune", "w", 1000)
    await engine.settings.put_queue("default", QueueSettings(held=True, max_wait_ms=5), **BY)
    await engine.settings.put_tenant("default", TenantSettings(held=True, weight=2), **BY)
    await engine.settings.put_type("work", TypeSettings(held=True), **BY)
    await look(engine, ids)
    await schedules(engine)
    await access(engine)
    await engine.membership.leave("w")
    await engine.wakeup.wait(["a topic"], 0.05)  # opens an ear
    await engine.wakeup.notify("a topic")


async def tokens(engine: Engine) -> None:
    """Make tokens, which only the owner may."""
    token = NewToken(prefix="p", digest="d", name="n", scopes=("admin",), lifetime_ms=1)
    for _ in range(2):
        await engine.access.put_token(token, by="ada")


async def access(engine: Engine) -> None:
    """Call every other verb of tokens and of the audit log."""
    store = engine.access
    for _ in range(2):
        await store.revoke_token("p", **BY)
    await store.token("p")
    await store.tokens(limit=5)
    await store.note_audit(entries_of([About("o", "t"), About("o")], action="a", **BY))
    await store.audit(limit=5)
    await store.audit(tenant="t", limit=5)
    await store.spend("c", "h", 1)
    await store.spent("c")
    await store.prune_access(0, 5)


async def schedules(engine: Engine) -> None:
    """Call every verb of schedules, with runs of every fate."""
    store = engine.schedules
    wanted = NewSchedule(id="s", spec="{}", tenant="default", type="work", due_ms=1)
    await store.put_schedules([wanted, replace(wanted, spec="other")], by="ada")
    await store.put_schedules([replace(wanted, expect_version=1)], by="ada")
    await store.backfill("s", Backfill(from_ms=1, to_ms=2, cursor_ms=1, limit=5), **BY)
    for newest_first in (False, True):
        found = await store.due_schedules(limit=5, lease_ms=0, newest_first=newest_first)
        known = found.schedules[0].record
        now = found.now_ms
        runs = [Run(due_ms=now + n, job=new_job(), overlap=one) for n, one in enumerate(Overlap)]
        plan = Firing(
            tenant="default",
            id="s",
            version=known.version,
            cursor_ms=known.cursor_ms,
            next_cursor_ms=now + len(runs),
            due_ms=1,
            runs=(*runs, replace(runs[-1], due_ms=now + len(runs), job=new_job())),
            skips=(Skip(due_ms=now - 1, first_ms=known.cursor_ms, reason="late"),),
            backfill=known.backfill,
            hold="enough",
            keep=(0, 0),
        )
        await store.fire([plan])
        await store.unhold_schedules(["s"], **BY)
    wish = Run(due_ms=1, job=new_job(), kind=RunKind.TRIGGER, overlap=Overlap.CANCEL_RUNNING)
    await store.trigger("s", wish, **BY)
    await store.hold_schedules(["s"], **BY)
    await store.schedule("s")
    await store.schedules(ScheduleFilter(prefix="s", tenants=("default",)), limit=5)
    await store.runs("s", limit=5)
    await store.delete_schedules(["s"], **BY)


async def work(engine: Engine) -> list[NewJob]:
    """Submit one by one and many, claim, renew, record, and settle some; gives all."""
    jobs = engine.jobs
    given = [new_job(), new_job(held=True), new_job(key=key()), new_job(delay_ms=5), new_job()]
    for job in given[:3]:
        await jobs.submit([job])
        await asyncio.sleep(0.02)  # the word of each goes with it
    await jobs.submit(given[2:])
    asked = ClaimRequest(
        nonce="0" * 16,
        worker="w",
        queues=(("default", 5),),
        types=("work",),
        limit=3,
        lease_ms=30_000,
    )
    claims = (await jobs.claim(asked)).claims
    await jobs.renew([Renewal(one.job.id, one.fence) for one in claims], 1000)
    await jobs.record([recording(claims[0])])
    await jobs.settle([completed(claims[0]), failed(claims[1])])
    return given


async def look(engine: Engine, ids: list[str]) -> None:
    inspector = engine.inspector
    for job_id in ids:
        await inspector.job(job_id)
        await inspector.explain(job_id)
        await inspector.attempts(job_id)
        await inspector.logs(job_id)
    await inspector.jobs(Filter(tag="x"), limit=5)
    await inspector.jobs(Filter(statuses=("dead",)), limit=5)
    await inspector.dead_groups(Filter())
    await inspector.counts()
    await inspector.queues()
    await inspector.queue("default")
    await inspector.tenants()
    await inspector.tenant("default")
    await inspector.types()
    await inspector.workers()
