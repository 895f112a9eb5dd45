"""Names that look like keys, patterns or hash tags: each is itself, and shares nothing."""

from collections.abc import AsyncIterator
from itertools import combinations
from pathlib import Path

import pytest

from lamplighter.engines.redis.keys import encode
from lamplighter.model.errors import InvalidName
from lamplighter.model.filters import Filter
from lamplighter.port.conformance.builders import claim, completed, key, new_job, submit
from lamplighter.port.values import TenantSettings
from tests.unit.redis.stores import Store, opened

NAMES = (
    *("a:b", "a", "b", "a%3Ab", "a}{x", "a}", "{x}", "*", "?", "[a-z]", "%", "%2A", "~", "..", " "),
    *("a\nb", "é", "e\u0301", "A", "\U0001f56f", "x" * 64, "\U0001f56f" * 64),
)
LONG = "y" * 65_536


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path, 1) as store:
        yield store


def own_keys(store: Store, tenant: str) -> set[bytes]:
    """The keys that are this tenant's alone."""
    start = store.key("").encode()
    end = encode(tenant).encode()
    return {
        one
        for kind in ("turn", "key")
        for one in store.keys().get(kind, [])
        if end in one.removeprefix(start).split(b":")
    }


async def test_every_tenant_has_jobs_and_keys_of_its_own(store: Store):
    """Nothing is lost, mixed up, or seen under another name."""
    jobs = {name: new_job(tenant=name, key=key("k", scope=name)) for name in NAMES}
    await submit(store.engine, *jobs.values())

    for name, job in jobs.items():
        page = await store.engine.inspector.jobs(Filter(tenants=(name,)), limit=10)
        assert [one.job.id for one in page.jobs] == [job.id], name
    keys = {name: own_keys(store, name) for name in NAMES}
    assert all(len(mine) == 2 for mine in keys.values())
    for one, other in combinations(NAMES, 2):
        assert not keys[one] & keys[other], (one, other)

    claims = await claim(store.engine, 100)
    assert {one.job.tenant: one.job.id for one in claims} == {
        name: job.id for name, job in jobs.items()
    }
    await store.engine.jobs.settle([completed(one) for one in claims])
    assert store.keys().get("turn", []) == []
    assert await store.faults() == ()


async def test_a_hold_holds_only_who_is_named(store: Store):
    await submit(store.engine, *(new_job(tenant=name) for name in ("*", "a:b", "a", "a}{x")))
    for name in ("*", "a:b"):
        settings = TenantSettings(held=True)
        await store.engine.settings.put_tenant(name, settings, by="ada", reason="")

    assert {one.job.tenant for one in await claim(store.engine, 10)} == {"a", "a}{x"}


@pytest.mark.parametrize("size", [257, 65_536])
async def test_a_tenant_of_too_many_bytes_is_refused_whole(store: Store, size: int):
    before = store.keys()

    with pytest.raises(InvalidName, match="the limit is 256") as refused:
        await store.engine.jobs.submit([new_job(), new_job(tenant="y" * size)])

    assert len(str(refused.value)) < 500
    assert refused.value.hint
    assert store.keys() == before


@pytest.mark.parametrize("field", ["tenant", "queue", "type", "requirement"])
@pytest.mark.parametrize("name", ["a\x00b", "\x00", "default\x005\x00work", "half \ud800"])
async def test_a_name_that_would_end_early_is_refused_whole(store: Store, field: str, name: str):
    """Otherwise it could be read as the queue or the type of somebody else."""
    before = store.keys()

    with pytest.raises(InvalidName, match=r"NUL|half of a character") as refused:
        await store.engine.jobs.submit([new_job(), new_job(**{field: name})])

    assert "\x00" not in str(refused.value)
    assert refused.value.hint
    assert store.keys() == before


@pytest.mark.parametrize("field", ["queue", "type"])
async def test_other_names_of_64_kb_are_themselves(store: Store, field: str):
    job = new_job(**{field: LONG})
    await submit(store.engine, job, new_job(**{field: LONG[:-1]}))

    found = await store.engine.inspector.job(job.id)

    assert found is not None
    assert getattr(found.job, field) == LONG
    assert await store.faults() == ()
