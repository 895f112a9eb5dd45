"""The check-up of a server and a store: every check can fail, and does so on a real server."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from lamplighter import runtime
from lamplighter.connect import connect
from lamplighter.engines.postgres import server as host
from lamplighter.engines.postgres import statements
from lamplighter.engines.postgres.checkup import durability, session, store, upkeep
from lamplighter.engines.postgres.checkup.facts import (
    Facts,
    Holder,
    Override,
    Relation,
    Routine,
    Setting,
    Standby,
)
from lamplighter.engines.postgres.verbs.check_up import CHECKS
from lamplighter.model.errors import StoreReadOnly, StoreUnreachable
from lamplighter.port.checkup import Checkup, Finding, Grade, Overdue
from lamplighter.port.values import Retention
from tests.proxies.rotation import Rotation
from tests.servers.postgres import Server, newest_server, standby, start
from tests.servers.stores import with_parts

DAY_MS = 86_400_000
NOW = 20_000 * DAY_MS + 5

# ── judging: each check both ways ────────────────────────────────────────────────────────────


def settings(**values: str) -> dict[str, Setting]:
    given = {
        "max_connections": "100",
        "autovacuum_freeze_max_age": "200000000",
        "autovacuum_multixact_freeze_max_age": "400000000",
        **values,
    }
    return {name: Setting(value=value, source="database") for name, value in given.items()}


PARTS = tuple(Relation(name=name, kind=kind[0].lower()) for kind, name in store.expected())
ROUTINES = tuple(Routine(name=name) for name in statements.function_names())
DAYS = tuple(Relation(name=f"done_{day}", partition=True) for day in ("20241004", "20241005"))
GOOD = Facts(
    host=host.Facts(number=180_006, version="18.6", user="ada", may_use=True, owner="olga"),
    version=1,
    user="ada",
    settings=settings(),
    relations=(*PARTS, *DAYS),
    routines=(*ROUTINES, Routine(name="drop_day", definer=True)),
    standbys=(Standby(name="s", state="streaming", sync="async", behind_bytes=0, behind_ms=1),),
    heard=True,
    now_ms=NOW,
    overdue=Overdue(2, 900),
)
# A store as it is made has these; here they only have to be no reason to complain.
GOOD = replace(
    GOOD,
    relations=tuple(
        replace(one, options=("autovacuum_vacuum_threshold=1",)) for one in GOOD.relations
    ),
)


def server_with(**fields: object) -> dict[str, object]:
    return {"host": replace(GOOD.host, **fields)}


def with_relation(**fields: object) -> dict[str, object]:
    return {"relations": (*GOOD.relations, Relation(**fields))}


def without(name: str) -> dict[str, object]:
    return {"relations": tuple(one for one in GOOD.relations if one.name != name)}


SESSION = Holder(
    kind="session", name="4711", application="psql", user="bob", state="idle in transaction"
)
LATE = Standby(name="s2", state="catchup", sync="async", behind_bytes=5e9, behind_ms=60_000)

BAD = [
    (session.version, server_with(number=130_004, version="13.4"), "problem", "13.4"),
    (session.encoding, server_with(encoding="LATIN1"), "problem", "LATIN1"),
    (session.writable, server_with(standby=True), "problem", "standby"),
    (session.writable, server_with(read_only=True), "problem", "default_transaction_read_only"),
    (session.isolation, server_with(isolation="serializable"), "problem", "'read committed'"),
    (session.array_nulls, server_with(array_nulls=False), "problem", "SET array_nulls = on"),
    (session.connections, {"connections": 95}, "warning", "95 of 100"),
    (session.connections, {"connections": 100}, "problem", "100 of 100"),
    (session.timeouts, {"settings": settings(statement_timeout="500")}, "warning", "500 ms"),
    (session.timeouts, {"settings": settings(lock_timeout="20")}, "warning", "begin again"),
    (session.timeouts, {"settings": settings(transaction_timeout="9")}, "warning", "store-busy"),
    (session.timeouts, {"settings": settings(idle_session_timeout="9000")}, "note", "9000"),
    (session.jit, {"settings": settings(jit="on", jit_above_cost="10")}, "warning", "cost of 10"),
    (session.clock, {"skew_ms": 9_000.0, "doubt_ms": 3.0}, "warning", "9000 ms ahead"),
    (session.clock, {"skew_ms": -9_000.0, "doubt_ms": 3.0}, "warning", "9000 ms behind"),
    (session.pooler, {"pooled": True, "between": True}, "note", "single transactions"),
    (session.pooler, {"between": True}, "note", "between us"),
    (session.wakeups, {"heard": False}, "warning", "does not arrive"),
    (session.wakeups, {"heard": None}, "note", "listen=off"),
    (session.wakeups, {"news": 0.7}, "warning", "70 % full"),
    (durability.fsync, server_with(fsync=False), "problem", "destroy"),
    (durability.fsync, {**server_with(fsync=False), "durable": False}, "warning", "destroy"),
    (durability.full_page_writes, {"settings": settings(full_page_writes="off")}, "warning", "off"),
    (durability.synchronous_commit, server_with(synchronous_commit="off"), "problem", "loses"),
    (
        durability.synchronous_commit,
        {"overrides": (Override(name="synchronous_commit", value="off", role="bob"),)},
        "warning",
        "ALTER ROLE bob RESET",
    ),
    (durability.standbys, {"standbys": ()}, "note", "none"),
    (durability.standbys, {"sees_all": False}, "note", "pg_monitor"),
    (durability.standbys, {"standbys": (LATE,)}, "warning", "`s2` is catchup"),
    (upkeep.autovacuum, {"settings": settings(autovacuum="off")}, "problem", "autovacuum is off"),
    (upkeep.autovacuum, {"settings": settings(track_counts="off")}, "problem", "track_counts"),
    (
        upkeep.autovacuum,
        with_relation(name="log2", options=("autovacuum_enabled=false",)),
        "problem",
        "log2",
    ),
    (upkeep.autovacuum, {"relations": (Relation(name="turn"),)}, "warning", "`turn`"),
    (upkeep.horizon, {"holders": (replace(SESSION, seconds=61.0),)}, "warning", "session 4711"),
    (
        upkeep.horizon,
        {"holders": (Holder(kind="prepared transaction", name="x7", user="bob", seconds=99.0),)},
        "warning",
        "ROLLBACK PREPARED 'x7'",
    ),
    (
        upkeep.horizon,
        {"holders": (Holder(kind="replication slot", name="old"),)},
        "warning",
        "pg_drop_replication_slot('old')",
    ),
    (upkeep.horizon, {"sees_all": False}, "note", "unverified"),
    (upkeep.wraparound, {"xid_age": 100_000_001}, "warning", "50 %"),
    (upkeep.wraparound, {"xid_age": 400_000_001}, "problem", "200 %"),
    (upkeep.wraparound, {"multixact_age": 300_000_000}, "warning", "multixact"),
    (upkeep.bloat, with_relation(name="turn2", dead=60_000, live=9), "warning", "60,000 dead"),
    (store.schema, {"refusal": ("belongs to another", "name another")}, "problem", "name another"),
    (store.schema, {"version": 0}, "problem", "lamplighter migrate"),
    (store.schema, {"current": False}, "warning", "not those of this program"),
    (store.parts, without("job_waiting"), "problem", "index `job_waiting`"),
    (store.parts, {"routines": GOOD.routines[1:]}, "problem", "function"),
    (store.parts, with_relation(name="x_index", kind="i", valid=False), "problem", "REINDEX"),
    (store.rights, with_relation(name="t", lacks=("INSERT",)), "note", "--grant-run ada"),
    (store.rights, with_relation(name="t", lacks=("SELECT",)), "problem", "SELECT on t"),
    (store.rights, server_with(may_use=False), "problem", "USAGE on schema"),
    (
        store.rights,
        {"routines": (Routine(name="now_ms", callable=False),)},
        "problem",
        "EXECUTE on function now_ms",
    ),
    (store.guard, {"routines": (Routine(name="d", definer=True, path=False),)}, "problem", "`d`"),
    (
        store.guard,
        {"routines": (Routine(name="d", definer=True, everybody=True),)},
        "problem",
        "FROM PUBLIC",
    ),
    (store.days, without("done_20241005"), "warning", "done_20241005"),
    (store.days, {"relations": PARTS}, "note", "first worker"),
    (store.schedules, {"overdue": Overdue(3, 20_000)}, "warning", "3 are due, the first for 20.0"),
    (store.schedules, {"overdue": Overdue(1, 61_000)}, "problem", "is a worker running?"),
    (store.schedules, {"overdue": None}, "note", "cannot be read"),
]


@pytest.mark.parametrize("check", [*CHECKS, *store.CHECKS], ids=lambda check: check.__name__)
def test_a_healthy_store_is_found_healthy(check: Callable[[Facts], Finding]):
    assert check(GOOD).grade is Grade.OK


@pytest.mark.parametrize(("check", "change", "grade", "word"), BAD)
def test_each_check_finds_what_it_looks_for(
    check: Callable[[Facts], Finding], change: dict[str, object], grade: str, word: str
):
    found = check(replace(GOOD, **change))

    assert found.grade == grade
    assert word in f"{found.text} {found.remedy}"
    assert found.remedy or found.grade is Grade.NOTE


def test_there_is_no_check_that_cannot_fail():
    assert {check for check, *_ in BAD} == {*CHECKS, *store.CHECKS}


def test_the_loss_window_follows_the_settings():
    assert durability.survives(GOOD)["power loss of its machine"].startswith("yes")
    for change in ({"fsync": False}, {"synchronous_commit": "off"}):
        worse = durability.survives(replace(GOOD, **server_with(**change)))
        assert worse["power loss of its machine"].startswith("no")
    confirmed = Standby(name="s", state="streaming", sync="sync", behind_bytes=0)
    with_sync = replace(GOOD, standbys=(confirmed,))
    assert durability.survives(with_sync)["failover"] == "yes to `s`, which confirms each commit"
    only_local = replace(with_sync, **server_with(synchronous_commit="local"))
    assert "may be lost" in durability.survives(only_local)["failover"]


# ── reading: a real server with a setting changed ────────────────────────────────────────────


@pytest.fixture(scope="module")
def durable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    more = {"max_prepared_transactions": "2", "autovacuum_naptime": "1d"}
    folder = tmp_path_factory.mktemp("log")
    with start(newest_server(), folder, settings=more) as server:
        yield server


@pytest.fixture
def database(durable: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a database of the test's own."""
    name = f"d{abs(hash(request.node.nodeid))}"
    yield durable.create_database(name)
    with durable.connect() as admin:
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def inside(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


async def look(url: str) -> Checkup:
    return await connect(url).check_up()


async def finding(url: str, check: str) -> Finding:
    (found,) = [one for one in (await look(url)).findings if one.check == check]
    return found


async def made(url: str) -> str:
    await connect(url).migrate()
    return url


async def test_a_new_store_on_a_new_server_has_no_problem(database: str):
    await made(database)

    found = await look(database)

    assert found.problems == 0
    assert [one.check for one in found.findings if one.grade is Grade.WARNING] == []
    assert found.survives["power loss of its machine"].startswith("yes")


async def test_a_check_up_makes_no_store_and_says_how_to_make_one(
    database: str, inside: psycopg.Connection
):
    found = await finding(database, "schema")

    assert (found.grade, "lamplighter migrate" in found.remedy) == (Grade.PROBLEM, True)
    assert inside.execute("SELECT to_regnamespace('lamplighter')").fetchone() == (None,)


RESET_TURN = """
ALTER TABLE lamplighter.turn RESET (
    autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay)
"""
DUE = """
INSERT INTO lamplighter.schedule (id, spec, tenant, type, cursor, due, wake, created, changed)
VALUES ('nightly', '', 'default', 'work', 0, 1, 1, 0, 0)
"""
INVALID = """
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'lamplighter.dead_seq'::regclass
"""


@pytest.mark.parametrize(
    ("change", "check", "grade"),
    [
        ("ALTER DATABASE {} SET synchronous_commit = off", "synchronous_commit", "problem"),
        ("ALTER DATABASE {} SET default_transaction_read_only = on", "writable", "problem"),
        ("ALTER DATABASE {} SET statement_timeout = '1s'", "timeouts", "warning"),
        ("ALTER DATABASE {} SET jit_above_cost = 1", "jit", "warning"),
        ("DROP INDEX lamplighter.job_waiting", "parts", "problem"),
        ("DROP FUNCTION lamplighter.beat", "parts", "problem"),
        (INVALID, "parts", "problem"),
        ("ALTER TABLE lamplighter.job SET (autovacuum_enabled = false)", "autovacuum", "problem"),
        (RESET_TURN, "autovacuum", "warning"),
        ("GRANT EXECUTE ON FUNCTION lamplighter.drop_day TO PUBLIC", "guard", "problem"),
        ("ALTER FUNCTION lamplighter.make_days RESET search_path", "guard", "problem"),
        ("UPDATE lamplighter.meta SET value = 99 WHERE name = 'version'", "schema", "problem"),
        ("UPDATE lamplighter.meta SET value = 1 WHERE name = 'functions'", "schema", "warning"),
        (DUE, "schedules", "problem"),
    ],
)
async def test_what_was_changed_on_a_real_server_is_found(
    database: str, inside: psycopg.Connection, change: str, check: str, grade: str
):
    await made(database)
    before = await finding(database, check)
    name = database.rpartition("/")[2]
    inside.execute(change.format(name))

    after = await finding(database, check)

    assert before.grade is Grade.OK
    assert after.grade == grade
    assert after.remedy


async def test_the_settings_of_the_whole_server_are_seen(durable: Server):
    changes = {"autovacuum": "off", "full_page_writes": "off", "jit_above_cost": "1", "jit": "on"}
    with durable.connect() as admin:
        for name, value in changes.items():
            admin.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), value))
        admin.execute("SELECT pg_reload_conf()")
        try:
            grades = {one.check: one.grade for one in (await look(durable.url())).findings}
        finally:
            admin.execute("ALTER SYSTEM RESET ALL")
            admin.execute("SELECT pg_reload_conf()")

    assert grades["autovacuum"] is Grade.PROBLEM
    assert grades["full_page_writes"] is Grade.WARNING
    assert grades["jit"] is Grade.WARNING


async def test_another_roles_setting_is_seen(database: str, inside: psycopg.Connection):
    inside.execute("CREATE ROLE forgetful; ALTER ROLE forgetful SET synchronous_commit = off")
    try:
        found = await finding(database, "synchronous_commit")
    finally:
        inside.execute("DROP ROLE forgetful")

    assert found.grade is Grade.WARNING
    assert found.remedy == "ALTER ROLE forgetful RESET synchronous_commit"


async def test_whoever_keeps_a_transaction_open_is_named(
    database: str, inside: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    await made(database)
    monkeypatch.setattr(upkeep, "_LONG_SECONDS", 0.0)
    assert (await finding(database, "transactions")).grade is Grade.OK

    with psycopg.connect(database, application_name="forgotten") as idle:
        idle.execute("SELECT count(*) FROM lamplighter.job")
        idle.execute("CREATE TEMP TABLE t ()")
        found = await finding(database, "transactions")
        assert f"session {idle.info.backend_pid}" in found.text
    assert "`forgotten`" in found.text
    assert "idle in transaction" in found.text

    inside.execute("BEGIN; CREATE TABLE public.p (); PREPARE TRANSACTION 'left over'")
    found = await finding(database, "transactions")
    inside.execute("ROLLBACK PREPARED 'left over'")
    assert "ROLLBACK PREPARED 'left over'" in found.remedy


async def test_dead_rows_are_counted(database: str, inside: psycopg.Connection):
    await made(database)
    inside.execute(
        "INSERT INTO lamplighter.request SELECT g::text, g FROM generate_series(1, 60000) g"
    )
    inside.execute("DELETE FROM lamplighter.request")
    inside.execute("SELECT pg_stat_force_next_flush()")
    inside.execute("SELECT 1")

    found = await finding(database, "bloat")

    assert found.grade is Grade.WARNING
    assert "`request` has 60,000 dead rows" in found.text


async def test_days_that_were_not_made_ahead_are_missed(database: str, inside: psycopg.Connection):
    engine = connect(await made(database))
    assert (await finding(database, "days")).grade is Grade.NOTE
    await engine.open()
    await engine.jobs.prune(Retention(), 10)
    await engine.close()
    assert (await finding(database, "days")).grade is Grade.OK

    row = inside.execute("SELECT name FROM lamplighter.days() OFFSET 1 LIMIT 1").fetchone()
    assert row is not None
    inside.execute(f"DROP TABLE lamplighter.{row[0]}")

    found = await finding(database, "days")
    assert (found.grade, row[0] in found.text) == (Grade.WARNING, True)


async def test_clocks_that_differ_are_noticed(database: str, monkeypatch: pytest.MonkeyPatch):
    true = runtime.now_ms
    monkeypatch.setattr(runtime, "now_ms", lambda: true() - 60_000)

    found = await finding(database, "clock")

    assert found.grade is Grade.WARNING
    assert "ahead of this machine" in found.text


async def test_a_pooler_is_noticed_by_what_it_does(database: str):
    rotation = Rotation(database)
    rotation.start()
    try:
        found = {one.check: one for one in (await look(rotation.through(database))).findings}
    finally:
        rotation.stop()

    assert found["pooler"].grade is Grade.NOTE
    assert "single transactions" in found["pooler"].text
    assert found["wake-ups"].grade is Grade.WARNING


async def test_a_standby_is_looked_at_and_its_distance_told(durable: Server):
    url = await made(durable.url("postgres"))
    with standby(durable) as copy:
        told = await look(url)
        assert "to an asynchronous standby" in told.survives["failover"]
        assert "bytes" in told.survives["failover"]
        assert (await finding(url, "standbys")).grade is Grade.OK

        found = await finding(copy.url(), "writable")
        assert (found.grade, "standby" in found.text) == (Grade.PROBLEM, True)


# ── at open ──────────────────────────────────────────────────────────────────────────────────


async def test_a_server_that_may_forget_is_refused_unless_the_url_accepts_it(
    database: str, inside: psycopg.Connection
):
    name = database.rpartition("/")[2]
    inside.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    engine = connect(database)

    with pytest.raises(StoreUnreachable, match="synchronous_commit=off") as refused:
        await engine.open()
    assert "durability=none" in refused.value.hint
    assert inside.execute("SELECT to_regnamespace('lamplighter')").fetchone() == (None,)

    accepting = connect(with_parts(database, durability="none"))
    await accepting.open()
    await accepting.close()
    assert not accepting.capabilities.durable_submit
    assert engine.capabilities.durable_submit


async def test_a_role_that_may_forget_is_refused(database: str, inside: psycopg.Connection):
    await made(database)
    inside.execute("CREATE ROLE hasty LOGIN SUPERUSER")
    inside.execute("ALTER ROLE hasty SET synchronous_commit = off")
    try:
        with pytest.raises(StoreUnreachable, match="synchronous_commit=off"):
            await connect(database.replace("postgres@", "hasty@")).open()
    finally:
        inside.execute("DROP ROLE hasty")


async def test_a_server_without_fsync_is_refused(tmp_path: Path):
    with start(newest_server(), tmp_path, fast=True) as server:
        with pytest.raises(StoreUnreachable, match="fsync=off"):
            await connect(server.url()).open()
        assert (await finding(server.url(), "fsync")).grade is Grade.PROBLEM
        accepted = await finding(server.url(durability="none"), "fsync")
        assert accepted.grade is Grade.WARNING


async def test_sessions_that_only_read_are_refused_with_the_reason(
    database: str, inside: psycopg.Connection
):
    await made(database)
    name = database.rpartition("/")[2]
    inside.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")

    with pytest.raises(StoreReadOnly, match="only read"):
        await connect(database).open()
    with pytest.raises(StoreReadOnly, match="default_transaction_read_only"):
        await connect(with_parts(database, target_session_attrs="any")).open()
