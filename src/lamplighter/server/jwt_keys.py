"""The keys that JWTs are checked with: each with its algorithm, its issuer and its audience."""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWK, PyJWTError

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.server.jwt_check import KID, Expected

log = logging.getLogger("lamplighter.server")

SHORTEST_SECRET = 32
"""Bytes of a secret that nobody can guess."""
SMALLEST_RSA = 2048
"""Bits."""
MOST_KEYS = 100

Key = bytes | RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey
ALGORITHMS = ("HS256", "RS256", "ES256", "EdDSA")
_FIELDS = frozenset({"algorithm", "key", "key_file", "issuer", "audience"})
_FORM = (
    "write, for each key, `[keys.NAME]` with algorithm, issuer, audience and key or key_file; "
    "docs/guides/tokens.md has an example"
)
_SET_FORM = "give a readable file with a JSON Web Key Set of public keys, or an address of one"


@dataclass(frozen=True, slots=True)
class VerifyKey:
    """A key, and what may be done with it: nothing else, whatever a token says."""

    algorithm: str
    key: Key
    expected: Expected


@dataclass(frozen=True, slots=True)
class Loaded:
    """Keys by their names, and the files that they were read from."""

    keys: Mapping[str, VerifyKey]
    files: Sequence[Path]


def read_key_file(path: Path) -> Loaded:
    """Read a file of keys: TOML, or JSON if its name says so."""
    whole = _document(path)
    tables = whole.get("keys")
    if not isinstance(tables, dict) or not tables:
        raise _unusable(path, "it has no table `keys`")
    keys: dict[str, VerifyKey] = {}
    files = [path]
    for kid, table in cast("dict[str, Any]", tables).items():
        if not KID.fullmatch(kid) or not isinstance(table, dict):
            raise _unusable(path, f"the key {shown(kid)} has a name or a form that no key has")
        given = {**_defaults(whole), **cast("dict[str, Any]", table)}
        keys[kid], more = _read_key(path, kid, given)
        files += more
    return Loaded(keys, files)


def _defaults(whole: Mapping[str, Any]) -> dict[str, Any]:
    return {name: whole[name] for name in ("issuer", "audience") if name in whole}


def _read_key(path: Path, kid: str, given: Mapping[str, Any]) -> tuple[VerifyKey, list[Path]]:
    where = f"the key {shown(kid)}"
    if unknown := sorted(set(given) - _FIELDS):
        raise _unusable(path, f"{where} has {shown(unknown[0])}, which is no field of a key")
    missing = [name for name in ("algorithm", "issuer", "audience") if not _text(given, name)]
    if missing:
        raise _unusable(path, f"{where} has no {missing[0]}")
    if ("key" in given) == ("key_file" in given):
        raise _unusable(path, f"{where} needs either key or key_file")
    algorithm = str(given["algorithm"])
    if algorithm not in ALGORITHMS:
        raise _unusable(path, f"{where} has the algorithm {shown(algorithm)}")
    files: list[Path] = []
    if "key_file" in given:
        files = [path.parent / str(given["key_file"])]
        material = _bytes(files[0]).strip()
    else:
        material = str(given["key"]).encode()
    try:
        key = _key(algorithm, material)
    except ValueError as error:
        # The key itself is not quoted: errors end up in logs.
        raise _unusable(path, f"{where} cannot be used: {error}") from None
    expected = Expected(str(given["issuer"]), str(given["audience"]))
    return VerifyKey(algorithm, key, expected), files


def _text(given: Mapping[str, Any], name: str) -> bool:
    return isinstance(given.get(name), str) and bool(given[name])


def _key(algorithm: str, material: bytes) -> Key:
    """Make a key of what was given for it, or say why it will not do."""
    if algorithm == "HS256":
        if len(material) < SHORTEST_SECRET:
            raise ValueError(f"a secret needs at least {SHORTEST_SECRET} bytes")
        if material.startswith((b"-----BEGIN", b"ssh-")):
            raise ValueError("it is a key for another algorithm, and no secret")
        if len(set(material)) < SHORTEST_SECRET // 4:
            raise ValueError("it can be guessed: draw one with `openssl rand -hex 32`")
        return material
    try:
        found = load_pem_public_key(material)
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("it is not a public key in the PEM format") from None
    return fitting(algorithm, found)


def fitting(algorithm: str, key: object) -> Key:
    """Return the key, if it is of the algorithm's kind and strong enough."""
    match algorithm, key:
        case "RS256", RSAPublicKey():
            if key.key_size < SMALLEST_RSA:
                raise ValueError(f"an RSA key needs at least {SMALLEST_RSA} bits")
            return key
        case "ES256", EllipticCurvePublicKey(curve=SECP256R1()):
            return key
        case "EdDSA", Ed25519PublicKey():
            return key
        case _:
            raise ValueError(f"it is no public key for {algorithm}")


# ── JWKS ─────────────────────────────────────────────────────────────────────────────────────

_KINDS = {("RSA", ""): "RS256", ("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}


def read_jwks_file(path: Path, expected: Expected) -> Loaded:
    """Read a file with a JSON Web Key Set."""
    text = _bytes(path, _SET_FORM)
    try:
        return Loaded(jwks_of(text, expected), [path])
    except ValueError as error:
        raise _unusable(path, str(error), _SET_FORM) from None


def jwks_of(text: bytes, expected: Expected) -> dict[str, VerifyKey]:
    """Read a JSON Web Key Set; keys that cannot be used here are left out."""
    try:
        found: Any = json.loads(text)
        given = list(found["keys"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("it is no JSON Web Key Set") from None
    keys: dict[str, VerifyKey] = {}
    for one in given[:MOST_KEYS]:
        try:
            kid, algorithm, key = _jwk(one)
        except (ValueError, TypeError, AttributeError, PyJWTError) as error:
            log.info("a key of the JSON Web Key Set is left out: %s", error)
            continue
        keys[kid] = VerifyKey(algorithm, key, expected)
    if not keys:
        raise ValueError("no key in it can be used")
    return keys


def _jwk(given: Any) -> tuple[str, str, Key]:
    if not isinstance(given, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - it came from outside, as text
    one = cast("dict[str, Any]", given)
    kid = one.get("kid")
    if not isinstance(kid, str) or not KID.fullmatch(kid):
        raise ValueError("it has no usable `kid`")
    if one.get("use", "sig") != "sig" or "d" in one:
        raise ValueError("it is not a public key for signatures")
    algorithm = _KINDS.get((str(one.get("kty")), str(one.get("crv") or "")))
    if algorithm is None or one.get("alg", algorithm) != algorithm:
        raise ValueError("it is of a kind that is not used here")
    return kid, algorithm, fitting(algorithm, PyJWK(one, algorithm).key)


# ── files ────────────────────────────────────────────────────────────────────────────────────


def _document(path: Path) -> dict[str, Any]:
    text = _bytes(path)
    try:
        read = json.loads if path.suffix == ".json" else tomllib.loads
        found: Any = read(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _unusable(path, f"it is neither TOML nor JSON: {error}") from None
    if not isinstance(found, dict):
        raise _unusable(path, "it is no table")
    return cast("dict[str, Any]", found)


def _bytes(path: Path, hint: str = _FORM) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unusable(path, f"it cannot be read: {error.strerror}", hint) from error


def _unusable(path: Path, why: str, hint: str = _FORM) -> InvalidOption:
    return InvalidOption(
        f"the file {shown(str(path))} cannot be used: {why}", hint=hint, value=str(path)
    )
