"""JWTs: good ones are let in by what they say, and nothing else is."""

import asyncio
import dataclasses
import json
import warnings
from collections.abc import Callable
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from lamplighter import App, runtime
from lamplighter.cli.admission import Admission
from lamplighter.model.errors import InvalidOption
from lamplighter.server import jwt_sources
from lamplighter.server.errors import InvalidToken
from lamplighter.server.jwt_check import LEEWAY, LONGEST, Expected
from lamplighter.server.jwt_keys import read_jwks_file, read_key_file
from lamplighter.server.jwt_sources import JwksAddress, WatchedFile, check_jwks_url, fetch
from lamplighter.server.jwts import Jwts, jwts_of
from tests.unit.server.clocks import Clock
from tests.unit.server.signing import (
    ALGORITHMS,
    AUDIENCE,
    ISSUER,
    claims,
    key_file,
    now,
    part,
    pem,
    private,
    public,
    raw,
    signed,
)

EXPECTED = Expected(ISSUER, AUDIENCE)
DAY = 86_400


@pytest.fixture
def service(make, tmp_path):
    """A service that knows a key of each algorithm, named as that."""
    keys = {name: (name, public(name)) for name in ALGORITHMS}
    jwts = jwts_of([key_file(tmp_path, **keys)], [], issuer=None, audience=None, longest=DAY)
    return make(jwts=jwts)


async def ask(service, token: str, path: str = "/v1/types"):
    return await service.call("GET", path, headers={"Authorization": f"Bearer {token}"})


async def me(service, token: str):
    response = await ask(service, token, "/v1/me")
    assert response.status == 200, response.body
    return response.json


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_a_good_token_of_each_algorithm_is_let_in(service, algorithm):
    assert (await ask(service, signed(algorithm))).status == 200
    assert (await ask(service, signed(algorithm, scope="schedules:read"))).status == 403


async def test_a_token_says_who_they_are_and_what_they_may_do(service):
    token = signed(scope="jobs:read jobs:write fly:high", tenant="acme", sub="bob")
    assert await me(service, token) == {
        "name": f"bob@{ISSUER}",
        "scopes": ["jobs:read", "jobs:write"],
        "tenant": "acme",
    }


@pytest.mark.parametrize(
    ("given", "scopes"),
    [
        ({"scope": None}, []),
        ({"scope": ""}, []),
        ({"scope": None, "scp": ["jobs:read", 7, "unknown"]}, ["jobs:read"]),
        ({"scope": None, "scp": "schedules:write"}, ["schedules:write"]),
        ({"scope": "JOBS:READ"}, []),
        (
            {"scope": "operator"},
            [
                "jobs:read",
                "jobs:write",
                "operator",
                "operator:read",
                "schedules:read",
                "schedules:write",
            ],
        ),
        (
            {"scope": "admin"},
            [
                "admin",
                "jobs:erase",
                "jobs:read",
                "jobs:write",
                "operator",
                "operator:read",
                "schedules:read",
                "schedules:write",
            ],
        ),
    ],
)
async def test_scopes_come_from_scope_or_scp(service, given, scopes):
    assert (await me(service, signed(**given)))["scopes"] == scopes


@pytest.mark.parametrize(
    "given",
    [
        {"aud": [AUDIENCE, "other"]},
        {"nbf": now, "iat": now},
        {"exp": lambda: now() - LEEWAY + 5},
        {"iat": lambda: now() + LEEWAY - 5},
        {"headers": {"typ": "at+jwt"}},
        {"headers": {"x5t": "thumb"}},
        {"jti": "once", "roles": ["admin"]},
    ],
)
async def test_what_is_meant_well_is_let_in(service, given):
    given = {name: value() if callable(value) else value for name, value in given.items()}
    assert (await ask(service, signed(**given))).status == 200


def _without(*names: str) -> Callable[[], str]:
    return lambda: signed(**dict.fromkeys(names))


def _with(**more) -> Callable[[], str]:
    return lambda: signed(**{n: v() if callable(v) else v for n, v in more.items()})


def _header(**more) -> Callable[[], str]:
    return lambda: signed(headers=more)


def _named(kid) -> Callable[[], str]:
    return lambda: raw({"alg": "HS256", "typ": "JWT", "kid": kid}, claims())


def _cut(token: str, place: int, text: str) -> str:
    parts = token.split(".")
    parts[place] = text
    return ".".join(parts)


def _changed(**more) -> str:
    return _cut(signed(), 1, part(claims(**more)))


def _foreign(algorithm: str) -> str:
    return signed(algorithm, private(algorithm, 9))


HEAD = {"alg": "HS256", "typ": "JWT", "kid": "HS256"}
BAD: dict[str, Callable[[], str]] = {
    # Algorithms.
    "none": lambda: f"{part({**HEAD, 'alg': 'none'})}.{part(claims())}.",
    "none with a signature": lambda: raw({**HEAD, "alg": "none"}, claims()),
    "None": lambda: f"{part({**HEAD, 'alg': 'None'})}.{part(claims())}.",
    "no algorithm": lambda: raw({"typ": "JWT", "kid": "HS256"}, claims()),
    "algorithm in small letters": lambda: raw({**HEAD, "alg": "hs256"}, claims()),
    "algorithm is a list": lambda: raw({**HEAD, "alg": ["HS256"]}, claims()),
    "algorithm is null": lambda: raw({**HEAD, "alg": None}, claims()),
    "HS256 signed with the public RSA key": lambda: raw(
        {**HEAD, "kid": "RS256"}, claims(), public("RS256")
    ),
    "HS256 signed with the public EC key": lambda: raw(
        {**HEAD, "kid": "ES256"}, claims(), public("ES256")
    ),
    "HS256 signed with the public Ed25519 key": lambda: raw(
        {**HEAD, "kid": "EdDSA"}, claims(), public("EdDSA")
    ),
    "RS256 with the name of the secret": lambda: signed("RS256", kid="HS256"),
    "ES256 with the name of the RSA key": lambda: signed("ES256", kid="RS256"),
    "EdDSA with the name of the EC key": lambda: signed("EdDSA", kid="ES256"),
    "HS512": lambda: signed("HS512", private("HS256") + "x" * 40, kid="HS256"),
    "RS512": lambda: signed("RS512", private("RS256"), kid="RS256"),
    "PS256": lambda: signed("PS256", private("RS256"), kid="RS256"),
    "ES384": lambda: signed("ES384", ec.generate_private_key(ec.SECP384R1()), kid="ES256"),
    "wrong curve under the right name": lambda: _cut(signed("ES256"), 2, part(b"\x01" * 64)),
    # Other people's keys.
    "another secret": lambda: raw(HEAD, claims(), "another secret of more than 32 bytes, see?"),
    "empty secret": lambda: raw(HEAD, claims(), ""),
    "another RSA key": lambda: _foreign("RS256"),
    "another EC key": lambda: _foreign("ES256"),
    "another Ed25519 key": lambda: _foreign("EdDSA"),
    # Names of keys.
    "no kid": lambda: raw({"alg": "HS256", "typ": "JWT"}, claims()),
    "unknown kid": _named("HS257"),
    "kid of another case": _named("hs256"),
    "empty kid": _named(""),
    "kid with a path": _named("../../../../dev/null"),
    "kid with SQL": _named("HS256' OR '1'='1"),
    "kid with an address": _named("https://evil.example/keys"),
    "kid with a NUL": _named("HS256\0"),
    "kid with a line end": _named("HS256\n"),
    "kid of 65 letters": _named("k" * 65),
    "kid is a number": _named(256),
    "kid is a list": _named(["HS256"]),
    "kid is null": _named(None),
    "kid beyond ASCII": _named("ＨＳ256"),
    # Headers that would lead elsewhere.
    "jku": _header(jku="https://evil.example/jwks.json"),
    "x5u": _header(x5u="https://evil.example/cert.pem"),
    "x5c": _header(x5c=["MIIB"]),
    "embedded jwk": _header(jwk={"kty": "oct", "k": "AAAA"}),
    "embedded jwk with its own signature": lambda: signed(
        "ES256",
        private("ES256", 9),
        headers={"jwk": json.loads(ECAlgorithm.to_jwk(private("ES256", 9).public_key()))},
    ),
    "crit": lambda: raw({**HEAD, "crit": ["exp"]}, claims()),
    "b64": lambda: raw({**HEAD, "b64": False, "crit": ["b64"]}, claims()),
    "zip": _header(zip="DEF"),
    "nested": lambda: raw({**HEAD, "cty": "JWT"}, signed().encode()),
    "nested without saying so": lambda: raw(HEAD, signed().encode()),
    "of another type": _header(typ="logout+jwt"),
    "type is a number": lambda: raw({**HEAD, "typ": 7}, claims()),
    "header says something twice": lambda: raw(
        b'{"alg":"none","alg":"HS256","kid":"HS256"}', claims()
    ),
    "header is a list": lambda: raw([HEAD], claims()),
    "header is no JSON": lambda: raw(b"{", claims()),
    "header of many levels": lambda: raw(b"[" * 4_000, claims()),
    # Times.
    "no exp": _without("exp"),
    "exp is a text": _with(exp=lambda: str(now() + 600)),
    "exp is a float": _with(exp=lambda: now() + 600.5),
    "exp is true": _with(exp=True),
    "exp is null": lambda: raw(HEAD, {**claims(), "exp": None}),
    "exp is negative": _with(exp=-1),
    "exp is huge": _with(exp=10**30),
    "exp is a number of many digits": lambda: raw(
        HEAD,
        json.dumps({**claims(), "exp": 0}).replace('"exp": 0', '"exp": ' + "9" * 5_000).encode(),
    ),
    "exp is infinite": lambda: raw(HEAD, json.dumps({**claims(), "exp": float("inf")}).encode()),
    "exp is not a number": lambda: raw(
        HEAD, json.dumps({**claims(), "exp": float("nan")}).encode()
    ),
    "good for two days": _with(exp=lambda: now() + 2 * DAY),
    "good for two days since long": _with(iat=lambda: now() - 2 * DAY, exp=lambda: now() + 600),
    "nbf in the future": _with(nbf=lambda: now() + 60),
    "nbf is a text": _with(nbf="now"),
    "iat in the future": _with(iat=lambda: now() + 60),
    "iat is a float": _with(iat=lambda: now() + 0.5),
    # Whose, for whom, of whom.
    "no iss": _without("iss"),
    "another iss": _with(iss="https://evil.example"),
    "iss is a list": lambda: raw(HEAD, {**claims(), "iss": [ISSUER]}),
    "no aud": _without("aud"),
    "another aud": _with(aud="other"),
    "aud without ours": _with(aud=["other", "lamp"]),
    "aud is a part of ours": _with(aud="lamp"),
    "aud is an object": lambda: raw(HEAD, {**claims(), "aud": {AUDIENCE: True}}),
    "aud is empty": _with(aud=[]),
    "no sub": _without("sub"),
    "sub is empty": _with(sub=""),
    "sub is a number": lambda: raw(HEAD, {**claims(), "sub": 7}),
    "sub of many letters": _with(sub="s" * 257),
    "sub with a line end": _with(sub="alice\nroot"),
    "scope is a number": _with(scope=7),
    "scope is an object": _with(scope={"admin": True}),
    "tenant is null": lambda: raw(HEAD, {**claims(), "tenant": None}),
    "tenant is empty": _with(tenant=""),
    "tenant is a list": _with(tenant=["acme"]),
    "tenant is a number": _with(tenant=7),
    "tenant with a control character": _with(tenant="ac\x00me"),
    # Tampered with.
    "payload changed": lambda: _changed(scope="admin"),
    "signature changed": lambda: _cut(signed(), 2, part(b"\x00" * 32)),
    "signature cut": lambda: signed()[:-4],
    "no signature": lambda: _cut(signed(), 2, ""),
    "signature of another token": lambda: _cut(
        signed(), 2, signed(scope="admin").rpartition(".")[2]
    ),
    "signature of zeros": lambda: _cut(signed("ES256"), 2, part(b"\x00" * 64)),
    "payload says something twice": lambda: raw(
        HEAD, json.dumps(claims()).replace('"scope"', '"scope": "admin", "scope"').encode()
    ),
    "payload is a list": lambda: raw(HEAD, [claims()]),
    "payload is a text": lambda: raw(HEAD, "alice"),
    "payload is empty": lambda: raw(HEAD, b""),
    "payload is not UTF-8": lambda: raw(HEAD, b'{"sub": "\xff"}'),
    "payload of many levels": lambda: raw(HEAD, b'{"a":' * 1_000),
    "no payload": lambda: _cut(signed(), 1, ""),
    "four parts": lambda: signed() + ".AAAA",
    "two parts": lambda: signed().rpartition(".")[0],
    "five parts": lambda: signed() + ".AAAA.AAAA",
    "only dots": lambda: "..",
    "letters that base64 has not": lambda: _cut(signed(), 0, "!!!!"),
    "one letter too many": lambda: signed() + "A",
    "padded": lambda: signed() + "==",
    "a blank inside": lambda: signed().replace(".", ". ", 1),
    "oversized": lambda: signed(x="y" * LONGEST),
}


@pytest.mark.parametrize("make_token", BAD.values(), ids=BAD.keys())
async def test_bad_tokens_are_refused(service, make_token):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        token = make_token()
    response = await ask(service, token)
    assert (response.status, response.code) == (401, "invalid-token")
    assert response.json["detail"].startswith("invalid token: ")
    assert 'error="invalid_token"' in response.headers["www-authenticate"]
    signature = token.rpartition(".")[2]
    assert not signature or signature not in response.body.decode()


def test_there_are_many_bad_tokens():
    assert len(BAD) >= 40


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_a_token_whose_time_is_over_is_told_so(service, algorithm):
    response = await ask(service, signed(algorithm, exp=now() - LEEWAY - 1))
    assert (response.status, response.code) == (401, "token-expired")
    assert response.json["detail"].startswith("token expired")


async def test_a_forged_token_whose_time_is_over_is_told_nothing_of_it(service):
    token = raw(HEAD, claims(exp=1), "another secret of more than 32 bytes, see?")
    assert (await ask(service, token)).code == "invalid-token"


@pytest.fixture
def clock():
    made = Clock()
    with runtime.install(made):
        yield made


async def test_a_token_that_was_let_in_is_refused_when_it_expires(service, clock):
    token = signed(exp=now() + 20)
    assert (await ask(service, token)).status == 200
    clock.later = 20 + LEEWAY + 1
    assert (await ask(service, token)).code == "token-expired"


async def test_two_keys_are_good_at_once_and_one_can_be_taken_away_without_a_restart(
    make, tmp_path, clock
):
    old, new = (public("HS256", number) for number in (1, 2))
    path = key_file(tmp_path, k1=("HS256", old))
    jwts = jwts_of([path], [], issuer=None, audience=None, longest=DAY)
    service = make(jwts=jwts)
    first, second = signed(key=old, kid="k1"), signed(key=new, kid="k2")
    assert [(await ask(service, one)).status for one in (first, second)] == [200, 401]

    key_file(tmp_path, k1=("HS256", old), k2=("HS256", new))
    clock.later += 5
    assert [(await ask(service, one)).status for one in (first, second)] == [200, 200]

    key_file(tmp_path, k2=("HS256", new))
    clock.later += 60
    assert [(await ask(service, one)).status for one in (first, second)] == [401, 200]


async def test_a_file_that_was_spoilt_leaves_the_keys_as_they_were(tmp_path, clock, caplog):
    path = key_file(tmp_path, k1=("HS256", public("HS256")))
    source = WatchedFile(path, read_key_file)
    path.write_text("{", encoding="utf-8")
    clock.later += 5
    assert await source.key("k1") is not None
    assert "stay as they were" in caplog.text
    assert public("HS256") not in caplog.text


async def test_a_key_in_a_file_of_its_own_is_read_again_too(tmp_path, clock):
    secret = tmp_path / "secret"
    secret.write_text(public("HS256", 1) + "\n")
    path = tmp_path / "keys.toml"
    path.write_text(
        f'issuer = "{ISSUER}"\n[keys.k1]\nalgorithm = "HS256"\naudience = "{AUDIENCE}"\n'
        'key_file = "secret"\n'
    )
    source = WatchedFile(path, read_key_file)
    assert (await source.key("k1")).key == public("HS256", 1).encode()
    secret.write_text(public("HS256", 2) + "2")
    clock.later += 5
    assert (await source.key("k1")).key == public("HS256", 2).encode() + b"2"


async def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path, clock):
    path = key_file(tmp_path, k1=("HS256", public("HS256", 1)))
    following = ["k2", "k3"]

    def read(path):
        loaded = read_key_file(path)
        if following:
            key_file(tmp_path, **{following.pop(0): ("HS256", public("HS256", 2))})
        return loaded

    source = WatchedFile(path, read)
    for kid in ("k2", "k3"):
        clock.later += 5
        assert await source.key(kid) is not None


def _toml(**more: str) -> str:
    table = {"algorithm": "HS256", "key": public("HS256"), "issuer": "i", "audience": "a", **more}
    return "[keys.k1]\n" + "\n".join(f"{n} = {json.dumps(v)}" for n, v in table.items() if v != "-")


SMALL = rsa.generate_private_key(65537, 1024)
UNUSABLE = {
    "nothing": "",
    "no TOML": "[[",
    "no keys": "[keys]",
    "keys is a text": 'keys = "k"',
    "a key is a text": '[keys]\nk1 = "secret"',
    "a name with a path": _toml().replace("k1", '"../k1"'),
    "no algorithm": _toml(algorithm="-"),
    "unknown algorithm": _toml(algorithm="none"),
    "another algorithm": _toml(algorithm="HS512"),
    "no key": _toml(key="-"),
    "key and file": _toml(key_file="x"),
    "no issuer": _toml(issuer="-"),
    "empty issuer": _toml(issuer=""),
    "no audience": _toml(audience="-"),
    "unknown field": _toml(jwks="x"),
    "a file that is not there": _toml(key="-", key_file="missing"),
    "empty secret": _toml(key=""),
    "short secret": _toml(key="0123456789abcdef"),
    "secret that can be guessed": _toml(key="changeme" * 8),
    "public key as a secret": _toml(key=public("RS256")),
    "secret as a public key": _toml(algorithm="RS256"),
    "EC key for RSA": _toml(algorithm="RS256", key=public("ES256")),
    "RSA key for EC": _toml(algorithm="ES256", key=public("RS256")),
    "small RSA key": _toml(algorithm="RS256", key=pem(SMALL)),
    "another curve": _toml(algorithm="ES256", key=pem(ec.generate_private_key(ec.SECP384R1()))),
    "a private key": _toml(
        algorithm="EdDSA",
        key=ed25519.Ed25519PrivateKey.generate()
        .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        .decode(),
    ),
}


@pytest.mark.parametrize("text", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_file_of_keys_that_cannot_be_used_is_refused_without_quoting_keys(tmp_path, text):
    path = tmp_path / "keys.toml"
    path.write_text(text)
    with pytest.raises(InvalidOption) as caught:
        read_key_file(path)
    assert str(path)[:20] in caught.value.cause
    for secret in (public("HS256"), "changeme", "BEGIN"):
        assert secret not in f"{caught.value.cause} {caught.value.hint} {caught.value.value}"


# ── JWKS ─────────────────────────────────────────────────────────────────────────────────────


def jwk(algorithm: str, number: int = 0, **more) -> dict:
    """A public key as it stands in a set; its name is that of its algorithm and number."""
    writers = {"RS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}
    made = writers[algorithm].to_jwk(private(algorithm, number).public_key(), as_dict=True)
    return {**made, "kid": f"{algorithm}-{number}", **more}


def jwks(*keys: dict) -> str:
    return json.dumps({"keys": keys})


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_a_token_signed_by_a_key_of_a_set_is_let_in(make, tmp_path, algorithm):
    path = tmp_path / "jwks.json"
    path.write_text(jwks(*(jwk(name) for name in ("RS256", "ES256", "EdDSA"))))
    jwts = jwts_of([], [str(path)], issuer=ISSUER, audience=AUDIENCE, longest=DAY)
    service = make(jwts=jwts)
    assert (await ask(service, signed(algorithm, kid=f"{algorithm}-0"))).status == 200
    other = {"RS256": "ES256", "ES256": "EdDSA", "EdDSA": "RS256"}[algorithm]
    assert (await ask(service, signed(other, kid=f"{algorithm}-0"))).code == "invalid-token"


def test_keys_of_a_set_that_cannot_be_used_are_left_out(tmp_path):
    small = RSAAlgorithm.to_jwk(SMALL.public_key(), as_dict=True)
    whole = ECAlgorithm.to_jwk(private("ES256"), as_dict=True)
    path = tmp_path / "jwks.json"
    path.write_text(
        jwks(
            jwk("ES256"),
            {"kty": "oct", "k": part(b"x" * 32), "kid": "secret", "alg": "HS256"},
            {**small, "kid": "small"},
            {**whole, "kid": "private"},
            jwk("RS256", alg="PS256", kid="another algorithm"),
            jwk("RS256", use="enc", kid="not-for-signatures"),
            jwk("RS256", kid="../path"),
            jwk("RS256", crv=[1], kid="odd-curve"),
            jwk("RS256", n=5, kid="odd-number"),
            jwk("EdDSA", x=7, kid="odd-point"),
            jwk("ES256", alg=["ES256"], kid="odd-algorithm"),
            {"kid": "nothing"},
            7,
        )
    )
    assert list(read_jwks_file(path, EXPECTED).keys) == ["ES256-0"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"keys": 7}', '{"keys": []}', "[" * 9_999])
def test_a_set_without_keys_is_refused(tmp_path, text):
    path = tmp_path / "jwks.json"
    path.write_text(text)
    with pytest.raises(InvalidOption, match="cannot be used"):
        read_jwks_file(path, EXPECTED)


@pytest.mark.parametrize(
    "url",
    [
        "http://issuer.example/jwks",
        "ftp://127.0.0.1/x",
        "file:///etc/passwd",
        "https://",
        "http://[",
        "https://issuer.example/keys?token=canary x",
        "https://issuer.example/keys\n?token=canary",
    ],
)
def test_addresses_that_are_none_or_at_which_others_could_put_keys_are_refused(url):
    with pytest.raises(InvalidOption, match="no address") as refused:
        check_jwks_url(url)
    assert "canary" not in str(refused.value)


def test_an_issuer_and_an_audience_are_asked_for():
    with pytest.raises(InvalidOption, match="issuer"):
        jwts_of([], ["https://issuer.example/jwks"], issuer=None, audience="a", longest=1)


class Issuer:
    """A server on this machine that has keys, and counts who asks for them."""

    def __init__(self) -> None:
        self.answer: tuple[int, bytes] = (200, b"")
        self.asked = 0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                status, body = issuer.answer
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/jwks.json?x=1"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def has(self, *keys: dict) -> None:
        self.answer = (200, jwks(*keys).encode())

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def issuer():
    made = Issuer()
    yield made
    made.close()


async def test_keys_are_fetched_when_they_are_needed_and_not_more_often(issuer, clock):
    issuer.has(jwk("ES256"))
    source = JwksAddress(check_jwks_url(issuer.url), EXPECTED, fetch)
    assert issuer.asked == 0
    found = await asyncio.gather(*(source.key("ES256-0") for _ in range(20)))
    assert all(found)
    assert issuer.asked == 1

    for _ in range(5):
        assert await source.key("unknown") is None
    assert issuer.asked == 1

    issuer.has(jwk("ES256"), jwk("ES256", 1))
    clock.later += jwt_sources.PAUSE
    assert await source.key("ES256-1") is not None
    assert await source.key("ES256-0") is not None
    assert issuer.asked == 2

    issuer.has(jwk("ES256", 1))
    clock.later += jwt_sources.RENEW + 1
    assert await source.key("ES256-0") is None
    assert issuer.asked == 3


@pytest.mark.parametrize(
    "answer",
    [(500, b""), (302, b""), (200, b"{}"), (200, b"x" * (jwt_sources.MOST_BYTES + 1))],
)
async def test_an_address_that_answers_badly_leaves_the_keys_for_an_hour(issuer, clock, answer):
    issuer.has(jwk("ES256"))
    source = JwksAddress(issuer.url, EXPECTED, fetch)
    assert await source.key("ES256-0") is not None
    issuer.answer = answer
    clock.later += jwt_sources.RENEW + 1
    assert await source.key("ES256-0") is not None
    assert issuer.asked == 2
    clock.later += jwt_sources.TRUSTED
    assert await source.key("ES256-0") is None


async def test_known_keys_are_good_while_their_address_keeps_everybody_waiting(issuer, clock):
    issuer.has(jwk("ES256"))
    free, asked = Event(), []

    def stuck(url: str) -> bytes:
        asked.append(url)
        if len(asked) > 1:
            free.wait(30)
        return fetch(url)

    source = JwksAddress(issuer.url, EXPECTED, stuck)
    assert await source.key("ES256-0") is not None
    issuer.has(jwk("ES256"), jwk("ES256", 1))
    clock.later += jwt_sources.RENEW + 1
    try:
        known = asyncio.gather(*(source.key("ES256-0") for _ in range(20)))
        assert all(await asyncio.wait_for(known, 3))
        late = asyncio.create_task(source.key("ES256-1"))
        assert await asyncio.wait_for(source.key("ES256-0"), 3) is not None
        assert not late.done()
    finally:
        free.set()
    assert await late is not None
    assert len(asked) == 2


async def test_what_nobody_foresaw_in_a_set_is_not_asked_for_at_every_request(clock, monkeypatch):
    asked = []

    def odd(text: bytes, _) -> None:
        asked.append(text)
        raise ZeroDivisionError

    monkeypatch.setattr(jwt_sources, "jwks_of", odd)
    source = JwksAddress("http://127.0.0.1/", EXPECTED, str.encode)
    for _ in range(5):
        assert await source.key("ES256-0") is None
    assert len(asked) == 1


async def test_a_fetch_goes_on_when_who_asked_for_it_has_gone(issuer, clock):
    issuer.has(jwk("ES256"))
    begun, free = Event(), Event()

    def slow(url: str) -> bytes:
        begun.set()
        free.wait(30)
        return fetch(url)

    source = JwksAddress(issuer.url, EXPECTED, slow)
    first = asyncio.create_task(source.key("ES256-0"))
    await asyncio.to_thread(begun.wait, 30)
    first.cancel()
    free.set()
    assert await source.key("ES256-0") is not None
    assert issuer.asked == 1


async def test_an_address_that_nobody_answers_at_is_no_mistake_of_the_caller(issuer, make):
    issuer.close()
    jwts = Jwts([JwksAddress(issuer.url, EXPECTED, fetch)], DAY)
    service = make(jwts=jwts)
    assert (await ask(service, signed("ES256"))).code == "invalid-token"


async def test_a_setting_asks_for_the_tenant_of_every_token(make, tmp_path):
    keys = {name: (name, public(name)) for name in ALGORITHMS}
    file = key_file(tmp_path, **keys)
    jwts = jwts_of([file], [], issuer=None, audience=None, longest=DAY, needs_tenant=True)
    service = make(jwts=jwts)
    refused = await ask(service, signed(), "/v1/me")
    assert (refused.status, refused.code) == (401, "invalid-token")
    assert "http_jwt_tenant" in refused.json["detail"]
    assert (await me(service, signed(tenant="acme")))["tenant"] == "acme"
    settings = dataclasses.replace(App("sqlite://").settings, http_jwt_tenant=1)
    app = App("sqlite://")
    app.configure(settings)
    admission = Admission(
        require_token=False,
        key_file=None,
        jwt_keys=(file,),
        jwks=(),
        jwt_issuer=None,
        jwt_audience=None,
    )
    with pytest.raises(InvalidToken):
        await admission.service(app).door.principal(
            [(b"authorization", f"Bearer {signed()}".encode())]
        )


async def test_a_session_ends_with_the_token_that_it_began_with(service):
    ends = now() + 600
    page = {"origin": "http://127.0.0.1:8080"}
    sent = {"token": signed(exp=ends, tenant="acme")}
    answer = await service.call("POST", "/v1/session", send=sent, headers=page)
    assert answer.status == 201
    found = datetime.fromisoformat(answer.json["session"]["ends_at"]).timestamp()
    assert found == ends
    cookie = answer.headers["set-cookie"].partition(";")[0]
    asked = await service.call("GET", "/v1/me", headers={"cookie": cookie})
    assert asked.json["tenant"] == "acme"
