"""Reads: what they find where PostgreSQL is different, and how little they look at for it."""

from collections.abc import AsyncIterator, Callable, Sequence
from itertools import product
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.engines.postgres import ids
from lamplighter.engines.postgres.filters import parameters
from lamplighter.engines.postgres.verbs import inspect
from lamplighter.model.filters import Filter
from lamplighter.model.job import Extras, JobState, status_of
from lamplighter.port.conformance.builders import claim, new_job, submit
from lamplighter.port.store import Engine

LAST = 9_000_000_000_000_000
SCAN = 10_000

# `{many}` waiting jobs, of them every tenth running and another tenth held, as many that succeeded,
# and a tenth of that many each that were cancelled or died.
STORE = """
INSERT INTO queue (name) VALUES ('default');
INSERT INTO band (queue, level) VALUES ('default', 2);
INSERT INTO lane (band, queue, level, type, requirement) VALUES (1, 'default', 2, 'work', '');
INSERT INTO job (seq, id, lane, tenant, state, due, created, args, cost, size, hold, expires)
SELECT n, gen_random_uuid(), 1, 't' || n % 9, CASE n % 10 WHEN 0 THEN 'running' ELSE 'waiting' END,
       n, n, '', 1, 0, CASE n % 10 WHEN 1 THEN '{{}}' END, CASE n % 10 WHEN 0 THEN n END
FROM generate_series(1, {many}) AS n;
INSERT INTO done (seq, id, lane, tenant, state, due, created, args, cost, size, generation, lease,
                  attempt, crashes, losses, suspect, finished)
SELECT n, gen_random_uuid(), 1, 't' || n % 9, CASE n % 10 WHEN 0 THEN 'cancelled' ELSE 'succeeded'
       END, n, n, '', 1, 0, 0, 1, 0, 0, 0, false, n
FROM generate_series({many} + 1, 2 * {many}) AS n;
INSERT INTO dead SELECT * FROM done WHERE state = 'cancelled';
DELETE FROM done WHERE state = 'cancelled' AND seq % 20 = 0;
DELETE FROM dead WHERE seq % 20 <> 0;
UPDATE dead SET state = 'dead', fingerprint = 'boom';
"""
ROWS_READ = """
SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))
FROM pg_stat_xact_user_tables
WHERE schemaname = current_schema() AND relname NOT IN ('lane', 'queue', 'band', 'tenant')
"""


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    opened = connect(url, deadline=20.0)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def inside(engine: Engine, url: str, admin: psycopg.Connection) -> psycopg.Connection:
    """A connection that looks into the engine's own schema."""
    schema = parse_qs(urlsplit(url).query)["schema"][0]
    admin.execute("SELECT set_config('search_path', %s, false)", (schema,))
    return admin


@pytest.fixture
def rows_read(inside: psycopg.Connection) -> Callable[[str, Sequence[object]], int]:
    """Tell how many rows of the store a statement looks at."""

    def count(statement: str, values: Sequence[object] = ()) -> int:
        with inside.transaction():
            before = inside.execute(ROWS_READ).fetchone()
            inside.execute(statement, values).fetchall()
            after = inside.execute(ROWS_READ).fetchone()
        assert before is not None
        assert after is not None
        return int(after[0]) - int(before[0])

    return count


def fill(inside: psycopg.Connection, many: int) -> None:
    inside.execute(STORE.format(many=many))


@pytest.mark.parametrize(
    "statuses",
    [None, ["ready"], ["running"], ["paused"], ["succeeded"], ["cancelled"], ["dead"], ["expired"]],
    ids=str,
)
def test_a_page_looks_at_little_more_than_it_shows(
    inside: psycopg.Connection, rows_read: Callable[..., int], statuses: list[str] | None
):
    fill(inside, 3_000)
    running = 300

    looked = rows_read(
        "SELECT * FROM find_jobs(now_ms(), %s, %s, 20, %s, " + ", ".join(["%s"] * 10) + ")",
        (LAST, SCAN, statuses, *parameters(Filter())),
    )

    assert looked <= running + 60


def test_a_page_of_dead_letters_looks_at_little_more_than_it_shows(
    inside: psycopg.Connection, rows_read: Callable[..., int]
):
    fill(inside, 6_000)

    looked = rows_read(
        "SELECT * FROM find_dead(%s, %s, %s, 20, " + ", ".join(["%s"] * 10) + ")",
        (LAST, LAST, SCAN, *parameters(Filter())),
    )

    assert looked <= 60


async def test_a_filter_that_fits_nothing_looks_at_a_stretch_and_says_where_to_go_on(
    engine: Engine, inside: psycopg.Connection, rows_read: Callable[..., int]
):
    fill(inside, 13_000)
    which = Filter(tenants=("nobody",))

    looked = rows_read(
        "SELECT * FROM find_jobs(now_ms(), %s, %s, 20, %s, " + ", ".join(["%s"] * 10) + ")",
        (LAST, SCAN, None, *parameters(which)),
    )
    pages, cursor = 0, None
    while pages == 0 or cursor is not None:
        page = await engine.inspector.jobs(which, limit=20, cursor=cursor)
        assert page.jobs == []
        cursor, pages = page.cursor, pages + 1

    assert SCAN <= looked <= SCAN + 1_400
    assert pages == 3


async def test_all_pages_together_are_all_jobs_newest_first(
    engine: Engine, inside: psycopg.Connection
):
    fill(inside, 300)
    found: list[str] = []
    cursor = None
    while not found or cursor is not None:
        page = await engine.inspector.jobs(Filter(), limit=70, cursor=cursor)
        found += [record.job.id for record in page.jobs]
        cursor = page.cursor

    rows = inside.execute("SELECT uuid_send(id) FROM any_job ORDER BY seq DESC").fetchall()
    assert found == ids.texts([row[0] for row in rows])


def test_the_status_in_the_store_is_the_one_of_the_model(inside: psycopg.Connection):
    states = (JobState.WAITING, JobState.RUNNING, JobState.BLOCKED, JobState.DEAD)
    for state, due, attempt, held, cancel in product(
        states, (True, False), (0, 1), (True, False), (True, False)
    ):
        row = inside.execute(
            "SELECT shown_status(%s, %s, %s, %s, %s, 10)",
            (
                state.value,
                10 if due else 11,
                attempt,
                "{}" if held else None,
                "{}" if cancel else None,
            ),
        ).fetchone()

        expected = status_of(state, due=due, attempt=attempt, held=held, cancel_requested=cancel)
        assert row == (expected.value,)


TAGS = [
    "plain",
    'a "quote"',
    "back\\slash",
    "\\u0000",
    "sl/ash",
    "/u0000",
    "ü",
    "🔥",
    "nul\x00",
    "]",
]


@pytest.mark.parametrize("tag", TAGS)
async def test_a_tag_is_found_whatever_it_is_made_of(engine: Engine, tag: str):
    others = tuple(other for other in TAGS if other != tag)
    (wanted, _, _) = await submit(
        engine,
        new_job(extras=Extras(tags=("first", tag), metadata={"note": "\x00 \ud800 \\u0000"})),
        new_job(extras=Extras(tags=others)),
        new_job(extras=Extras(tags=("first",), metadata={"tags": [tag], "a": tag})),
    )

    page = await engine.inspector.jobs(Filter(tag=tag), limit=10)

    assert [record.job.id for record in page.jobs] == [wanted]


async def test_a_name_that_cannot_be_stored_is_the_name_of_nothing(engine: Engine):
    (job_id,) = await submit(engine, new_job(tenant="blue"))
    for name in ("bl\x00ue", "blue\ud800"):
        which = Filter(tenants=(name,), types=(name,), queues=(name,), fingerprints=(name,))

        assert (await engine.inspector.jobs(which, limit=10)).jobs == []
        assert (await engine.inspector.dead_groups(which)).groups == []
        assert await engine.inspector.logs(job_id, tenant=name) == []
    page = await engine.inspector.jobs(Filter(tenants=("blue", "bl\x00ue")), limit=10)
    assert [record.job.id for record in page.jobs] == [job_id]


async def test_what_is_no_id_is_no_job(engine: Engine):
    for job_id in ("", "x", "U" * 26, "8" + "0" * 25, "\x00"):
        assert await engine.inspector.job(job_id) is None
        assert await engine.inspector.explain(job_id) is None
        assert await engine.inspector.attempts(job_id) == []
        assert await engine.inspector.logs(job_id) == []


async def test_a_few_ready_jobs_are_counted_among_very_many_scheduled_ones(
    engine: Engine,
):
    await submit(engine, *(new_job(tenant="z") for _ in range(3)))
    for _ in range(3):
        await submit(engine, *(new_job(tenant="a", delay_ms=3_600_000) for _ in range(7_000)))

    (queue,) = await engine.inspector.queues()

    assert (queue.ready, queue.scheduled) == (3, 10_000)
    assert queue.oldest_due_ms is not None


async def test_tenants_are_found_before_any_claim_has_seen_their_jobs(engine: Engine):
    names = [f"tenant-{n:04}" for n in range(1_100)]
    await submit(engine, *(new_job(tenant=name) for name in reversed(names)))
    await submit(engine, *(new_job("other", tenant=name) for name in names[:5]))

    found = await engine.inspector.tenants()

    assert [tenant.name for tenant in found] == names[:1_000]
    assert [tenant.waiting for tenant in found[:6]] == [2, 2, 2, 2, 2, 1]


async def test_tenants_of_very_many_jobs_are_counted_as_those_of_few(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    await submit(
        engine,
        *(new_job(type_name, tenant=f"t{n % 5}") for n in range(40) for type_name in ("a", "b")),
        *(new_job("a", tenant=f"t{n}", held=True) for n in range(9)),
        new_job("c", tenant="alone", delay_ms=60_000),
    )
    await claim(engine, 7, types=("a",))
    few = await engine.inspector.tenants()
    monkeypatch.setattr(inspect, "COUNTED", 10)

    many = await engine.inspector.tenants()

    assert many == few
    assert sum(tenant.waiting for tenant in few) == 80 + 1 - 7
    assert sum(tenant.running for tenant in few) == 7
