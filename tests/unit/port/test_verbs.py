"""The table of verbs that every engine brings, and what stands before a call of one."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lamplighter.connect import connect
from lamplighter.engines.postgres import driver as postgres
from lamplighter.engines.redis import driver as redis
from lamplighter.engines.sqlite import driver as sqlite
from lamplighter.engines.sqlite.verbs.rescue import rescue
from lamplighter.model.errors import InvalidInput, StoreClosed
from lamplighter.model.filters import Filter
from lamplighter.observability import events
from lamplighter.port.store import VERBS, Engine
from lamplighter.port.values import Retention

Table = Sequence[Callable[..., Any]]
TABLES: dict[str, Table] = {
    "sqlite": (*sqlite._WRITES, *sqlite._SOFT_WRITES, *sqlite._READS, rescue),
    "postgres": postgres._VERBS,
    "redis": redis._VERBS,
}


def given(verb: Callable[..., Any]) -> list[str]:
    """Names of a verb's parameters but the first, its way to the store, and those with defaults."""
    parameters = list(inspect.signature(verb).parameters.values())[1:]
    return [one.name for one in parameters if one.default is one.empty]


@pytest.mark.parametrize("engine", TABLES)
def test_an_engine_brings_each_verb_once(engine: str):
    assert sorted(verb.__name__ for verb in TABLES[engine]) == list(VERBS)


@pytest.mark.parametrize("engine", ["postgres", "redis"])
def test_all_engines_call_a_verb_with_the_same(engine: str):
    expected = {verb.__name__: given(verb) for verb in TABLES["sqlite"]}

    assert {verb.__name__: given(verb) for verb in TABLES[engine]} == expected


@pytest.fixture
async def engine(tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/jobs.db")
    await engine.open()
    yield engine
    await engine.close()


async def test_a_store_that_is_not_open_refuses_its_verbs_and_its_wakeup(tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/jobs.db")
    with pytest.raises(StoreClosed, match=r"jobs\.db` is not open"):
        await engine.inspector.counts()
    with pytest.raises(StoreClosed):
        await engine.wakeup.notify("queue:default")

    await engine.open()
    await engine.inspector.counts()
    await engine.close()
    await engine.close()

    with pytest.raises(StoreClosed):
        await engine.jobs.prune(Retention(), 1)


async def test_too_many_items_are_refused_before_the_store_is_asked(engine: Engine):
    with pytest.raises(InvalidInput, match="10001 items"):
        await engine.jobs.cancel(["x"] * 10_001, by="ada", reason="")


async def test_a_call_that_fails_is_told_with_its_verb(engine: Engine):
    told: list[tuple[str, dict[str, Any]]] = []
    stop = events.listen(lambda name, fields: told.append((name, dict(fields))))
    try:
        await engine.inspector.counts()
        with pytest.raises(InvalidInput):
            await engine.inspector.jobs(Filter(), limit=1, cursor="nonsense")
    finally:
        stop()

    calls = [(name, fields["verb"]) for name, fields in told if "verb" in fields]
    assert (events.STORE_CALL, "counts") in calls
    assert (events.STORE_ERROR, "jobs") in calls
