"""check_up on Redis: each setting that matters is judged, and nothing is changed."""

import redis

from lamplighter.engines.redis.engine import RedisEngine
from lamplighter.port.checkup import Checkup, Finding, Grade
from tests.servers.valkey import Server


def finding(found: Checkup, check: str) -> Finding:
    (one,) = [one for one in found.findings if one.check == check]
    return one


async def test_a_server_set_up_as_it_should_be_has_no_problem(server: Server):
    await RedisEngine(server.url()).migrate()

    found = await RedisEngine(server.url()).check_up()

    assert found.problems == 0
    assert {one.check for one in found.findings} == {
        "version",
        "role",
        "memory",
        "durability",
        "disk",
        "clock",
        "schema",
    }
    assert finding(found, "version").text.startswith("the server is ")
    assert found.survives["the server is killed"] == "yes"


async def test_an_empty_server_has_no_store_and_gets_none(server: Server):
    found = await RedisEngine(server.url()).check_up()

    assert finding(found, "schema").grade is Grade.PROBLEM
    with server.client() as admin:
        assert admin.dbsize() == 0


async def test_what_open_would_refuse_is_a_finding(server: Server):
    with server.client() as admin:
        admin.set("{lamp:0}:meta", "x")
        admin.config_set("appendonly", "no")
        admin.replicaof("127.0.0.1", 1)

        found = await RedisEngine(server.url()).check_up()

    wrong = {one.check for one in found.findings if one.grade is Grade.PROBLEM}
    assert wrong == {"schema", "durability", "role"}
    assert all(one.remedy for one in found.findings if one.grade is Grade.PROBLEM)


async def test_memory_is_watched(server: Server):
    with server.client() as admin:
        assert finding(await RedisEngine(server.url()).check_up(), "memory").grade is Grade.NOTE
        used = int(admin.info("memory")["used_memory"])

        admin.config_set("maxmemory", used * 100)
        plenty = finding(await RedisEngine(server.url()).check_up(), "memory")
        admin.config_set("maxmemory", int(used * 1.1))
        little = finding(await RedisEngine(server.url()).check_up(), "memory")
        admin.config_set("maxmemory-policy", "volatile-ttl")
        drops = finding(await RedisEngine(server.url()).check_up(), "memory")

    assert (plenty.grade, little.grade, drops.grade) == (Grade.OK, Grade.WARNING, Grade.PROBLEM)


async def test_what_survives_follows_the_settings(server: Server):
    answers: dict[str, str] = {}
    with server.client() as admin:
        for flush in ("always", "everysec", "no"):
            admin.config_set("appendfsync", flush)
            found = await RedisEngine(server.url()).check_up()
            answers[flush] = found.survives["the server's machine fails"]
        admin.config_set("appendonly", "no")
        gone = (await RedisEngine(server.url()).check_up()).survives

    assert answers["always"] == "yes"
    assert len(set(answers.values())) == 3
    assert gone["the server is killed"] == "no"


async def test_no_more_connections_are_left_than_there_were(url: str, admin: redis.Redis, until):
    before = len(admin.client_list())

    await RedisEngine(url).check_up()

    await until(lambda: len(admin.client_list()) <= before)
