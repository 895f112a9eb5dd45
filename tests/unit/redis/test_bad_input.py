"""What cannot work is refused with its cause and remedy, before anything is written."""

import asyncio
import contextlib
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis

from lamplighter.connect import connect
from lamplighter.engines.redis import acl, faults
from lamplighter.engines.redis.address import parse
from lamplighter.model.errors import (
    InvalidUrl,
    LamplighterError,
    StoreBusy,
    StoreForbidden,
    StoreReadOnly,
    StoreUnreachable,
)
from lamplighter.port.conformance.builders import claim, completed, new_job, submit
from lamplighter.port.values import SubmitAnswer
from tests.servers.valkey import Server, any_program, start

SECRET = "s3cr3t-word"


@pytest.fixture
def admin(server: Server) -> Iterator[redis.Redis]:
    with server.client() as client:
        yield client


async def refusal(url: str, admin: redis.Redis, deadline: float = 1.0) -> LamplighterError:
    """Say why the store at this address is not opened; nothing was written, no secret shown."""
    before = admin.dbsize()
    with pytest.raises(LamplighterError) as refused:
        await connect(url, deadline=deadline).open()
    assert admin.dbsize() == before
    assert SECRET not in f"{refused.value!r} {refused.value} {refused.value.value}"
    assert refused.value.hint
    return refused.value


# ── the address ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (("redis://", "reddis://"), "`reddis"),
        (("redis://", "http://"), "`http"),
        (("PORT", "port"), "its port is no number from 1 to 65535"),
        (("PORT", "99999"), "its port is no number from 1 to 65535"),
        (("/0", "/one"), "the database `one` is no number"),
        (("?", "?colour=red&"), "an option `colour` that is not known"),
        (("?", "?durability=everysecond&"), "durability=`everysecond` is not known"),
        (("?", "?shards=0&"), "shards=`0` cannot be used"),
        (("?", "?shards=abc&"), "shards=`abc` cannot be used"),
        (("?", "?shards=2000&"), "shards=`2000` cannot be used"),
        (("?", "?replicas=2&"), "waits for no replica"),
    ],
)
async def test_an_address_that_cannot_be_read(
    server: Server, admin: redis.Redis, change: tuple[str, str], cause: str
):
    url = f"redis://ada:{SECRET}@127.0.0.1:PORT/0?prefix=lamp".replace(*change)

    error = await refusal_of(url.replace("PORT", str(server.port)), admin)

    assert isinstance(error, InvalidUrl)
    assert cause in error.cause


async def refusal_of(url: str, admin: redis.Redis) -> LamplighterError:
    """Say why an address is refused when it is read."""
    with pytest.raises(LamplighterError) as refused:
        parse(url)
    assert admin.dbsize() == 0
    assert SECRET not in f"{refused.value!r} {refused.value} {refused.value.value}"
    return refused.value


async def test_a_database_beyond_those_there_are(server: Server, admin: redis.Redis):
    error = await refusal(server.url(99), admin)

    assert isinstance(error, StoreUnreachable)
    assert "DB index is out of range" in error.cause
    assert "`databases`" in error.hint


async def test_another_number_of_shards_than_the_store_has(server: Server, admin: redis.Redis):
    await connect(server.url(shards="2")).migrate()

    error = await refusal(server.url(shards="3"), admin)

    assert isinstance(error, InvalidUrl)
    assert "shards=3" in error.cause
    assert "made with 2" in error.cause
    assert "shards=2" in error.hint


# ── who asks ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("login", "said"),
    [
        ("", "NOAUTH"),
        (f":{SECRET}@", "WRONGPASS"),
        (f"ada:{SECRET}@", "WRONGPASS"),
        (f"nobody:{SECRET}@", "WRONGPASS"),
    ],
)
async def test_a_wrong_user_or_password_is_refused_at_once(
    server: Server, admin: redis.Redis, login: str, said: str
):
    admin.acl_setuser("ada", enabled=True, passwords=["+other"], keys=["*"], categories=["+@all"])
    admin.config_set("requirepass", "right")
    began = time.monotonic()

    error = await refusal(server.url(login=login), admin, deadline=20)

    assert isinstance(error, StoreUnreachable)
    assert f"refuses the login: {said}" in error.cause
    assert "redis://user:password@host" in error.hint
    assert time.monotonic() - began < 4


def user(
    admin: redis.Redis,
    keys: str = "{lamp:*",
    commands: tuple[str, ...] = ("+@all",),
) -> None:
    """Make a user `ada` who may do this."""
    admin.acl_setuser(
        "ada", reset=True, enabled=True, passwords=[f"+{SECRET}"], keys=[keys], commands=commands
    )


LOGIN = f"ada:{SECRET}@"


@pytest.mark.parametrize(
    "command", ["ping", "info", "eval", "evalsha", "zadd", "mset", "time", "hset", "blpop"]
)
async def test_a_user_without_a_command_is_told_the_line_that_gives_it(
    server: Server, admin: redis.Redis, command: str
):
    user(admin, commands=("+@all", f"-{command}"))

    error = await refusal(server.url(login=LOGIN), admin)

    assert isinstance(error, StoreForbidden)
    assert f"the Redis user `ada` may not run {command.upper()} at" in error.cause
    line = error.hint.partition("let an administrator say: ")[2]
    assert line.startswith("ACL SETUSER ada ")
    # The line is right: with it, all works.
    admin.execute_command(*line.split(" "))
    engine = connect(server.url(login=LOGIN))
    await engine.open()
    await submit(engine, new_job())
    await engine.close()


async def test_a_user_who_loses_a_command_later_is_told_the_same(
    server: Server, admin: redis.Redis
):
    user(admin)
    engine = connect(server.url(login=LOGIN))
    await engine.open()
    admin.execute_command("ACL", "SETUSER", "ada", "-hmget")

    # Redis 7.0 does not say which one.
    with pytest.raises(StoreForbidden, match=r"`ada` may not (run HMGET|do this)") as refused:
        await engine.jobs.submit([new_job()])

    assert "ACL SETUSER ada " in refused.value.hint
    assert SECRET not in str(refused.value)
    await engine.close()


async def test_a_user_with_exactly_the_rights_that_are_asked_for_can_work(
    server: Server, admin: redis.Redis
):
    needed = acl.needed(parse(server.url()))
    user(admin, commands=tuple(f"+{name.lower()}" for name in needed))
    engine = connect(server.url(login=LOGIN))
    await engine.open()
    await submit(engine, new_job(), new_job(delay_ms=1))
    (held,) = await claim(engine)
    await engine.jobs.settle([completed(held)])
    await engine.jobs.cancel([held.job.id], by="ada", reason="")
    await engine.wakeup.notify("topic")
    await engine.wakeup.wait(["topic"], 0.05)
    assert (await engine.check_up()).problems == 0
    await engine.close()


@pytest.mark.parametrize("keys", ["{other:*", "lamp:*", "%R~{lamp:*"])
async def test_a_user_without_the_keys_of_the_store_is_told_the_line_that_gives_them(
    server: Server, admin: redis.Redis, keys: str
):
    admin.execute_command(
        *("ACL", "SETUSER", "ada", "on", f">{SECRET}", "+@all"),
        keys if keys.startswith("%") else f"~{keys}",
    )

    error = await refusal(server.url(login=LOGIN), admin)

    assert isinstance(error, StoreForbidden)
    assert "the Redis user `ada` may not" in error.cause
    line = error.hint.partition("let an administrator say: ")[2]
    assert line.startswith("ACL SETUSER ada ~{lamp:*")
    admin.execute_command(*line.split(" "))
    await connect(server.url(login=LOGIN)).migrate()


async def test_a_needed_command_that_was_renamed_is_named(tmp_path: Path):
    renamed = tmp_path / "renamed.conf"
    renamed.write_text('rename-command ZADD ""\n')
    with (
        start(any_program(), tmp_path, settings={"include": str(renamed)}) as server,
        server.client() as admin,
    ):
        error = await refusal(server.url(), admin)

    assert isinstance(error, StoreForbidden)
    assert "does not know ZADD" in error.cause
    assert "rename-command" in error.hint


# ── which server ─────────────────────────────────────────────────────────────────────────────


class OldServer:
    """Says what an old server says: there is none to be had."""

    def __init__(self, version: str) -> None:
        self.ended = asyncio.Event()
        self._info = f"# Server\r\nredis_version:{version}\r\nrole:master\r\n".encode()
        self.heard: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.heard.append(data)
            if b"INFO" in data:
                writer.write(b"$%d\r\n%b\r\n" % (len(self._info), self._info))
            elif b"CONFIG" in data:
                writer.write(b"-ERR wrong number of arguments for CONFIG GET\r\n")
            else:
                writer.write(b"+OK\r\n")
        writer.close()
        self.ended.set()


async def test_a_server_that_is_too_old_is_asked_nothing_more():
    old = OldServer("6.2.14")
    async with await asyncio.start_server(old.serve, "127.0.0.1", 0) as running:
        url = f"redis://127.0.0.1:{running.sockets[0].getsockname()[1]}"
        with pytest.raises(StoreUnreachable) as refused:
            await connect(url).open()
        await old.ended.wait()

    assert "is Redis 6.2.14; Redis 7.0 or newer is needed" in refused.value.cause
    assert not any(b"EVAL" in data for data in old.heard)


async def test_one_server_of_a_cluster_is_refused(tmp_path: Path):
    # Its second port would be one that the system lends to others.
    settings = {"cluster-enabled": "yes", "cluster-port": "19999"}
    with start(any_program(), tmp_path, settings=settings) as server, server.client() as admin:
        error = await refusal(server.url(), admin)

    assert isinstance(error, StoreUnreachable)
    assert "one of a cluster" in error.cause
    assert "primary with replicas" in error.hint


async def test_a_replica_is_refused(server: Server, admin: redis.Redis):
    admin.replicaof("127.0.0.1", 1)

    error = await refusal(server.url(), admin)

    assert isinstance(error, StoreReadOnly)
    assert "is a replica, which only reads" in error.cause
    assert "primary" in error.hint


async def test_tls_where_the_server_speaks_plainly(server: Server, admin: redis.Redis):
    error = await refusal(server.url().replace("redis://", f"rediss://{LOGIN}"), admin)

    assert isinstance(error, StoreUnreachable)
    assert "TLS" in error.hint
    assert "redis://…" in error.hint


@pytest.fixture
def secure_port(tmp_path: Path) -> Iterator[int]:
    """A port where somebody expects TLS, and hangs up when he hears something else."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        while True:
            channel, _ = listener.accept()
            with channel, contextlib.suppress(OSError):
                if over.is_set():
                    return
                context.wrap_socket(channel, server_side=True).close()

    thread = threading.Thread(target=serve)
    thread.start()
    with listener:
        port = listener.getsockname()[1]
        yield port
        over.set()
        socket.create_connection(("127.0.0.1", port)).close()
        thread.join(20)


async def test_plain_words_where_the_server_speaks_tls(secure_port: int, admin: redis.Redis):
    error = await refusal(f"redis://{LOGIN}127.0.0.1:{secure_port}", admin)

    assert isinstance(error, StoreUnreachable)
    assert "rediss://" in error.hint


# ── a server that cannot now ─────────────────────────────────────────────────────────────────


@contextlib.asynccontextmanager
async def loading(server: Server, seconds: float) -> AsyncIterator[None]:
    """Let the server read its data for about so long."""
    with server.client() as admin:
        admin.execute_command("DEBUG", "POPULATE", "1000")
        await asyncio.to_thread(admin.bgrewriteaof)
        while admin.info("persistence")["aof_rewrite_in_progress"]:  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)
    server.stop()
    server.settings |= {"key-load-delay": str(int(seconds * 1000)), **OFTEN}
    starting = asyncio.create_task(asyncio.to_thread(server.run))
    try:
        await asyncio.to_thread(_until_said, server, b"-LOADING")
        yield
    finally:
        await starting


OFTEN = {"loading-process-events-interval-bytes": "1024"}


def _until_said(server: Server, word: bytes) -> None:
    """Ask until the server answers so; a client of another make would ask again by itself."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", server.port)) as one,
        ):
            one.settimeout(5)
            one.sendall(b"PING\r\n")
            if one.recv(100).startswith(word):
                return
        time.sleep(0.01)
    pytest.fail(f"the server never said {word!r}")


@pytest.fixture
def populated(tmp_path: Path) -> Iterator[Server]:
    settings = {"enable-debug-command": "yes"}
    with start(any_program(), tmp_path, settings=settings) as running:
        yield running


async def test_a_server_that_reads_its_data_for_long_is_called_busy(populated: Server):
    async with loading(populated, 3.0):
        with pytest.raises(StoreBusy, match="LOADING") as refused:
            await connect(populated.url(), deadline=0.5).open()

    assert "read its data" in refused.value.hint
    with populated.client() as admin:
        assert admin.dbsize() == 1000


async def test_a_server_that_soon_has_read_its_data_is_waited_for(populated: Server):
    async with loading(populated, 1.0):
        await connect(populated.url()).migrate()


async def test_a_server_that_wants_more_replicas_is_called_busy_and_writes_nothing(
    server: Server, admin: redis.Redis
):
    engine = connect(server.url(), deadline=0.5)
    await engine.open()
    job = new_job()
    admin.config_set("min-replicas-to-write", 1)
    before = admin.dbsize()

    with pytest.raises(StoreBusy, match="NOREPLICAS") as refused:
        await engine.jobs.submit([job])

    assert "min-replicas-to-write" in refused.value.hint
    assert admin.dbsize() == before
    admin.config_set("min-replicas-to-write", 0)
    (answer,) = await engine.jobs.submit([job])
    assert answer.answer is SubmitAnswer.CREATED
    await engine.close()


async def test_calls_outlive_a_failover_of_their_server_and_back(
    server: Server, admin: redis.Redis
):
    """READONLY, then the same server writes again: what was asked is done once."""
    engine = connect(server.url())
    await engine.open()
    await submit(engine, new_job())
    (held,) = await claim(engine)
    admin.replicaof("127.0.0.1", 1)
    asked = [
        asyncio.create_task(engine.jobs.submit([new_job()])),
        asyncio.create_task(engine.jobs.settle([completed(held)])),
    ]
    await asyncio.sleep(0.2)
    assert not any(task.done() for task in asked)
    admin.replicaof("NO", "ONE")

    await asyncio.gather(*asked)
    counts = await engine.inspector.counts()
    assert (counts["waiting"], counts["succeeded"]) == (1, 1)
    await engine.close()


async def test_a_replica_that_lost_its_primary_is_told_from_one_that_reads(
    server: Server, admin: redis.Redis
):
    engine = connect(server.url(), deadline=0.5)
    await engine.open()
    admin.config_set("replica-serve-stale-data", "no")
    admin.replicaof("127.0.0.1", 1)

    with pytest.raises(StoreBusy, match="MASTERDOWN"):
        await engine.jobs.submit([new_job()])
    admin.replicaof("NO", "ONE")
    await engine.close()


async def test_a_script_of_somebody_else_that_never_ends_is_told_at_open(
    server: Server, admin: redis.Redis
):
    admin.config_set("busy-reply-threshold", 10)

    def run_for_ever() -> None:
        with server.client() as other, contextlib.suppress(redis.ResponseError):
            other.eval("while true do end", 0)

    endless = threading.Thread(target=run_for_ever)
    endless.start()
    _until_said(server, b"-BUSY")
    try:
        with pytest.raises(StoreBusy, match="BUSY") as refused:
            await connect(server.url(), deadline=0.5).open()
    finally:
        admin.script_kill()
        endless.join(20)

    assert "SCRIPT KILL" in refused.value.hint
    assert admin.dbsize() == 0


def test_what_a_server_says_of_a_key_of_others_names_no_password():
    error = faults.explain(
        redis_error("NOPERM No permissions to access a key"),
        parse(f"redis://ada:{SECRET}@host?prefix=jobs"),
    )

    assert "the keys of the store, {jobs:…" in error.cause
    assert "ACL SETUSER ada ~{jobs:*" in error.hint
    assert SECRET not in str(error)


def redis_error(text: str) -> Exception:
    return faults.ReplyError(text)
