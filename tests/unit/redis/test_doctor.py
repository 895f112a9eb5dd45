"""check_up on Redis: each setting that matters is judged, and nothing is changed."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from lamplighter import runtime
from lamplighter.connect import connect
from lamplighter.engines.redis import server as servers
from lamplighter.engines.redis.server import Facts, Replica
from lamplighter.port.checkup import Checkup, Finding, Grade
from lamplighter.port.conformance.builders import claim, new_job, submit
from lamplighter.port.conformance.schedule_builders import new_schedule, put
from tests.servers.valkey import Server, any_program, start


def finding(found: Checkup, check: str) -> Finding:
    (one,) = [one for one in found.findings if one.check == check]
    return one


async def test_a_server_set_up_as_it_should_be_has_no_problem(server: Server):
    await connect(server.url()).migrate()

    found = await connect(server.url()).check_up()

    assert found.problems == 0
    assert {one.check for one in found.findings} == {
        "version",
        "role",
        "rights",
        "memory",
        "latency",
        "clock",
        "durability",
        "disk",
        "replicas",
        "schema",
        "index",
        "schedules",
    }
    assert finding(found, "version").text.startswith("the server is ")
    assert finding(found, "durability").text.startswith("verified: appendonly yes")
    assert "the last second or two" in finding(found, "durability").text
    assert re.fullmatch(r"an answer takes \d+\.\d ms", finding(found, "latency").text)
    assert finding(found, "index").text == "each is where it belongs; 0 jobs looked at"
    assert found.survives["the server is killed"] == "yes"


async def test_an_empty_server_has_no_store_and_gets_none(server: Server):
    found = await connect(server.url()).check_up()

    assert finding(found, "schema").grade is Grade.PROBLEM
    with server.client() as admin:
        assert admin.dbsize() == 0


async def test_what_open_would_refuse_is_a_finding(server: Server):
    with server.client() as admin:
        admin.set("{lamp:0}:meta", "x")
        admin.config_set("appendonly", "no")
        admin.replicaof("127.0.0.1", 1)

        found = await connect(server.url()).check_up()

    wrong = {one.check for one in found.findings if one.grade is Grade.PROBLEM}
    assert wrong == {"schema", "durability", "role"}
    assert all(one.remedy for one in found.findings if one.grade is Grade.PROBLEM)


async def test_memory_is_watched(server: Server):
    with server.client() as admin:
        assert finding(await connect(server.url()).check_up(), "memory").grade is Grade.NOTE
        used = int(admin.info("memory")["used_memory"])

        admin.config_set("maxmemory", used * 100)
        plenty = finding(await connect(server.url()).check_up(), "memory")
        admin.config_set("maxmemory", int(used * 1.1))
        little = finding(await connect(server.url()).check_up(), "memory")
        admin.config_set("maxmemory", used * 100)
        admin.config_set("maxmemory-policy", "volatile-ttl")
        drops = finding(await connect(server.url()).check_up(), "memory")

    assert (plenty.grade, little.grade, drops.grade) == (Grade.OK, Grade.WARNING, Grade.PROBLEM)
    assert re.search(r"^1% of \d+ MB are used; \d+ MB more", plenty.text)
    assert "from 80% on, new jobs are refused" in little.text
    assert "CONFIG SET maxmemory-policy noeviction" in drops.remedy


async def test_what_survives_follows_the_settings(server: Server):
    answers: dict[str, str] = {}
    with server.client() as admin:
        for flush in ("always", "everysec", "no"):
            admin.config_set("appendfsync", flush)
            found = await connect(server.url()).check_up()
            answers[flush] = found.survives["the server's machine fails"]
        admin.config_set("appendonly", "no")
        gone = (await connect(server.url()).check_up()).survives

    assert answers["always"] == "yes"
    assert len(set(answers.values())) == 3
    assert gone["the server is killed"] == "no"


async def test_no_more_connections_are_left_than_there_were(url: str, admin: redis.Redis, until):
    before = len(admin.client_list())

    await connect(url).check_up()

    await until(lambda: len(admin.client_list()) <= before)


@pytest.mark.parametrize("shards", [1, 4])
async def test_schedules_that_nobody_fires_are_found_and_left_where_they_are(
    server: Server, shards: int
):
    url = f"{server.url()}?shards={shards}"
    engine = connect(url)
    await engine.open()
    try:
        before = finding(await connect(url).check_up(), "schedules")
        now = runtime.now_ms()
        late = [new_schedule(f"late {n}", due_ms=now - 30_000) for n in range(3)]
        await put(engine, *late, new_schedule("later", due_ms=now + 3_600_000))
        waiting = finding(await connect(url).check_up(), "schedules")
        await put(engine, new_schedule("very late", due_ms=now - 90_000))
        nobody = finding(await connect(url).check_up(), "schedules")
        due = await engine.schedules.due_schedules(limit=10, lease_ms=10_000)
        in_hand = finding(await connect(url).check_up(), "schedules")
    finally:
        await engine.close()

    grades = [one.grade for one in (before, waiting, nobody, in_hand)]
    assert grades == [Grade.OK, Grade.WARNING, Grade.PROBLEM, Grade.OK]
    assert waiting.text.startswith("3 are due, the first for 3")
    assert "is a worker running?" in nobody.remedy
    assert len(due.schedules) == 4


# ── the disk, replicas, the time an answer takes ─────────────────────────────────────────────


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Change what the server says of itself: what no test can bring about."""
    real = servers.read

    def change(**fields: object) -> None:
        async def read(connection: object) -> Facts:
            return replace(await real(connection), **fields)  # pyright: ignore[reportArgumentType]

        monkeypatch.setattr(servers, "read", read)

    return change


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"log_written": False}, ("disk", Grade.PROBLEM, "aof_last_write_status")),
        ({"snapshot_written": False}, ("disk", Grade.PROBLEM, "rdb_last_bgsave_status")),
        ({"flushes_late": 7}, ("disk", Grade.WARNING, "too slow for the server 7 times")),
        ({"fork_ms": 2_000.0}, ("latency", Grade.WARNING, "stood still for 2000 ms")),
        (
            {"replicas": (Replica(name="a:1", online=True, behind=0, silent=60),)},
            ("replicas", Grade.WARNING, "`a:1` is online, 0 bytes behind, heard 60 s ago"),
        ),
        (
            {"replicas": (Replica(name="a:1", online=False, behind=5_000, silent=0),)},
            ("replicas", Grade.WARNING, "`a:1` is not in step yet, 5,000 bytes behind"),
        ),
        ({"version": (6, 2, 0), "program": "Redis"}, ("version", Grade.PROBLEM, "7.0 or newer")),
    ],
)
async def test_what_a_server_says_of_its_troubles_is_told_with_a_remedy(
    url: str, pretend: Callable[..., None], fields: dict[str, object], told: tuple[str, Grade, str]
):
    check, grade, words = told
    pretend(**fields)

    found = finding(await connect(url).check_up(), check)

    assert found.grade is grade
    assert words in found.text
    assert found.remedy


async def test_replicas_are_named_with_their_distance(server: Server, tmp_path: Path, until):
    engine = connect(server.url())
    alone = await engine.check_up()
    assert finding(alone, "replicas").text.startswith("none connected")
    assert alone.survives["the server's disk is lost, or a failover"].startswith("no:")

    with start(any_program(), tmp_path) as replica, server.client() as admin:
        with replica.client() as other:
            other.replicaof("127.0.0.1", server.port)
        await until(lambda: admin.info("replication").get("slave0", {}).get("state") == "online")
        found = await engine.check_up()

        assert finding(found, "replicas").grade is Grade.OK
        assert f"`127.0.0.1:{replica.port}` is online" in finding(found, "replicas").text
        failover = found.survives["the server's disk is lost, or a failover"]
        assert "only what had reached a replica" in failover


async def test_replicas_that_must_confirm_and_are_not_there_are_a_problem(server: Server):
    engine = connect(server.url(durability="replicated", replicas="2"))

    found = finding(await engine.check_up(), "replicas")

    assert found.grade is Grade.PROBLEM
    assert "0 are connected, and 2 must confirm" in found.text
    assert "replicas=" in found.remedy


# ── rights and indexes ───────────────────────────────────────────────────────────────────────


async def test_a_missing_right_is_told_with_the_line_that_gives_it(server: Server):
    await connect(server.url()).migrate()
    with server.client() as admin:
        admin.acl_setuser(
            "ada", enabled=True, nopass=True, keys=["{lamp:*"], commands=["+@all", "-zadd"]
        )

    found = await connect(server.url(login="ada:any@")).check_up()

    assert finding(found, "rights").grade is Grade.PROBLEM
    assert "`ada` may not run ZADD" in finding(found, "rights").text
    assert "ACL SETUSER ada ~{lamp:* +zadd" in finding(found, "rights").remedy
    assert finding(found, "index").grade is Grade.NOTE


@pytest.mark.parametrize("shards", ["1", "3"])
async def test_an_index_that_lost_a_job_is_told(url: str, admin: redis.Redis, shards: str):
    url = f"{url}&shards={shards}"
    engine = connect(url)
    await engine.open()
    ids = await submit(engine, *(new_job() for _ in range(5)))
    await claim(engine, 2)
    sound = await engine.check_up()
    assert finding(sound, "index").text == "each is where it belongs; 5 jobs looked at"

    (turn,) = admin.scan_iter(match=f"{{{url.partition('prefix=')[2].partition('&')[0]}:*turn:*")
    admin.zremrangebyrank(turn, -1, -1)
    found = await engine.check_up()
    await engine.close()

    index = finding(found, "index")
    assert index.grade is Grade.PROBLEM
    assert f"job {ids[-1]} waits, but is not in" in index.text
    assert "5 jobs looked at" in index.text
    assert "ACL" in index.remedy


async def test_a_store_at_work_is_not_called_broken(
    url: str, until: Callable[[Callable[[], object]], Awaitable[None]]
):
    engine = connect(url)
    await engine.open()
    over = False

    async def work() -> None:
        while not over:
            await submit(engine, *(new_job() for _ in range(50)))
            await claim(engine, 20)

    task = asyncio.create_task(work())
    for _ in range(10):
        assert finding(await engine.check_up(), "index").grade is Grade.OK
    over = True
    await task
    await engine.close()
