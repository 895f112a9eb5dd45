"""Settings of a role or a database under which our calls would do something else."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.engines.postgres.address import parse
from lamplighter.engines.postgres.pool import Pool
from lamplighter.model.errors import StoreBusy, StoreUnreachable
from lamplighter.port.checkup import Grade
from lamplighter.port.conformance.builders import new_job
from tests.servers.stores import with_parts

ROLE = "a_role_with_settings"


@pytest.fixture
def role(admin: psycopg.Connection) -> Iterator[str]:
    admin.execute(f"CREATE ROLE {ROLE} LOGIN SUPERUSER")
    yield ROLE
    admin.execute(f"DROP OWNED BY {ROLE} CASCADE")
    admin.execute(f"DROP ROLE {ROLE}")


REMEDIES = {
    "isolation": "SET default_transaction_isolation = 'read committed'",
    "array_nulls": "SET array_nulls = on",
}


@pytest.mark.parametrize(
    ("setting", "check"),
    [
        ("default_transaction_isolation=repeatable read", "isolation"),
        ("default_transaction_isolation=serializable", "isolation"),
        ("array_nulls=off", "array_nulls"),
    ],
)
async def test_sessions_that_would_spoil_the_store_are_refused_until_the_remedy_is_taken(
    url: str, admin: psycopg.Connection, role: str, setting: str, check: str
):
    await connect(url).migrate()
    name, _, value = setting.partition("=")
    admin.execute(f"ALTER ROLE {role} SET {name} = '{value}'")
    engine = connect(url.replace("postgres@", f"{role}@"))

    for ask in (engine.open, engine.migrate):
        with pytest.raises(StoreUnreachable, match=setting) as refused:
            await ask()
        assert refused.value.value == setting
    (found,) = [one for one in (await engine.check_up()).findings if one.check == check]
    assert (found.grade, "set by: user" in found.text) == (Grade.PROBLEM, True)
    assert found.remedy == f"ALTER ROLE {role} {REMEDIES[check]}"
    assert found.remedy in refused.value.hint

    admin.execute(found.remedy)

    await engine.open()
    await engine.jobs.submit([new_job(), new_job(delay_ms=5)])
    await engine.close()


async def test_a_setting_that_the_url_brings_is_refused_too(url: str):
    strict = with_parts(url, options=r"-c default_transaction_isolation=repeatable\ read")

    with pytest.raises(StoreUnreachable, match="repeatable read") as refused:
        await connect(strict).open()

    assert "options=" in refused.value.hint


# ── timeouts ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["statement_timeout", "transaction_timeout"])
async def test_a_call_that_a_timeout_cuts_off_is_told_as_such_and_not_repeated(
    url: str, admin: psycopg.Connection, name: str
):
    if not admin.execute("SELECT FROM pg_settings WHERE name = %s", (name,)).fetchall():
        pytest.skip(f"this server has no {name}")
    admin.execute("CREATE SEQUENCE public.begun")
    pool = Pool(parse(with_parts(url, options=f"-c {name}=200")), 20.0)
    try:
        with pytest.raises(StoreBusy, match="in time") as refused:
            await pool.rows("SELECT nextval('public.begun'), pg_sleep(60)")

        assert "timeout" in refused.value.hint
        assert admin.execute("SELECT last_value FROM public.begun").fetchone() == (1,)
        assert await pool.rows("SELECT 1") == [(1,)]
    finally:
        pool.let_go()
        admin.execute("DROP SEQUENCE public.begun")


async def test_a_call_that_waits_too_long_for_another_begins_again(
    url: str, admin: psycopg.Connection
):
    engine = connect(with_parts(url, options="-c lock_timeout=50"), deadline=20.0)
    await engine.open()
    schema = parse(url).schema
    with psycopg.connect(url.partition("?")[0]) as other:
        other.execute(f"LOCK TABLE {schema}.job")
        asked = asyncio.create_task(engine.jobs.submit([new_job()]))
        _, waiting = await asyncio.wait({asked}, timeout=0.3)
        assert waiting

    assert (await asked)[0].answer == "created"
    await engine.close()
