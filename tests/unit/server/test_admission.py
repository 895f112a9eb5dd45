"""`lamplighter serve` lets in whom its options say, and does not start with what cannot be used."""

import json

import pytest
from click.testing import CliRunner

from lamplighter.cli.main import main
from tests.unit.server.signing import AUDIENCE, ISSUER, key_file, private, public, signed
from tests.unit.server.test_jwt import jwk, jwks
from tests.unit.server.test_serve import ask, serving

NAMED = ("--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_process_takes_tokens_and_jwts_side_by_side(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys = key_file(tmp_path, k1=("HS256", public("HS256")))
    sets = tmp_path / "jwks.json"
    sets.write_text(jwks(jwk("ES256")))
    options = ("--require-token", "--jwt-keys", str(keys), "--jwks", str(sets), *NAMED)
    with serving(tmp_path, *options) as (_, address):
        made = CliRunner().invoke(
            main,
            [
                "token",
                "create",
                "--name",
                "n",
                "--scope",
                "jobs:read",
                "--url",
                "sqlite:///jobs.db",
            ],
        )
        for token in (made.stdout.strip(), signed(kid="k1"), signed("ES256", kid="ES256-0")):
            assert ask(address, "GET", "/v1/types", **bearer(token))[0] == 200
        status, problem = ask(address, "GET", "/v1/types")
        assert (status, problem["code"]) == (401, "missing-token")
        status, problem = ask(address, "GET", "/v1/types", **bearer(signed("ES256", kid="k1")))
        assert (status, problem["code"]) == (401, "invalid-token")
        assert ask(address, "GET", "/healthz")[0] == 200


def refused(folder, *arguments: str) -> str:
    result = CliRunner().invoke(
        main, ["serve", "--url", f"sqlite:///{folder}/jobs.db", "--port", "0", *arguments]
    )
    assert result.exit_code == 1
    assert "hint:" in result.stderr
    assert not (folder / "jobs.db").exists()
    return result.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3"])
def test_without_authentication_other_machines_are_not_served(tmp_path, host):
    assert "--require-token" in refused(tmp_path, "--host", host)


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--key-file", ""),
        ("--key-file", "short"),
        ("--jwt-keys", ""),
        (
            "--jwt-keys",
            '[keys.k1]\nalgorithm = "HS256"\nkey = "secret"\nissuer = "i"\naudience = "a"',
        ),
        ("--jwks", "{}"),
        ("--jwks", json.dumps({"keys": [{"kty": "oct", "k": "AAAA", "kid": "k"}]})),
    ],
)
def test_files_that_cannot_be_used_are_told_before_anything_starts(
    tmp_path, option, text, processes
):
    path = tmp_path / "file"
    path.write_text(text)
    said = refused(tmp_path, option, str(path), *NAMED, "--processes", processes)
    assert "file" in said
    assert "secret" not in said.replace("a secret", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--jwks", "http://issuer.example/jwks", *NAMED), "https://"),
        (("--jwks", "https://issuer.example/jwks"), "--jwt-issuer"),
        (("--jwt-issuer", "https://issuer.example"), "there is no --jwks"),
        (("--jwt-audience", "lamplighter", "--require-token"), "there is no --jwks"),
        (("--jwt-keys", "missing"), "missing"),
        (("--key-file", "missing"), "missing"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path, arguments, words):
    assert words in refused(tmp_path, *arguments)


@pytest.mark.parametrize("secret", ["x", "changeme", "a" * 64, "changeme" * 8])
def test_a_secret_that_can_be_guessed_is_refused_and_not_shown(tmp_path, monkeypatch, secret):
    monkeypatch.setenv("LAMPLIGHTER_HTTP_SECRET", secret)
    said = refused(tmp_path)
    assert "http_secret" in said
    assert secret not in said.replace("characters", "").replace("hex", "")


def test_the_secret_of_a_key_is_nowhere_in_the_error(tmp_path):
    path = key_file(tmp_path, k1=("RS256", private("HS256")))
    assert private("HS256") not in refused(tmp_path, "--jwt-keys", str(path))
