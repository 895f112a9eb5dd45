"""Tokens of the store: made by a command, good until they end, and soon noticed to have ended."""

import asyncio
import json
from datetime import datetime, timedelta

import pytest
from click.testing import CliRunner

from lamplighter import runtime
from lamplighter.cli.main import main
from lamplighter.model.access import Scope, digest_of, granted, prefix_of, token_of
from lamplighter.port.access import NewToken
from lamplighter.server import tokens as tokens_module
from tests.unit.server.clocks import Clock

REVOKED_WITHIN = 60.0


@pytest.fixture
def clock():
    made = Clock()
    with runtime.install(made):
        yield made


@pytest.fixture
async def service(make):
    made = make(tokens=True)
    await made.publish("charge")
    return made


async def issue(scene, *scopes: str, name: str = "shop", **more) -> str:
    """Put a token into the store of a service."""
    prefix, text = token_of(runtime.random_bits(48), runtime.random_bits(256))
    new = NewToken(prefix=prefix, digest=digest_of(text), name=name, scopes=scopes, **more)
    await (await scene.engine()).access.put_token(new, by="test")
    return text


async def ask(scene, token: str, path: str = "/v1/types"):
    return await scene.call("GET", path, headers={"Authorization": f"Bearer {token}"})


async def revoke(scene, token: str) -> None:
    engine = await scene.engine()
    await engine.access.revoke_token(prefix_of(token), by="test", reason="lost")


def test_a_token_has_a_public_prefix_and_256_bits_that_are_not():
    prefix, text = token_of(7, 8)
    assert text == f"ll_{prefix}_{8:064x}"
    assert prefix_of(text) == prefix == "000000000007"
    assert digest_of(text) != digest_of(text[:-1] + "9")
    most = token_of((1 << 48) - 1, (1 << 256) - 1)[1]
    assert prefix_of(most) == "f" * 12


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ll_",
        f"ll_{7:012x}_{8:063x}",
        f"ll_{7:012x}_{8:065x}",
        f"ll_{7:012x}_{8:064x}\n",
        f"ll_{7:012x}_{255:064X}",
        f"xx_{7:012x}_{8:064x}",
        f"ll_{7:012x}_{'é' * 64}",
    ],
)
def test_other_texts_are_no_tokens(text):
    assert prefix_of(text) is None


@pytest.mark.parametrize(
    ("names", "scopes"),
    [
        ([], set()),
        (["fly"], set()),
        (["jobs:write"], {Scope.JOBS_WRITE}),
        (["operator"], set(Scope) - {Scope.ADMIN, Scope.JOBS_ERASE}),
        (["admin"], set(Scope)),
        (["schedules:read", "jobs:read"], {Scope.SCHEDULES_READ, Scope.JOBS_READ}),
    ],
)
def test_scopes_include_what_is_documented(names, scopes):
    assert granted(names) == scopes


async def test_a_token_lets_in_with_its_scopes_and_tenant(service):
    token = await issue(service, "jobs:read", tenant="acme")
    assert (await ask(service, token)).status == 200
    assert (await ask(service, token, "/v1/schedules")).code == "forbidden"
    assert (await ask(service, token, "/v1/me")).json == {
        "name": f"shop/{prefix_of(token)}",
        "scopes": ["jobs:read"],
        "tenant": "acme",
    }


async def test_a_token_without_scopes_may_only_ask_who_it_is(service):
    token = await issue(service)
    assert (await ask(service, token, "/v1/me")).json["scopes"] == []
    assert (await ask(service, token)).code == "forbidden"


async def test_me_is_not_for_anybody(service, scene):
    assert (await service.call("GET", "/v1/me")).code == "missing-token"
    local = (await scene.call("GET", "/v1/me")).json
    assert (local["name"], local["tenant"]) == ("local", None)
    assert "admin" in local["scopes"]


async def test_a_token_with_another_secret_is_refused(service):
    token = await issue(service, "admin")
    for wrong in (token[:-1] + ("0" if token[-1] != "0" else "1"), token[:16] + "0" * 64):
        assert (await ask(service, wrong)).code == "invalid-token"
    assert (await ask(service, token)).status == 200


async def test_an_unknown_token_is_refused_and_good_soon_after_it_is_made(service, clock):
    prefix, text = token_of(1, 2)
    assert (await ask(service, text)).code == "invalid-token"
    new = NewToken(prefix=prefix, digest=digest_of(text), name="late", scopes=("jobs:read",))
    await (await service.engine()).access.put_token(new, by="test")
    clock.later += tokens_module.FRESH_UNKNOWN
    assert (await ask(service, text)).status == 200


async def test_a_revoked_token_is_refused_within_a_minute_by_every_service(make, clock):
    services = [make(tokens=True) for _ in range(2)]
    token = await issue(services[0], "jobs:read")
    for service in services:
        assert (await ask(service, token)).status == 200
        clock.later += 10
    await revoke(services[0], token)
    clock.later += tokens_module.FRESH
    assert tokens_module.FRESH < REVOKED_WITHIN
    for service in services:
        response = await ask(service, token)
        assert (response.status, response.code) == (401, "invalid-token")
        assert "revoked" in response.json["detail"]


async def test_a_token_expires_by_the_minute_it_was_given_though_it_is_remembered(service, clock):
    token = await issue(service, "jobs:read", lifetime_ms=20_000)
    assert (await ask(service, token)).status == 200
    clock.later += 19
    assert (await ask(service, token)).status == 200
    clock.later += 2
    response = await ask(service, token)
    assert (response.status, response.code) == (401, "token-expired")
    assert "token expired" in response.headers["www-authenticate"]


async def test_the_store_is_asked_once_for_a_token_that_is_used_often(service, monkeypatch):
    token = await issue(service, "jobs:read")
    access = (await service.service.client.engine()).access
    asked, look = [], access.token

    async def counted(prefix: str):
        asked.append(prefix)
        return await look(prefix)

    monkeypatch.setattr(access, "token", counted)
    for _ in range(5):
        assert (await ask(service, token)).status == 200
    assert asked == [prefix_of(token)]


async def test_so_many_tokens_are_remembered_and_no_more(service, monkeypatch):
    monkeypatch.setattr(tokens_module, "MOST", 3)
    known = [await issue(service, "jobs:read") for _ in range(5)]
    for _ in range(2):
        for token in known:
            assert (await ask(service, token)).status == 200
        assert len(service.service.door._tokens._seen) == 3


async def test_strangers_do_not_drive_out_a_token_that_is_good(service, monkeypatch):
    monkeypatch.setattr(tokens_module, "MOST", 3)
    monkeypatch.setattr(tokens_module, "MOST_UNKNOWN", 3)
    known = await issue(service, "jobs:read")
    await ask(service, known)
    for number in range(5):
        assert (await ask(service, token_of(number, number)[1])).code == "invalid-token"
    assert list(service.service.door._tokens._seen) == [prefix_of(known)]
    assert len(service.service.door._tokens._unknown) == 3


async def test_a_token_in_use_does_not_stand_in_line_behind_strangers(service, clock, monkeypatch):
    known = await issue(service, "jobs:read")
    assert (await ask(service, known)).status == 200
    clock.later += tokens_module.FRESH
    access = (await service.service.client.engine()).access
    asked, look, free = [], access.token, asyncio.Event()

    async def stuck_for_strangers(prefix: str):
        asked.append(prefix)
        if prefix != prefix_of(known):
            await free.wait()
        return await look(prefix)

    monkeypatch.setattr(access, "token", stuck_for_strangers)
    strangers = [asyncio.create_task(ask(service, token_of(n, n)[1])) for n in range(20)]
    answers = await asyncio.wait_for(asyncio.gather(*(ask(service, known) for _ in range(5))), 10)
    assert {answer.status for answer in answers} == {200}
    assert asked.count(prefix_of(known)) == 1
    free.set()
    assert {each.code for each in await asyncio.gather(*strangers)} == {"invalid-token"}


async def test_a_token_that_is_gone_is_refused_and_known_no_more(service, clock, monkeypatch):
    known = await issue(service, "jobs:read")
    assert (await ask(service, known)).status == 200
    access = (await service.service.client.engine()).access

    async def gone(_: str) -> None:
        return None

    monkeypatch.setattr(access, "token", gone)
    clock.later += tokens_module.FRESH
    assert (await ask(service, known)).code == "invalid-token"
    assert service.service.door._tokens._seen == {}


async def test_keys_and_tokens_are_good_side_by_side(make):
    made = make(keys=["k" * 32])
    token = await issue(made, "jobs:read")
    for good in ("k" * 32, token):
        assert (await ask(made, good)).status == 200


async def test_a_service_that_asks_for_nothing_takes_no_notice_of_tokens(scene):
    assert (await ask(scene, token_of(1, 2)[1])).status == 200


async def test_idempotency_keys_of_two_tokens_are_apart(service):
    body = {"type": "charge", "arguments": {"order_id": "o-1"}}
    made = set()
    for _ in range(2):
        token = await issue(service, "jobs:write", name="same")
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "k"}
        responses = [
            await service.call("POST", "/v1/jobs", send=body, headers=headers) for _ in range(2)
        ]
        assert [each.status for each in responses] == [201, 200]
        made |= {each.json["id"] for each in responses}
    assert len(made) == 2


# ── the command ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command on a store of its own."""
    monkeypatch.setenv("LAMPLIGHTER_URL", f"sqlite:///{tmp_path}/jobs.db")
    monkeypatch.chdir(tmp_path)

    def run_one(*arguments: str, code: int = 0):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == code, result.output
        return result

    run_one("migrate")
    return run_one


def create(run, *more: str) -> str:
    return run("token", "create", "--name", "shop", "--scope", "jobs:read", *more).stdout


def test_create_prints_the_token_alone_and_the_store_has_only_its_digest(run, tmp_path):
    text = create(run)
    assert prefix_of(text.strip()) is not None
    assert text.count("\n") == 1
    secret = text.strip().rpartition("_")[2].encode()
    for path in tmp_path.iterdir():
        if path.is_file():
            assert secret not in path.read_bytes()


def test_tokens_are_listed_without_their_secrets(run):
    made = json.loads(create(run, "--tenant", "acme", "--expires", "30d", "--by", "ada", "--json"))
    secret = made.pop("token").rpartition("_")[2]
    listed = run("token", "list", "--json").stdout
    assert json.loads(listed) == {"tokens": [made]}
    assert (made["tenant"], made["created_by"], made["expired"]) == ("acme", "ada", False)
    assert made["expires_at"] > made["created_at"]
    table = run("token").stdout
    assert "good for" in table
    for shown in (listed, table):
        assert secret not in shown
        assert digest_of(secret) not in shown


def test_a_token_is_revoked_by_its_prefix_or_as_a_whole(run):
    first, second = create(run).strip(), create(run).strip()
    assert "revoked" in run("token", "revoke", prefix_of(first), "--reason", "lost").stdout
    assert "revoked" in run("token", "revoke", second).stdout
    assert "was revoked before" in run("token", "revoke", second).stdout
    found = json.loads(run("token", "list", "--json").stdout)["tokens"]
    assert {each["revoked"]["reason"] for each in found} == {"lost", ""}


def test_what_is_done_to_tokens_stands_in_the_audit_log(run):
    token = create(run, "--by", "ada", "--tenant", "acme").strip()
    run("token", "revoke", token, "--by", "bob", "--reason", "lost")
    entries = json.loads(run("audit", "--json").stdout)["entries"]
    assert [(each["by"], each["action"], each["object"]) for each in entries] == [
        ("bob", "token.revoke", prefix_of(token)),
        ("ada", "token.create", prefix_of(token)),
    ]
    assert entries[0]["reason"] == "lost"
    assert json.loads(run("audit", "--tenant", "acme", "--limit", "1", "--json").stdout) == {
        "entries": entries[:1]
    }
    assert token.rpartition("_")[2] not in json.dumps(entries)
    assert "token.revoke" in run("audit").stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--name", "", "--scope", "admin"], 1),
        (["--name", "x", "--scope", "admin", "--tenant", "\n"], 1),
        (["--name", "x", "--scope", "admin", "--expires", "0"], 1),
        (["--name", "x", "--scope", "admin", "--expires", "20000d"], 1),
        (["--name", "x", "--scope", "admin", "--expires", "soon"], 1),
        (["--name", "x", "--scope", "everything"], 2),
        (["--name", "x"], 2),
        (["--scope", "admin"], 2),
    ],
)
def test_tokens_that_cannot_be_made_are_refused(run, arguments, code):
    run("token", "create", *arguments, code=code)
    assert json.loads(run("token", "list", "--json").stdout) == {"tokens": []}


def test_a_token_that_is_not_there_is_named(run):
    result = run("token", "revoke", "123456789abc", code=1)
    assert "123456789abc" in result.stderr
    assert "token list" in result.stderr


def test_a_token_expires_unless_somebody_asks_for_one_that_does_not(run):
    usual, endless = (
        json.loads(create(run, *more, "--json")) for more in ((), ("--expires", "never"))
    )
    days = datetime.fromisoformat(usual["expires_at"]) - datetime.fromisoformat(usual["created_at"])
    assert days == timedelta(days=90)
    assert endless["expires_at"] is None


def test_a_link_logs_in_for_minutes_and_shows_no_secret_in_lists(run):
    made = json.loads(
        run(
            "token", "login", "--address", "https://jobs.example/", "--tenant", "acme", "--json"
        ).stdout
    )
    assert made["url"] == f"https://jobs.example/#code={made['code']}"
    (listed,) = json.loads(run("token", "list", "--json").stdout)["tokens"]
    left = datetime.fromisoformat(listed["expires_at"]) - datetime.fromisoformat(
        listed["created_at"]
    )
    assert left == timedelta(minutes=5)
    assert (listed["prefix"], listed["scopes"], listed["tenant"]) == (
        made["prefix"],
        ["operator"],
        "acme",
    )
    assert made["code"].rpartition("_")[2] not in json.dumps(listed)
    assert run("token", "login").stdout.startswith("http://127.0.0.1:8080/#code=llc_")
    assert "token.login" in run("audit", "--json").stdout


@pytest.mark.parametrize("address", ["", "jobs.example", "ftp://x", "http://x/?a=1", "http://x/#a"])
def test_a_link_to_what_is_no_service_is_refused(run, address):
    assert "--address" in run("token", "login", "--address", address, code=1).stderr
