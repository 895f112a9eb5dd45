"""What nobody may do to the owner of a store: act in its name, erase its log, or let others in."""

import re
from collections.abc import Callable, Iterator

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.engines.postgres import statements
from lamplighter.model.errors import StoreForbidden
from lamplighter.port.access import About, NewToken, entries_of
from lamplighter.port.checkup import Finding, Grade
from lamplighter.port.store import Engine
from lamplighter.port.values import ChangeAnswer, Retention
from tests.unit.postgres.users import Users, admin, make_users, users

__all__ = ["admin", "make_users", "users"]

TOKEN = NewToken(prefix="00c0ffee0001", digest="d" * 64, name="deploy", scopes=("admin",))
ENTRIES = entries_of([About("o", "t")], by="ada", action="a", reason="")


def as_user(users: Users, user: str) -> psycopg.Connection:
    connection = psycopg.connect(users.url(user).partition("?")[0], autocommit=True)
    connection.execute("SELECT set_config('search_path', %s, false)", (users.schema,))
    return connection


# ── the audit log and tokens ─────────────────────────────────────────────────────────────────


@pytest.fixture
async def running(users: Users):
    """The store as the user who runs jobs, with an entry and a token in it."""
    await users.install()
    owning = connect(users.url(users.owner))
    await owning.open()
    assert await owning.access.put_token(TOKEN, by="olga") is ChangeAnswer.DONE
    await owning.close()
    engine = connect(users.url(users.run))
    await engine.open()
    await engine.access.note_audit(ENTRIES)
    assert await engine.access.spend("code", "ada", 60_000)
    yield engine
    await engine.close()


@pytest.mark.parametrize(
    "attempt",
    [
        "DELETE FROM audit",
        "UPDATE audit SET who = 'nobody'",
        "TRUNCATE audit",
        "INSERT INTO audit (id, at, who, action, object, answer) VALUES ('x', 1, '', '', '', '')",
        "DELETE FROM token",
        "UPDATE token SET scopes = 'admin', revoked = NULL",
        "INSERT INTO token SELECT * FROM token",
        "SELECT put_token('p', 'd', 'n', 'admin', NULL, 1000, 'me')",
        "DELETE FROM spent",
        "UPDATE spent SET ends = 0",
        "INSERT INTO spent VALUES ('c', 'h', 1)",
        "TRUNCATE spent",
        "ALTER TABLE audit DISABLE TRIGGER ALL",
        "DROP FUNCTION note_audit",
    ],
)
async def test_who_runs_jobs_may_not(users: Users, running: Engine, attempt: str):
    with as_user(users, users.run) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(attempt)
        assert connection.execute("SELECT count(*) FROM audit").fetchone() == (1,)


async def test_who_runs_jobs_adds_to_the_log_and_reads_it(running: Engine):
    (found,) = (await running.access.audit(limit=10)).records

    assert found.entry.by == "ada"
    await running.access.note_audit(ENTRIES)
    assert len((await running.access.audit(limit=10)).records) == 1, "an entry is not replaced"


async def test_who_runs_jobs_removes_nothing_of_the_last_30_days(
    users: Users, running: Engine, admin: psycopg.Connection
):
    day_ms = 86_400_000

    assert await running.access.prune_access(0, 100) == 0
    admin.execute("UPDATE audit SET at = at - %s", (29 * day_ms,))
    assert await running.access.prune_access(1, 100) == 0
    admin.execute("UPDATE audit SET at = at - %s", (2 * day_ms,))
    assert await running.access.prune_access(40 * day_ms, 100) == 0
    assert await running.access.prune_access(day_ms, 100) == 1


async def test_who_runs_jobs_spends_what_is_good_once_and_cannot_revive_it(
    users: Users, running: Engine, admin: psycopg.Connection
):
    assert await running.access.spent("code")
    # Whatever its own call says, the time of the first one stays.
    assert not await running.access.spend("code", "bob", -1)
    assert await running.access.spend("code", "ada", -1)
    assert await running.access.prune_access(0, 100) == 0
    assert not await running.access.spend("code", "bob", 60_000)

    admin.execute("UPDATE spent SET ends = 0")
    assert await running.access.prune_access(0, 100) == 1
    assert not await running.access.spent("code")


async def test_rights_on_what_is_spent_that_were_given_before_are_taken_away_by_migrating(
    users: Users, running: Engine, admin: psycopg.Connection
):
    admin.execute(f"GRANT INSERT, UPDATE, DELETE ON spent TO {users.run}")
    admin.execute("UPDATE meta SET value = 1 WHERE name = 'functions'")

    await connect(users.url(users.owner)).migrate()

    with (
        as_user(users, users.run) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("DELETE FROM spent")


async def test_who_owns_the_store_decides_what_is_old(users: Users, running: Engine):
    owning = connect(users.url(users.owner))
    await owning.open()
    assert await owning.access.prune_access(0, 100) == 1
    await owning.close()


async def test_who_runs_jobs_ends_tokens_and_is_sent_to_the_owner_to_make_one(
    running: Engine,
):
    with pytest.raises(StoreForbidden) as refused:
        await running.access.put_token(
            NewToken(prefix="p", digest="d", name="n", scopes=()), by="a"
        )
    assert "owner" in refused.value.hint
    assert "--url" in refused.value.hint

    revoked = await running.access.revoke_token(TOKEN.prefix, by="bob", reason="lost")
    assert revoked is ChangeAnswer.DONE
    found = await running.access.token(TOKEN.prefix)
    assert found is not None
    assert found.revoked is not None


async def test_doctor_finds_that_who_runs_jobs_lacks_nothing(running: Engine):
    (rights,) = [one for one in (await running.check_up()).findings if one.check == "rights"]
    assert rights.grade is Grade.OK


@pytest.mark.parametrize(
    ("right", "attempt"),
    [
        ("DELETE", "DELETE FROM audit"),
        ("ALL", "TRUNCATE audit"),
        ("UPDATE (who)", "UPDATE audit SET who = 'nobody'"),
    ],
)
async def test_rights_on_the_log_that_were_given_by_hand_are_taken_away_by_migrating(
    users: Users, running: Engine, admin: psycopg.Connection, right: str, attempt: str
):
    admin.execute(f"GRANT {right} ON audit TO {users.run}")

    await connect(users.url(users.owner)).migrate(run=[users.run])

    with (
        as_user(users, users.run) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(attempt)
    assert (await running.access.audit(limit=10)).records


# ── who else has a hand in the schema ────────────────────────────────────────────────────────


@pytest.fixture
def mallory(users: Users, admin: psycopg.Connection) -> Iterator[str]:
    """A user who wants the owner to run something."""
    name = f"mallory_{users.schema}"
    admin.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    admin.execute(f"DROP OWNED BY {name} CASCADE")
    admin.execute(f"DROP ROLE {name}")


def let_create(users: Users, admin: psycopg.Connection, mallory: str) -> None:
    admin.execute(f"GRANT USAGE, CREATE ON SCHEMA {users.schema} TO {mallory}")


def plant(users: Users, mallory: str) -> None:
    """Put functions into the schema that fit calls better than those of the server."""
    with as_user(users, mallory) as connection:
        connection.execute("CREATE TABLE caught (who text)")
        connection.execute("GRANT ALL ON caught TO PUBLIC")
        for head, answer in (
            ("to_timestamp(bigint) RETURNS timestamptz", "now()"),
            ("generate_series(bigint, integer) RETURNS SETOF bigint", "1::bigint"),
            ("unnest(text[]) RETURNS SETOF text", "'x'::text"),
            ("right(name, integer) RETURNS text", "'20200101'::text"),
            ("format(text, text) RETURNS text", "'SELECT 1'::text"),
            ("format(text, name, text) RETURNS text", "'SELECT 1'::text"),
            ("jsonb_build_object(text, bigint) RETURNS jsonb", "'{}'::jsonb"),
            ("pg_has_role(name, name, unknown_ text) RETURNS boolean", "true"),
        ):
            body = f"INSERT INTO caught SELECT current_user::text; SELECT {answer}"
            connection.execute(f"CREATE FUNCTION {head} LANGUAGE sql AS $${body}$$")


def owns_it(users: Users, admin: psycopg.Connection, mallory: str) -> None:
    admin.execute(f"ALTER SCHEMA {users.schema} OWNER TO {mallory}")
    admin.execute(f"GRANT ALL ON SCHEMA {users.schema} TO {users.owner}")


def everybody_may(users: Users, admin: psycopg.Connection, mallory: str) -> None:
    admin.execute(f"GRANT CREATE ON SCHEMA {users.schema} TO PUBLIC")


def has_been_there(users: Users, admin: psycopg.Connection, mallory: str) -> None:
    let_create(users, admin, mallory)
    plant(users, mallory)
    admin.execute(f"DROP TABLE {users.schema}.caught")
    admin.execute(f"REVOKE ALL ON SCHEMA {users.schema} FROM {mallory}")


def made_the_tables(users: Users, admin: psycopg.Connection, mallory: str) -> None:
    """A schema that looks like a store, so that its owner seems to be the store's."""
    owns_it(users, admin, mallory)
    with as_user(users, mallory) as connection:
        connection.execute("CREATE TABLE meta (name text, value bigint)")
        connection.execute("CREATE TABLE job (handout bigint)")
        version = statements.layouts().newest
        connection.execute("INSERT INTO meta VALUES ('version', %s)", (version,))
        connection.execute("GRANT ALL ON meta, job TO PUBLIC")


SCENES: dict[str, Callable[[Users, psycopg.Connection, str], None]] = {
    "owns it": owns_it,
    "may create in it": let_create,
    "everybody may": everybody_may,
    "has been there": has_been_there,
}


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("who", ["owner", "postgres"])
async def test_no_store_is_made_where_somebody_else_has_a_hand(
    users: Users, admin: psycopg.Connection, mallory: str, scene: str, who: str
):
    if who == "postgres":
        admin.execute(f"ALTER SCHEMA {users.schema} OWNER TO postgres")
    SCENES[scene](users, admin, mallory)
    engine = connect(users.url(getattr(users, who, who)))

    for call in (engine.migrate, engine.open):
        with pytest.raises(StoreForbidden) as refused:
            await call()
        assert re.search("everybody" if scene == "everybody may" else mallory, refused.value.cause)
    found = admin.execute(
        "SELECT count(*) FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'",
        (users.schema,),
    ).fetchone()
    assert found == (0,)
    finding = await schema_finding(engine)
    assert finding.grade is Grade.PROBLEM
    assert "safely" in finding.text


async def schema_finding(engine: Engine) -> Finding:
    (found,) = [one for one in (await engine.check_up()).findings if one.check == "schema"]
    return found


async def test_a_schema_made_up_as_a_store_is_refused(
    users: Users, admin: psycopg.Connection, mallory: str
):
    made_the_tables(users, admin, mallory)
    for user in (users.owner, "postgres"):
        with pytest.raises(StoreForbidden, match=mallory if user == "postgres" else "may not"):
            await connect(users.url(user)).migrate()


@pytest.mark.parametrize("scene", ["may create in it", "everybody may", "has been there"])
async def test_a_store_where_somebody_gets_a_hand_is_not_migrated_and_doctor_says_so(
    users: Users, admin: psycopg.Connection, mallory: str, scene: str
):
    await users.install()
    SCENES[scene](users, admin, mallory)

    with pytest.raises(StoreForbidden):
        await connect(users.url(users.owner)).migrate()
    for user in (users.owner, users.run):
        found = (await connect(users.url(user)).check_up()).findings
        (guard,) = [one for one in found if one.check == "guard"]
        assert guard.grade is Grade.PROBLEM
        assert re.search("everybody" if scene == "everybody may" else mallory, guard.text)


async def test_the_remedy_helps(users: Users, admin: psycopg.Connection, mallory: str):
    await users.install()
    let_create(users, admin, mallory)
    engine = connect(users.url(users.owner))
    with pytest.raises(StoreForbidden) as refused:
        await engine.migrate()

    admin.execute(refused.value.hint)

    await engine.migrate()
    (guard,) = [one for one in (await engine.check_up()).findings if one.check == "guard"]
    assert guard.grade is Grade.OK


async def test_functions_of_somebody_else_are_never_run_as_the_owner(
    users: Users, admin: psycopg.Connection, mallory: str
):
    await users.install()
    owning = connect(users.url(users.owner))
    await owning.open()
    await owning.access.put_token(TOKEN, by="olga")
    await owning.close()
    let_create(users, admin, mallory)
    plant(users, mallory)
    admin.execute("UPDATE audit SET at = 0")
    engine = connect(users.url(users.run))
    await engine.open()
    await engine.access.note_audit(ENTRIES)
    await engine.access.prune_access(1, 10)
    revoked = await engine.access.revoke_token(TOKEN.prefix, by="ada", reason="")
    assert revoked is ChangeAnswer.DONE, "its mark was made"
    await engine.access.spend("c", "h", 1_000)
    await engine.jobs.prune(Retention(), 10)
    with as_user(users, users.run) as connection:
        connection.execute("SELECT make_days(), drop_day('done_20200101')")
    await engine.close()

    caught = {who for (who,) in admin.execute("SELECT who FROM caught").fetchall()}
    assert users.owner not in caught
    (found,) = admin.execute("SELECT count(*) FROM days()").fetchall()
    assert found == (4,)


async def test_members_of_the_role_that_owns_the_store_may_migrate_it(
    users: Users, admin: psycopg.Connection, mallory: str
):
    await users.install()
    admin.execute(f"GRANT {users.owner} TO {mallory}")

    await connect(users.url(mallory)).migrate(run=[users.run])

    (guard,) = [
        one
        for one in (await connect(users.url(users.run)).check_up()).findings
        if one.check == "guard"
    ]
    assert guard.grade is Grade.OK


# ── how functions that act as the owner are written ──────────────────────────────────────────

_CALL = re.compile(r"([\w.@]+)\s*\(")
_SYNTAX = {"exists", "array", "coalesce", "least", "greatest", "any", "from", "conflict", "values"}


def acting_as_owner() -> dict[str, str]:
    text = "\n".join(statements._functions())
    parts = re.split(r"(?=^CREATE OR REPLACE FUNCTION)", text, flags=re.MULTILINE)
    return {
        re.match(r"CREATE OR REPLACE FUNCTION (\w+)", part)[1]: part  # pyright: ignore[reportOptionalSubscript]
        for part in parts
        if "SECURITY DEFINER" in part.partition("$$")[0]
    }


def test_those_that_act_as_the_owner_are_known():
    assert set(acting_as_owner()) == {
        "make_days",
        "drop_day",
        "note_audit",
        "revoke_token",
        "prune_access",
        "spend",
    }


@pytest.mark.parametrize("name", sorted(acting_as_owner()))
def test_one_that_acts_as_the_owner_says_of_every_name_where_it_is(name: str):
    head, body, *_ = acting_as_owner()[name].split("$$")

    assert "SET search_path = pg_catalog, @schema@, pg_temp" in head
    plain = re.sub(r"--[^\n]*|'[^']*'|\bAS \w+\(|INTO @schema@.\w+ \(", "", body)
    calls = [call for call in _CALL.findall(plain) if call.lower() not in _SYNTAX]
    loose = [call for call in calls if not call.startswith(("pg_catalog.", "@schema@."))]
    assert loose == []
    tables = re.findall(r"\b(?:FROM|INTO|UPDATE|JOIN)\s+([\w.@]+)", plain)
    ours = {"audit", "token", "spent", "done", "done_other", "days", "meta", "job"}
    assert not ours & set(tables)
