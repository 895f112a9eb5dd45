"""The rule of the guide: all that the engine needs, and nothing that harms the server."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from lamplighter.connect import connect
from lamplighter.engines.redis import acl
from lamplighter.engines.redis.address import parse
from lamplighter.model.errors import InvalidOption, StoreForbidden
from lamplighter.port.checkup import Grade
from lamplighter.port.conformance import builders
from lamplighter.port.conformance.schedule_builders import new_schedule
from lamplighter.port.values import Renewal, Retention
from tests.servers.valkey import Server

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "redis.md"


def line_of_the_guide() -> list[str]:
    """Give the words of the line, which the guide breaks so that it can be read."""
    found = re.search(r"^```text\n(ACL SETUSER app [^`]*)\n```", GUIDE.read_text(), re.MULTILINE)
    assert found is not None
    return found[1].split()


@pytest.fixture
def limited(server: Server) -> Iterator[redis.Redis]:
    """A connection of the guide's user."""
    with server.client() as admin:
        admin.execute_command(*line_of_the_guide())
        admin.config_set("requirepass", "of the administrator")
    with server.client(username="app", password="password") as client:
        yield client


@pytest.fixture
def url(server: Server, limited: redis.Redis) -> str:
    return server.url(login="app:password@")


def test_the_line_gives_what_is_needed_and_nothing_else(server: Server):
    words = line_of_the_guide()

    assert words[:5] == ["ACL", "SETUSER", "app", "on", ">password"]
    assert " ".join(words[5:]) == acl.rule(parse(server.url()))


HARMFUL = [
    "CONFIG GET requirepass",
    "CONFIG GET *",
    "CONFIG SET appendonly no",
    "CONFIG REWRITE",
    "FUNCTION FLUSH",
    "FUNCTION LIST",
    "SCRIPT FLUSH",
    "SCRIPT KILL",
    "FLUSHALL",
    "FLUSHDB",
    "KEYS *",
    "SCAN 0",
    "RANDOMKEY",
    "DBSIZE",
    "ACL LIST",
    "ACL SETUSER app +@all",
    "CLIENT LIST",
    "CLIENT KILL TYPE normal",
    "MONITOR",
    "REPLICAOF NO ONE",
    "SHUTDOWN NOSAVE",
    "SAVE",
    "SWAPDB 0 1",
    "SLOWLOG GET",
    "SUBSCRIBE news",
    "PUBLISH news x",
    "GET other",
    "SET other x",
    "EVAL return{redis.call('FLUSHALL')} 0",
    "EVAL return{redis.call('KEYS','*')} 0",
    "EVAL return{redis.call('GET','other')} 0",
]


@pytest.mark.parametrize("command", HARMFUL)
def test_the_user_may_not(limited: redis.Redis, command: str):
    with pytest.raises(redis.ResponseError) as refused:
        limited.execute_command(*command.split(" "))

    assert re.search("permission|ACL failure|NOPERM", f"{type(refused.value)} {refused.value}")


async def test_the_engine_makes_the_store_and_does_all_its_work(url: str):
    engine = connect(url)
    await engine.open()
    try:
        taken = await builders.running(engine)
        await engine.jobs.renew([Renewal(taken.job.id, taken.fence)], 30_000)
        await builders.settle_one(engine, builders.failed(taken))
        dead = await builders.died(engine)
        await engine.jobs.retry([dead.job.id], by="ada", reason="")
        await engine.jobs.hold([dead.job.id], by="ada", reason="")
        await engine.jobs.purge([dead.job.id], by="ada", reason="")
        await engine.jobs.prune(Retention(), 100)
        await engine.schedules.put_schedules([new_schedule()], by="ada")
        await engine.schedules.due_schedules(limit=10, lease_ms=1000)
        await engine.wakeup.notify("a")
        await engine.wakeup.wait(["a"], 0.05)
        assert await engine.inspector.queues()
    finally:
        await engine.close()


async def test_doctor_is_content_but_for_what_it_cannot_verify(url: str):
    await connect(url).migrate()

    found = await connect(url).check_up()

    assert not [one for one in found.findings if one.grade is Grade.PROBLEM]
    (durability,) = [one for one in found.findings if one.check == "durability"]
    assert "unverified" in durability.text


async def test_who_wants_to_grant_rights_gets_the_same_rule(server: Server):
    with pytest.raises(InvalidOption) as refused:
        await connect(server.url()).migrate(run=["app"])

    assert refused.value.hint.endswith(f"ACL SETUSER app {acl.rule(parse(server.url()))}")


async def test_a_command_that_is_taken_away_is_named(server: Server, url: str):
    with server.client(password="of the administrator") as admin:
        admin.execute_command("ACL", "SETUSER", "app", "-zpopmax")

    with pytest.raises(StoreForbidden, match="ZPOPMAX"):
        await connect(url).open()
