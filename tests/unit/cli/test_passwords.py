"""No command shows the password of its store, nor our keys: not on any stream, nor in an error."""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lamplighter import config
from lamplighter.cli.dev import _view
from lamplighter.cli.main import main
from lamplighter.cli.toll import Toll
from lamplighter.server.jwt_check import Expected
from lamplighter.server.jwt_sources import JwksAddress, fetch
from tests.servers.valkey import Server, any_program, start

CANARY = "canary-pw-4417"
JOB_ID = "01M7FGQ3150077Z61KMGXG8AQQ"
FOREVER = {("dev",), ("worker",), ("serve",)}
"""They go on until somebody stops them."""
URLS = [
    f"redis://user:{CANARY}@127.0.0.1:1/0",
    f"redis://127.0.0.1:1?password={CANARY}",
    f"redis://user:{CANARY}",
    f"postgresql://user:{CANARY}@127.0.0.1:1/db",
    f"postgresql://127.0.0.1:1/db?password={CANARY}",
    f"sqlite://user:{CANARY}@host/jobs.db",
    f"user:{CANARY}@host",
]
PROGRAM = """
import logging
from lamplighter import App

logging.basicConfig(level=logging.DEBUG)
app = App()


@app.job
def charge() -> None: ...
"""
GIVEN = {
    "start": "2030-01-01T00:00:00Z",
    "end": "2030-01-02T00:00:00Z",
    "name": "shop",
    "scopes": "jobs:read",
}


CHOSEN = {
    ("dlq", "purge"): ["--all", "--yes"],
    ("dlq", "replay"): ["--all"],
    ("dlq", "retry"): ["--all"],
    **{
        ("jobs", verb): ["--all", "--yes"]
        for verb in ("cancel", "hold", "unhold", "retry", "replay", "purge")
    },
    ("queues", "set"): ["--max-wait", "9s"],
    ("schedules", "put"): ["--every", "1h"],
    ("tenants", "set"): ["--weight", "2"],
}
"""What some commands ask for before they look at the store."""


def leaves(command: click.Command, path: tuple[str, ...] = ()):
    """Every command that does something, with its way from the top."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path, command


COMMANDS = dict(leaves(main))


def words_of(command: click.Command) -> list[str]:
    """What a command needs to be called at all."""
    words = []
    for one in command.params:
        if isinstance(one, click.Argument) and one.required:
            words.append(JOB_ID if "id" in one.name else "charge")
        elif isinstance(one, click.Option) and one.required:
            words += [one.opts[0], GIVEN.get(one.name, "1")]
    return words


@pytest.fixture
def secret_environment(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAMPLIGHTER_STORE_DEADLINE", "1")
    monkeypatch.setenv("LAMPLIGHTER_HTTP_SECRET", CANARY * 4)
    monkeypatch.setenv("LAMPLIGHTER_TOKEN", CANARY)


def test_the_whole_tree_is_walked():
    assert {("jobs", "list"), ("doctor",), ("schedules", "put"), *FOREVER} <= set(COMMANDS)


@pytest.mark.parametrize("path", sorted(set(COMMANDS) - FOREVER), ids=" ".join)
def test_no_command_shows_a_password(path, secret_environment, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    # Nobody is there: that is to be told soon.
    monkeypatch.setitem(config._BOUNDS, "store_deadline", (0.05, 60.0))
    monkeypatch.setenv("LAMPLIGHTER_STORE_DEADLINE", "0.05")
    words = [*path, *words_of(COMMANDS[path])]
    takes_url = any("--url" in one.opts for one in COMMANDS[path].params)
    for url in URLS:
        for given in ([], ["--url", url]) if takes_url else ([],):
            monkeypatch.setenv("LAMPLIGHTER_URL", "sqlite:///none.db" if given else url)
            found = CliRunner().invoke(main, [*words, *given])
            told = f"{found.output} {found.stderr} {caplog.text} {found.exception!r}"
            assert CANARY not in told, (words, given)
            assert found.exception is None or isinstance(found.exception, SystemExit), told
            if takes_url:
                assert found.exit_code != 0, words


def started(words: list[str], url: str, folder: Path, out: object) -> subprocess.Popen[str]:
    """Start a command as a process of its own, with both its streams in one."""
    (folder / "canary_shop.py").write_text(PROGRAM)
    environment = {**os.environ, "LAMPLIGHTER_URL": url, "LAMPLIGHTER_LOG_FORMAT": "json"}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-m", "lamplighter", *words],
        env=environment,
        stdout=out,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("path", sorted(FOREVER), ids=" ".join)
@pytest.mark.parametrize("url", [URLS[0], URLS[3], URLS[5]])
def test_no_program_that_goes_on_shows_a_password(path, url, secret_environment, tmp_path):
    words = [*path, *(["canary_shop:app"] if path != ("serve",) else [])]
    extra = ["--port", "0"] if path == ("serve",) else []
    process = started([*words, *extra], url, tmp_path, subprocess.PIPE)
    try:
        told, _ = process.communicate(timeout=4)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            told, _ = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            told, _ = process.communicate()
    assert told.strip()
    assert CANARY not in told


# ── a store that works ───────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> Iterator[Server]:
    """A server that asks for the password."""
    folder = tmp_path_factory.mktemp("guarded")
    with start(any_program(), folder, settings={"requirepass": CANARY}) as server:
        yield server


@pytest.fixture
def store_url(guarded: Server, monkeypatch, tmp_path) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAMPLIGHTER_HTTP_SECRET", CANARY * 4)
    return guarded.url(login=f":{CANARY}@")


@pytest.mark.parametrize("path", sorted(set(COMMANDS) - FOREVER), ids=" ".join)
def test_no_command_shows_the_password_of_a_store_that_works(
    path, guarded, store_url, monkeypatch, caplog
):
    caplog.set_level(logging.DEBUG)
    Path("schedules.toml").write_text("[nightly]\ntype = 'charge'\nevery = '1h'\n")
    words = [*path, *words_of(COMMANDS[path]), *CHOSEN.get(path, [])]
    wrong = guarded.url(login=f"default:{CANARY}-wrong@")
    takes_url = any("--url" in one.opts for one in COMMANDS[path].params)
    takes_json = any("--json" in one.opts for one in COMMANDS[path].params)
    with guarded.client(password=CANARY) as client:
        for url in (store_url, wrong):
            monkeypatch.setenv("LAMPLIGHTER_URL", url)
            for given in ([], ["--json"]) if takes_json else ([],):
                before = client.info("stats")["total_connections_received"]
                found = CliRunner().invoke(main, [*words, *given])
                assert (
                    not takes_url or client.info("stats")["total_connections_received"] > before
                ), found.output
                told = f"{found.output} {found.stderr} {caplog.text} {found.exception!r}"
                assert CANARY not in told, words
                assert found.exception is None or isinstance(found.exception, SystemExit), told


@pytest.mark.parametrize(
    ("words", "sign"),
    [
        (["migrate"], "version"),
        (["doctor"], "the store has version"),
        (["doctor", "--json"], "the store has version"),
        (["worker", "canary_shop:app"], "serves default"),
        (["serve", "--port", "0"], "serving on"),
        (["dev", "canary_shop:app", "--port", "0"], "serves default"),
        (["dev", "canary_shop:app", "--port", "0", "--json"], "worker.started"),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
def test_no_program_at_work_shows_the_password_of_its_store(words, sign, store_url, tmp_path):
    migrated = CliRunner().invoke(main, ["migrate", "--url", store_url])
    assert migrated.exit_code == 0
    log = tmp_path / "told.txt"
    with log.open("w") as out:
        process = started(words, store_url, tmp_path, out)
    try:
        end = time.monotonic() + 30
        while sign not in log.read_text():
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        if (words[0],) in FOREVER:
            process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert CANARY not in log.read_text()


# ── addresses of keys ────────────────────────────────────────────────────────────────────────


def answers_nonsense(url: str) -> bytes:
    return b"no keys"


def cannot_be_reached(url: str) -> bytes:
    raise OSError("no route")


@pytest.mark.parametrize("fetching", [fetch, answers_nonsense, cannot_be_reached])
async def test_keys_that_cannot_be_fetched_are_told_of_without_the_password(fetching, caplog):
    caplog.set_level(logging.DEBUG)
    url = f"http://user:{CANARY}@127.0.0.1:1/{fetching.__name__}?token={CANARY}"
    source = JwksAddress(url, Expected("issuer", "audience"), fetching)

    assert await source.key("first") is None

    assert f"no keys from http://***@127.0.0.1:1/{fetching.__name__}?token=***" in caplog.text
    assert CANARY not in caplog.text


def test_a_development_view_names_its_store_without_the_password():
    view = _view("shop:app", config.Settings(url=URLS[0]), Toll(), as_json=True)
    assert CANARY not in str(vars(view))
