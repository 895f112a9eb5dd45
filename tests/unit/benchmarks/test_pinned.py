import sqlite3
from pathlib import Path

from benchmarks.engines import fresh_store
from benchmarks.fleet import fill, opened
from benchmarks.parts import pinned


def test_claims_are_compared_with_those_before():
    found = pinned.told([1.0] * 99 + [2.0], [[1.0] * 50, [4.0] * 50, [12.0] * 50], [1.0])

    assert found["before_p99_ms"] == 1.0
    assert found["p99_ms"] == 12.0
    assert found["p99_ratio"] == 12.0
    assert found["windows_p50_ms"] == [1.0, 4.0, 12.0]
    assert found["claims"] == 150


def test_a_claim_that_became_too_dear_misses_the_budget():
    for late, mark in ((4.0, "ok"), (6.0, "MISSED")):
        found = pinned.told([1.0], [[late]], [1.0]) | {"seconds": 20.0}

        assert [line.mark for line in pinned.lines(found) if line.budget is not None] == [mark]


async def test_the_flow_leaves_as_many_waiting_as_it_found(tmp_path):
    with fresh_store("sqlite", tmp_path) as store:
        async with opened(store) as program:
            await fill(program, 150)
            flow = pinned.Flow(program)

            claims = await flow.run(0.2)

            counts = await (await program.app.engine()).inspector.counts()
    assert len(claims) * 100 == flow.jobs == counts["succeeded"]
    assert counts["waiting"] == 150
    assert counts["running"] == 0


async def test_the_transaction_left_open_keeps_seeing_the_old_state(tmp_path):
    with fresh_store("sqlite", tmp_path) as store:
        async with opened(store) as program:
            await fill(program, 10)
            with pinned.left_open(store):
                await fill(program, 10)
                path = Path(store.url.removeprefix("sqlite:///"))
                with sqlite3.connect(path) as connection:
                    row = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert row[0] == 1, "a reader stands in the way"
