"""Three kinds of users: the owner migrates, some run jobs, some only look."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.engines.postgres import functions, installer, statements
from lamplighter.model.activity import Tally
from lamplighter.model.errors import InvalidOption, StoreBusy, StoreForbidden, StoreUnreachable
from lamplighter.model.filters import Filter
from lamplighter.port.access import About, NewToken, entries_of
from lamplighter.port.conformance.builders import completed, failed, new_job, recording
from lamplighter.port.conformance.clock import VirtualClock
from lamplighter.port.conformance.plugin import (
    clock,
    connector,
    engine,
    engine_factory,
    fresh_engine,
    open_engine,
    store_url,
)
from lamplighter.port.schedules import (
    Backfill,
    Firing,
    NewSchedule,
    Run,
    RunKind,
    ScheduleFilter,
)
from lamplighter.port.values import (
    ClaimRequest,
    NewWorker,
    QueueSettings,
    Renewal,
    Retention,
    TenantSettings,
    TypeSettings,
)
from tests.unit.postgres.users import Users, admin, make_users, users

__all__ = [
    "admin",
    "clock",
    "connector",
    "engine",
    "engine_factory",
    "fresh_engine",
    "make_users",
    "open_engine",
    "store_url",
    "users",
]

BY = {"by": "ada", "reason": "test"}
CHANGES = {"cancel", "hold", "unhold", "retry", "replay", "purge"}
"""Verbs for people that are one function."""
NEWEST = statements.layouts().newest


# ── the contract, kept by a user who owns nothing ────────────────────────────────────────────


@pytest.fixture
def fresh_store(make_users: Callable[[], Users], clock: VirtualClock) -> Callable[[], str]:
    """Stores made by their owner, reached as the user who runs jobs."""

    def fresh() -> str:
        users = make_users()
        asyncio.run(users.install(clock.now_ms))
        return users.url(users.run)

    return fresh


for _module in (
    "prune", "purge", "replay", "cancel", "hold", "record", "settings", "membership",
    "activity", "audit",
    "put_schedules", "hold_schedules", "backfill",
):  # fmt: skip
    _found = vars(import_module(f"lamplighter.port.conformance.{_module}"))
    globals().update({name: one for name, one in _found.items() if name.startswith("test_")})
# For the owner alone: see test_guarded.py.
del globals()["test_old_entries_are_removed_oldest_first_and_as_many_as_asked"]
del globals()["test_more_entries_than_a_step_takes_are_removed_in_one_call"]


async def test_who_runs_jobs_makes_and_drops_nothing(users: Users):
    await users.install()
    engine = connect(users.url(users.run))
    await engine.open()
    await engine.jobs.prune(Retention(), 10)
    await engine.close()

    with psycopg.connect(users.url(users.run).partition("?")[0], autocommit=True) as connection:
        connection.execute("SELECT set_config('search_path', %s, false)", (users.schema,))
        made = connection.execute("SELECT count(*) FROM days()").fetchone()
        assert made == (4,)
        for attempt in (
            "CREATE TABLE mine (n integer)",
            "DROP TABLE job",
            "TRUNCATE job",
            "ALTER TABLE job ADD COLUMN n integer",
            "CREATE FUNCTION mine() RETURNS integer LANGUAGE sql RETURN 1",
            "CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql RETURN 1",
            "DROP FUNCTION drop_day",
            f"DROP SCHEMA {users.schema} CASCADE",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(attempt)


# ── a user who only looks ────────────────────────────────────────────────────────────────────


def asking() -> ClaimRequest:
    return ClaimRequest(
        nonce="0" * 16,
        worker="w",
        queues=(("default", 5),),
        types=("work",),
        limit=5,
        lease_ms=30_000,
    )


async def test_who_looks_sees_everything_and_can_change_nothing(users: Users):
    await users.install()
    running, reading = (connect(users.url(user)) for user in (users.run, users.read))
    await running.open()
    await reading.open()
    jobs = [new_job(), new_job(), new_job()]
    await running.jobs.submit(jobs)
    first, second, third = (await running.jobs.claim(asking())).claims
    await running.jobs.settle([completed(first), failed(second)])

    look = reading.inspector
    for one in jobs:
        assert await look.job(one.id)
        assert await look.explain(one.id)
    assert len((await look.jobs(Filter(), limit=10)).jobs) == 3
    assert sum((await look.counts()).values()) == 3
    assert [queue.name for queue in await look.queues()] == ["default"]
    await look.tenants()
    await look.types()
    await look.workers()
    await look.dead_groups(Filter())
    await look.logs(jobs[0].id)
    assert await look.attempts(third.job.id)
    schedule = NewSchedule(id="s", spec="{}", tenant="default", type="work", due_ms=1)
    await running.schedules.put_schedules([schedule], by="ada")
    wish = Run(due_ms=1, job=new_job(schedule="s"), kind=RunKind.TRIGGER)
    await running.schedules.trigger("s", wish, **BY)
    seen = reading.schedules
    assert await seen.schedule("s")
    assert len((await seen.schedules(ScheduleFilter(), limit=5)).schedules) == 1
    assert len((await seen.runs("s", limit=5)).runs) == 1

    token = NewToken(prefix="p", digest="d", name="n", scopes=())
    await _put_token(users, token)
    entries = entries_of([About("o", "t")], by="ada", action="a", reason="")
    await running.access.note_audit(entries)
    assert await reading.access.token("p")
    assert len((await reading.access.tokens(limit=5)).tokens) == 1
    assert len((await reading.access.audit(limit=5)).records) == 1
    assert len((await reading.access.audit(tenant="t", limit=5)).records) == 1

    ids = [jobs[0].id]
    worker = NewWorker(id="w", host="h", pid=1, queues=("default",), slots=1)
    plan = Firing(tenant="default", id="s", version=1, cursor_ms=1, next_cursor_ms=2, due_ms=None)
    past = Backfill(from_ms=1, to_ms=2, cursor_ms=1, limit=1)
    writes: dict[str, Callable[[], Awaitable[object]]] = {
        "submit": lambda: reading.jobs.submit([new_job()]),
        "claim": lambda: reading.jobs.claim(asking()),
        "renew": lambda: reading.jobs.renew([Renewal(third.job.id, third.fence)], 1000),
        "settle": lambda: reading.jobs.settle([completed(third)]),
        "record": lambda: reading.jobs.record([recording(third)]),
        "cancel": lambda: reading.jobs.cancel(ids, **BY),
        "hold": lambda: reading.jobs.hold(ids, **BY),
        "unhold": lambda: reading.jobs.unhold(ids, **BY),
        "retry": lambda: reading.jobs.retry(ids, **BY),
        "replay": lambda: reading.jobs.replay(ids, **BY),
        "purge": lambda: reading.jobs.purge(ids, **BY),
        "prune": lambda: reading.jobs.prune(Retention(), 10),
        "join": lambda: reading.membership.join(worker),
        "beat": lambda: reading.membership.beat("w", 0),
        "leave": lambda: reading.membership.leave("w"),
        "lead": lambda: reading.membership.lead("prune", "w", 1000),
        "tally": lambda: reading.activity.tally("w", 1, Tally(started=1)),
        "put_queue": lambda: reading.settings.put_queue("q", QueueSettings(held=True), **BY),
        "enter_queues": lambda: reading.settings.enter_queues(["q"], tenant="t", most=1),
        "remove_queue": lambda: reading.settings.remove_queue("q", **BY),
        "put_tenant": lambda: reading.settings.put_tenant("t", TenantSettings(held=True), **BY),
        "put_type": lambda: reading.settings.put_type("t", TypeSettings(held=True), **BY),
        "put_token": lambda: reading.access.put_token(token, by="ada"),
        "revoke_token": lambda: reading.access.revoke_token("p", **BY),
        "note_audit": lambda: reading.access.note_audit(entries),
        "prune_access": lambda: reading.access.prune_access(1, 1),
        "spend": lambda: reading.access.spend("c", "h", 1_000),
        "put_schedules": lambda: seen.put_schedules([schedule], by="ada"),
        "due_schedules": lambda: seen.due_schedules(limit=5, lease_ms=1000),
        "fire": lambda: seen.fire([plan]),
        "trigger": lambda: seen.trigger("s", wish, **BY),
        "backfill": lambda: seen.backfill("s", past, **BY),
        "hold_schedules": lambda: seen.hold_schedules(["s"], **BY),
        "unhold_schedules": lambda: seen.unhold_schedules(["s"], **BY),
        "delete_schedules": lambda: seen.delete_schedules(["s"], **BY),
    }
    for verb, write in writes.items():
        with pytest.raises(StoreForbidden) as refused:
            await write()
        assert f"`{users.read}`" in refused.value.cause
        function = "change" if verb in CHANGES else verb
        assert re.search(rf"(function|procedure) {function}", refused.value.cause)
        assert f"--grant-run {users.read}" in refused.value.hint
    await running.close()
    await reading.close()


# ── rights last ──────────────────────────────────────────────────────────────────────────────


async def _put_token(users: Users, token: NewToken) -> None:
    owning = connect(users.url(users.owner))
    await owning.open()
    await owning.access.put_token(token, by="ada")
    await owning.close()


async def _works(users: Users) -> None:
    for user in (users.run, users.read):
        engine = connect(users.url(user))
        await engine.open()
        if user == users.run:
            await engine.jobs.submit([new_job()])
        await engine.inspector.jobs(Filter(), limit=1)
        await engine.close()


async def test_rights_outlive_functions_that_are_made_anew(users: Users, admin: psycopg.Connection):
    await users.install()
    admin.execute("UPDATE meta SET value = 1 WHERE name = 'functions'")
    admin.execute("DROP FUNCTION beat")
    admin.execute(
        "CREATE FUNCTION beat(id_ text, running_ integer) RETURNS text LANGUAGE sql RETURN 1"
    )
    admin.execute(f"ALTER FUNCTION beat OWNER TO {users.owner}")

    await connect(users.url(users.owner)).migrate()

    await _works(users)


async def test_rights_are_given_on_what_a_migration_makes(
    users: Users, admin: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    await users.install()
    admin.execute("CREATE ROLE stranger; GRANT SELECT ON job TO stranger")
    steps = (*statements.migrations(), "CREATE TABLE later (n integer)")
    monkeypatch.setattr(statements, "migrations", lambda: steps)
    try:
        await connect(users.url(users.owner)).migrate()

        rights = admin.execute(
            "SELECT has_table_privilege(%s, 'later', 'INSERT'), "
            "has_table_privilege(%s, 'later', 'SELECT'), "
            "has_table_privilege(%s, 'later', 'INSERT'), "
            "has_table_privilege('stranger', 'later', 'SELECT')",
            (users.run, users.read, users.read),
        ).fetchone()
        assert rights == (True, True, False, False)
    finally:
        admin.execute("DROP OWNED BY stranger; DROP ROLE stranger")


async def test_everybody_else_may_call_nothing(users: Users, admin: psycopg.Connection):
    await users.install()

    row = admin.execute(
        "SELECT count(*) FROM pg_proc AS p, "
        "aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a "
        "WHERE p.pronamespace = current_schema()::regnamespace AND a.grantee = 0"
    ).fetchone()

    assert row == (0,)


async def test_a_user_who_does_not_exist_is_refused(users: Users):
    await users.install()

    with pytest.raises(InvalidOption, match="`nobody_at_all`"):
        await connect(users.url(users.owner)).grant(run=["nobody_at_all"])


async def test_no_store_is_made_when_a_user_does_not_exist(users: Users, admin: psycopg.Connection):
    with pytest.raises(InvalidOption, match="`Nobody at all`") as refused:
        await connect(users.url(users.owner)).migrate(run=[users.run], read=["Nobody at all"])

    # As it has to be typed: without the quotes it would be another user.
    assert 'CREATE ROLE "Nobody at all"' in refused.value.hint
    row = admin.execute(
        "SELECT count(*) FROM pg_class WHERE relnamespace = %s::regnamespace", (users.schema,)
    ).fetchone()
    assert row == (0,)


async def test_a_store_is_made_and_rights_are_given_in_one_step(users: Users):
    owner = connect(users.url(users.owner))

    assert await owner.migrate(run=[users.run]) == (0, NEWEST)
    assert await owner.migrate(read=[users.read]) == (NEWEST, NEWEST)

    for user in (users.run, users.read):
        engine = connect(users.url(user))
        await engine.open(create=False)
        await engine.close()


async def test_who_may_give_no_rights_changes_nothing_by_migrating(users: Users):
    await users.install()

    with pytest.raises(StoreForbidden, match=users.run):
        await connect(users.url(users.run)).migrate(run=[users.read])


async def test_who_does_not_own_the_store_can_give_no_rights(users: Users):
    await users.install()

    with pytest.raises(StoreForbidden, match=users.run):
        await connect(users.url(users.run)).grant(run=[users.read])


async def test_who_only_runs_jobs_is_sent_to_the_owner_when_the_functions_are_old(
    users: Users, admin: psycopg.Connection
):
    await users.install()
    admin.execute("UPDATE meta SET value = 1 WHERE name = 'functions'")

    for user in (users.run, users.read):
        with pytest.raises(StoreForbidden, match=f"`{user}` may not change it") as refused:
            await connect(users.url(user)).open()
        assert f"`{users.owner}`" in refused.value.hint


# ── functions of several versions ────────────────────────────────────────────────────────────


async def test_no_function_of_an_older_version_is_left(users: Users, admin: psycopg.Connection):
    await users.install()
    before = admin.execute(
        "SELECT count(*) FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
    ).fetchone()
    # An older version took other parameters, and had one that is gone; one is the user's own.
    admin.execute("CREATE FUNCTION beat(text) RETURNS text LANGUAGE sql RETURN 'old'")
    admin.execute("CREATE FUNCTION gone_since() RETURNS text LANGUAGE sql RETURN 'old'")
    admin.execute(f"COMMENT ON FUNCTION gone_since() IS '{functions.MARK}'")
    admin.execute("CREATE FUNCTION of_the_user() RETURNS integer LANGUAGE sql RETURN 7")
    admin.execute(f"ALTER FUNCTION beat(text) OWNER TO {users.owner}")
    admin.execute(f"ALTER FUNCTION gone_since() OWNER TO {users.owner}")
    admin.execute("UPDATE meta SET value = 1 WHERE name = 'functions'")

    await connect(users.url(users.owner)).migrate()

    after = admin.execute(
        "SELECT count(*) FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
    ).fetchone()
    assert before is not None
    assert after == (before[0] + 1,)
    assert admin.execute("SELECT of_the_user()").fetchone() == (7,)


async def test_what_a_newer_version_has_made_is_left_alone(users: Users, admin: psycopg.Connection):
    await users.install()
    admin.execute("UPDATE meta SET value = 1 WHERE name = 'functions'")
    admin.execute("UPDATE meta SET value = %s WHERE name = 'program'", (installer.program() + 1,))

    await _works(users)
    assert await connect(users.url(users.owner)).migrate() == (NEWEST, NEWEST)

    row = admin.execute("SELECT value FROM meta WHERE name = 'functions'").fetchone()
    assert row == (1,)


async def test_several_that_migrate_together_do_it_once(users: Users, admin: psycopg.Connection):
    await users.install()
    owner = users.url(users.owner)
    for _ in range(3):
        admin.execute("UPDATE meta SET value = 1 WHERE name = 'functions'")
        answers = await asyncio.gather(*(connect(owner).migrate() for _ in range(4)))
        assert answers == [(NEWEST, NEWEST)] * 4
    await _works(users)


async def test_a_migration_that_would_keep_everybody_waiting_is_given_up(
    users: Users, admin: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    await users.install()
    monkeypatch.setattr(installer, "_LOCK_SECONDS", 0.2)
    admin.execute("UPDATE meta SET value = 1 WHERE name = 'functions'")
    url = users.url("postgres").partition("?")[0]
    with psycopg.connect(url) as backup:
        backup.execute(f"SELECT count(*) FROM {users.schema}.seen_job")
        with pytest.raises(StoreBusy, match="nothing was changed"):
            await connect(users.url(users.owner)).migrate()

    assert await connect(users.url(users.owner)).migrate() == (NEWEST, NEWEST)


async def test_a_store_that_is_not_there_is_not_made_for_who_only_looks(
    users: Users, admin: psycopg.Connection
):
    with pytest.raises(StoreUnreachable, match="no store"):
        await connect(users.url(users.owner)).open(create=False)

    row = admin.execute(
        "SELECT count(*) FROM pg_class WHERE relnamespace = %s::regnamespace", (users.schema,)
    ).fetchone()
    assert row == (0,)


async def test_a_worker_of_who_only_looks_ends_at_once_and_says_why(users: Users):
    await users.install()

    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "lamplighter", "worker", "tests.system.program:app"],
        env={**os.environ, "LAMPLIGHTER_URL": users.url(users.read)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert ended.returncode != 0
    assert f"`{users.read}`" in ended.stderr
    assert "--grant-run" in ended.stderr


async def test_migrating_puts_lost_functions_back_with_their_rights(
    users: Users, admin: psycopg.Connection
):
    await users.install()
    admin.execute(f"DROP FUNCTION {users.schema}.change")

    assert await connect(users.url(users.owner)).migrate() == (NEWEST, NEWEST)

    runner = connect(users.url(users.run))
    await runner.open()
    assert await runner.jobs.cancel(["01M7FGQ3150077Z61KMGXG8AQQ"], **BY)
    await runner.close()
