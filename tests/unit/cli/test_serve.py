"""What `lamplighter serve` says: where it is, and what keeps it from starting."""

import http.client
import os
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from lamplighter.server import assets
from tests.unit.server.test_serve import DEADLINE

NAMED = ("--jwt-issuer", "them", "--jwt-audience", "us")


def first_line(folder, *arguments: str) -> str:
    process = subprocess.Popen(
        [sys.executable, "-m", "lamplighter", "serve", "--port", "0", *arguments],
        cwd=folder,
        env={**os.environ, "LAMPLIGHTER_URL": "sqlite:///jobs.db"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stdout.readline()
        address = line.removeprefix("serving on ").partition(",")[0]
        return f"{line}\n{fetched(address)}"
    finally:
        process.kill()
        process.communicate()


def fetched(address: str) -> str:
    where = urlsplit(address)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=DEADLINE)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


@pytest.mark.skipif(not assets.built(), reason="the console was not built here")
def test_it_says_where_the_console_is_and_the_console_is_there(tmp_path):
    said, _, page = first_line(tmp_path).partition("\n")
    assert "where a browser shows the console" in said
    assert "/v1/openapi.json" in said
    assert "<title>Lamplighter" in page


@pytest.mark.parametrize(
    ("option", "remedy"),
    [("--jwks", "a JSON Web Key Set of public keys"), ("--jwt-keys", "[keys.NAME]")],
)
def test_a_file_of_keys_that_is_not_there_is_named_once(lamplighter, home, option, remedy):
    claims = NAMED if option == "--jwks" else ()

    result = lamplighter("serve", option, "nope.json", *claims)

    assert result.exit_code == 1
    cause, _, hint = result.stderr.partition("\n\n")
    told = "the file `nope.json` cannot be used: it cannot be read: No such file or directory"
    assert cause == f"error: {told}"
    assert result.stderr.count("hint:") == 1
    assert remedy in hint


def test_whoever_finds_no_store_learns_that_serve_makes_one(lamplighter, home):
    said = lamplighter("jobs", "list").stderr
    assert "there is no store `jobs.db` yet" in said
    assert "`lamplighter dev`, `worker`, `serve` and `migrate` make a new one" in said
