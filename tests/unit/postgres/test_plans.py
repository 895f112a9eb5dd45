"""However many jobs there are, and whatever the server believes about them, a verb goes straight to
the rows it is about."""

import asyncio
from collections.abc import Iterator

import pytest

from lamplighter.engines.postgres.verbs.change import change
from lamplighter.engines.postgres.verbs.submit import submit
from lamplighter.model.changes import Action, table_of
from lamplighter.port.conformance.builders import new_job
from tests.servers.postgres import Binaries, Server, find_servers, newest_server, start
from tests.unit.postgres.plans.acts import ACTS, MANY
from tests.unit.postgres.plans.stores import QUIET, Seen, look_twice, new_store

pytestmark = pytest.mark.timeout(600)

BY_KEY = {"job": {"job_pkey"}, "done": {"done_id"}, "dead": {"dead_pkey"}}
LEAVING = {**BY_KEY, "job": {"job_pkey", "job_waiting"}}
MEANT: dict[str, dict[str, set[str]]] = {
    "claim": {"job": {"job_pkey", "job_waiting"}, "request": {"request_pkey"}},
    "claim of nothing": {"job": set(), "request": {"request_pkey"}},
    "rescue": {"job": {"job_running"}},
    "cancel": LEAVING,
    "hold": LEAVING,
    "prune": {
        "job": {"job_pkey", "job_running"},
        "done": {"done_finished", "done_id"},
        "dead": {"dead_finished", "dead_pkey"},
        "request": {"request_age", "request_pkey"},
        "idempotency": {"idempotency_age", "idempotency_pkey"},
    },
    "explain": LEAVING,
    "list": {
        "job": {"job_held", "job_newest", "job_pkey", "job_running"},
        "done": {"done_id", "done_rest", "done_seq", "done_succeeded"},
        "dead": {"dead_pkey", "dead_seq"},
    },
}
MEANT["prune of an hour"] = MEANT["prune"]
"""Through which indexes a verb may look at a table; by default through the key alone."""

MOST = {
    "claim": 30 * MANY,
    # Ten keys for each that it may remove, and each by its job in one of several tables.
    "prune": 60 * MANY,
    "prune of an hour": 60 * MANY,
    # A thousand jobs before this one are counted.
    "explain": 1_000 + MANY,
    "list": 20 * MANY,
}
"""How many rows a verb may read at most."""


def major(binaries: Binaries | None) -> str:
    return "no server" if binaries is None else f"PostgreSQL {binaries.version[0]}"


@pytest.fixture(scope="module", params=find_servers() or [None], ids=major)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with start(request.param or newest_server(), folder, settings=QUIET, fast=True) as running:
        yield running


@pytest.fixture(scope="module", params=["fresh", "none", "stale"])
def seen(server: Server, request: pytest.FixtureRequest) -> Seen:
    return look_twice(server, request.param)


@pytest.mark.parametrize("verb", ACTS)
def test_no_big_table_is_read_from_end_to_end(seen: Seen, verb: str) -> None:
    assert seen.small[verb].sequential == []
    assert seen.big[verb].sequential == []


@pytest.mark.parametrize("verb", ACTS)
def test_each_table_is_looked_at_through_the_index_that_is_meant(seen: Seen, verb: str) -> None:
    for table, meant in MEANT.get(verb, BY_KEY).items():
        assert seen.small[verb].indexes(table) <= meant, str(seen.small[verb])
        assert seen.big[verb].indexes(table) <= meant, str(seen.big[verb])


@pytest.mark.parametrize("verb", ACTS)
def test_the_rows_that_are_read_are_as_many_as_asked_for_and_not_as_there_are(
    seen: Seen, verb: str
) -> None:
    # A page of all jobs shows the running ones among them: as many as there are slots.
    slots = seen.running if verb == "list" else 0
    small, big = seen.small[verb].rows, seen.big[verb].rows

    assert big <= MOST.get(verb, 10 * MANY) + slots, str(seen.big[verb])
    # A claim reads more when more tenants share what it takes, up to one for each job.
    # A step of prune looks at ten keys for each that it may remove, and at the shares of 64 pages.
    wide = {"claim": 15, "explain": 10, "prune": 20, "prune of an hour": 20}
    enough = wide.get(verb, 1) * MANY
    assert big <= 1.5 * max(small, enough) + slots, str(seen.big[verb])


async def test_jobs_that_no_claim_has_seen_yet_are_not_in_the_way_of_a_cancel(
    server: Server,
) -> None:
    call = await asyncio.to_thread(new_store, server, "unseen")
    jobs = [new_job(tenant=f"t{n}") for n in range(2_000)]
    for start_at in (0, 1_000):
        await submit(call, jobs[start_at : start_at + 1_000])
    chosen = [job.id for job in jobs[500:510]]

    _, plans = await call.watch(
        lambda: change(call, chosen, table_of(Action.CANCEL), "test", "for the test")
    )
    call.close()

    assert plans.rows <= 20 * len(chosen), str(plans)


def test_the_verbs_do_what_they_are_watched_at(seen: Seen) -> None:
    for verb in ("claim", "settle", "rescue", "cancel", "hold", "unhold", "retry", "prune"):
        assert seen.big[verb].rows >= MANY, verb
