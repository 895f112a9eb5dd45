"""However many schedules are at rest, and whatever is dead between them, each verb goes straight to
those it is about; and jobs that no schedule made do not pay for those that one did."""

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest
from psycopg import Connection, IsolationLevel

from lamplighter.engines.postgres.verbs import inspect_schedules
from lamplighter.engines.postgres.verbs.change import change
from lamplighter.engines.postgres.verbs.delete_schedules import delete_schedules
from lamplighter.engines.postgres.verbs.due_schedules import due_schedules
from lamplighter.engines.postgres.verbs.fire import fire
from lamplighter.engines.postgres.verbs.put_schedules import put_schedules
from lamplighter.engines.postgres.verbs.settle import settle
from lamplighter.engines.postgres.verbs.submit import submit
from lamplighter.engines.postgres.verbs.trigger import trigger
from lamplighter.model.changes import Action, table_of
from lamplighter.model.ids import of_occurrence
from lamplighter.port.conformance.builders import completed, new_id, new_job
from lamplighter.port.schedules import (
    DueSchedules,
    FireAnswer,
    Firing,
    NewSchedule,
    Overlap,
    Run,
    RunKind,
    ScheduleFilter,
)
from tests.servers.postgres import Binaries, Server, find_servers, newest_server, start
from tests.unit.postgres.plans.caller import Caller
from tests.unit.postgres.plans.filling import take
from tests.unit.postgres.plans.looks import Plans
from tests.unit.postgres.plans.stores import QUIET, new_store

pytestmark = pytest.mark.timeout(600)

AT_REST = 100_000
MANY = 100
LEASE_MS = 60_000
HOUR_MS = 3_600_000
OURS = frozenset({"schedule", "run"})
NIGHT = 2**42  # a hundred years from now

# Half of those at rest wake some day, the others are held, or never due. Each has had two runs.
REST = f"""
INSERT INTO schedule (id, spec, tenant, type, cursor, due, wake, created, changed, hold, good)
SELECT 'rest ' || n, '{{}}', 't' || n % 100, 'work', 1, {NIGHT} + n,
       CASE n % 4 WHEN 0 THEN NULL ELSE {NIGHT} + n END, 1, 1,
       CASE n % 4 WHEN 1 THEN '{{}}' END, 2
FROM generate_series(1, {AT_REST}) AS n;
INSERT INTO run (schedule, due, kind, state, at, job, number)
SELECT 't' || (n / 2 + 1) % 100 || chr(1) || 'rest ' || n / 2 + 1, n % 2, 'due',
       CASE n % 20 WHEN 0 THEN 'dead' ELSE 'succeeded' END,
       1, gen_random_uuid(), 1
FROM generate_series(0, 2 * {AT_REST} - 1) AS n;
"""


def major(binaries: Binaries | None) -> str:
    return "no server" if binaries is None else f"PostgreSQL {binaries.version[0]}"


@pytest.fixture(scope="module", params=find_servers() or [None], ids=major)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with start(request.param or newest_server(), folder, settings=QUIET, fast=True) as running:
        yield running


@pytest.fixture(scope="module", params=["fresh", "none"])
def call(server: Server, request: pytest.FixtureRequest) -> Iterator[Caller]:
    """A store with many schedules at rest, with and without statistics."""
    made = new_store(server, f"at_rest_{request.param}")
    made.script(REST)
    if request.param == "fresh":
        made.run("ANALYZE")
    # What a session does first, it also learns to do.
    asyncio.run(_round(made))
    yield made
    made.close()


_numbers = count()


async def _put(call: Caller, number: int = MANY) -> list[str]:
    """Put schedules that are due now."""
    names = [f"due {next(_numbers)}" for _ in range(number)]
    await put_schedules(call, [_new(name) for name in names])
    return names


def _new(name: str) -> NewSchedule:
    return NewSchedule(id=name, spec="{}", tenant="default", type="mail", due_ms=1)


def _run(name: str, due_ms: int, overlap: Overlap, kind: RunKind = RunKind.DUE) -> Run:
    job = new_job("mail", id=of_occurrence("default", name, due_ms), queue="first", schedule=name)
    return Run(due_ms=due_ms, job=job, overlap=overlap, kind=kind)


def _plans(found: DueSchedules, overlap: Overlap) -> list[Firing]:
    now = found.now_ms
    return [
        Firing(
            tenant="default",
            id=one.record.id,
            version=one.record.version,
            cursor_ms=one.record.cursor_ms,
            next_cursor_ms=now,
            due_ms=now + HOUR_MS,
            runs=(_run(one.record.id, now, overlap),),
            keep=(0, 0),
        )
        for one in found.schedules
    ]


async def _hand_out(call: Caller, limit: int = MANY) -> DueSchedules:
    return await due_schedules(call, limit, LEASE_MS, newest_first=False)


async def _round(call: Caller, overlap: Overlap = Overlap.SKIP) -> None:
    """Let some schedules fire, and their jobs end."""
    await _put(call)
    await fire(call, _plans(await _hand_out(call), overlap))
    await settle(call, [completed(one) for one in await take(call, MANY)])


def _rows(plans: Plans) -> int:
    return sum(look.rows for look in plans.looks if look.table in OURS)


def _check(plans: Plans, most: int) -> None:
    """Nothing is read from end to end, and no more than that is read."""
    assert [look for look in plans.looks if look.kind == "Seq Scan" and look.table in OURS] == []
    assert _rows(plans) <= most, str(plans)


@pytest.mark.parametrize("newest_first", [False, True])
async def test_schedules_that_are_due_are_found_among_many_at_rest(
    call: Caller, *, newest_first: bool
) -> None:
    await _put(call, 3 * MANY)

    found, plans = await call.watch(
        lambda: due_schedules(call, MANY, LEASE_MS, newest_first=newest_first)
    )

    assert (len(found.schedules), found.poll_after_ms) == (MANY, 0)
    assert plans.indexes("schedule") == {"schedule_wake"}
    assert plans.indexes("run") == {"run_backfill"}
    _check(plans, 6 * MANY)
    call.run("DELETE FROM schedule WHERE id LIKE 'due %'")


async def test_a_look_for_due_schedules_that_finds_none_reads_next_to_nothing(
    call: Caller,
) -> None:
    # What other tests have left, in whatever order they came, is due once its jobs have ended.
    call.run("DELETE FROM schedule WHERE id LIKE 'due %'")

    found, plans = await call.watch(lambda: _hand_out(call, 10_000))

    assert found.schedules == []
    _check(plans, 10)


@pytest.mark.parametrize("overlap", Overlap)
async def test_plans_touch_only_what_they_are_about(call: Caller, overlap: Overlap) -> None:
    await _round(call, overlap)
    call.run("UPDATE schedule SET wake = now_ms() WHERE id LIKE 'due %'")
    found = await _hand_out(call)

    said, plans = await call.watch(lambda: fire(call, _plans(found, overlap)))

    assert {one.answer for one in said} == {FireAnswer.DONE}
    assert plans.indexes("schedule") == {"schedule_pkey"}
    assert plans.indexes("run") <= {"run_pkey", "run_queued", "run_good", "run_rest", "run_job"}
    assert plans.indexes("job") <= {"job_pkey"}
    _check(plans, 12 * MANY)
    call.run("DELETE FROM schedule WHERE id LIKE 'due %'")
    call.run("DELETE FROM run WHERE schedule LIKE 'due %'")
    await settle(call, [completed(one) for one in await take(call, MANY)])


_LISTED = ScheduleFilter(tenants=("t7",), prefix="rest 7")


async def test_other_verbs_of_schedules_touch_only_what_they_are_about(call: Caller) -> None:
    names = await _put(call)
    await fire(call, _plans(await _hand_out(call), Overlap.SKIP))
    wish = _run(names[0], 1, Overlap.CANCEL_RUNNING, RunKind.TRIGGER)

    for act, most in (
        (lambda: put_schedules(call, [_new(name) for name in names]), 4 * MANY),
        (lambda: trigger(call, names[0], wish, "default"), 60),
        (lambda: inspect_schedules.schedule(call, "default", names[0]), 1),
        (lambda: inspect_schedules.schedules(call, _LISTED, 10, None), 20),
        (lambda: inspect_schedules.runs(call, "default", names[0], 10, None), 20),
        (lambda: delete_schedules(call, names, "ada", "no more", "default"), 12 * MANY),
    ):
        _, plans = await call.watch(act)
        _check(plans, most)
        assert plans.indexes("schedule") <= {"schedule_pkey"}
    await settle(call, [completed(one) for one in await take(call, MANY)])


async def test_jobs_that_no_schedule_made_end_without_a_look_at_schedules(call: Caller) -> None:
    jobs = [new_job("mail", queue="first") for _ in range(3)]
    await submit(call, jobs)
    ended = [completed(one) for one in await take(call, 2)]

    for act in (
        lambda: settle(call, ended),
        lambda: change(call, [one.id for one in jobs], table_of(Action.CANCEL), "ada", "no more"),
    ):
        _, plans = await call.watch(act)
        assert [look for look in plans.looks if look.table in OURS] == []


async def test_jobs_of_a_schedule_find_their_runs_by_index_when_they_end(call: Caller) -> None:
    await _put(call)
    await fire(call, _plans(await _hand_out(call), Overlap.SKIP))
    ended = [completed(one) for one in await take(call, MANY)]

    _, plans = await call.watch(lambda: settle(call, ended))

    assert len(ended) == MANY
    assert plans.indexes("run") == {"run_job", "run_queued"}
    assert plans.indexes("schedule") == {"schedule_pkey"}
    _check(plans, 6 * MANY)
    call.run("DELETE FROM schedule WHERE id LIKE 'due %'")


async def test_what_was_fired_before_is_in_nobodys_way_while_a_snapshot_is_kept(
    server: Server,
) -> None:
    """A backup keeps every dead row; whoever looks for due schedules must not visit them."""
    call = await asyncio.to_thread(new_store, server, f"kept_{new_id().lower()}")
    await _put(call)
    _, before = await call.watch(lambda: _hand_out(call))
    with _backup(server):
        for _ in range(60):
            # Time passes: what was handed out long ago is not looked at again.
            call.run("UPDATE schedule SET wake = now_ms()")
            await _hand_out(call)
        call.run("UPDATE vigil SET clean = now_ms() + 5000, whole = now_ms()")
        call.run("UPDATE schedule SET wake = now_ms() + 5000")
        _, after = await call.watch(lambda: _hand_out(call))
        _, blind = await _without_vigil(call)
    call.close()

    assert after.buffers_of("schedule") <= max(20, before.buffers_of("schedule"))
    assert blind.buffers_of("schedule") > 10 * after.buffers_of("schedule")


async def _without_vigil(call: Caller) -> tuple[DueSchedules, Plans]:
    """Look at all, as one does once a minute."""
    call.run("UPDATE vigil SET whole = 0")
    return await call.watch(lambda: _hand_out(call))


def _backup(server: Server) -> Connection:
    connection = server.connect()
    connection.autocommit = False
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    connection.execute("SELECT 1")
    return connection
