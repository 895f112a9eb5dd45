"""Keys that sign tokens in tests, the files that name them, and tokens that do as they should."""

import base64
import hashlib
import hmac
import json
from functools import cache
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from lamplighter import runtime

ISSUER, AUDIENCE = "https://issuer.example", "lamplighter"
SECRET = "0123456789abcdef0123456789abcdef-the-secret"
ALGORITHMS = ("HS256", "RS256", "ES256", "EdDSA")


def private(algorithm: str, number: int = 0) -> Any:
    """A key of this algorithm, always the same for one number."""
    return _private(algorithm, number)


@cache
def _private(algorithm: str, number: int) -> Any:
    match algorithm:
        case "HS256":
            return f"{SECRET}-{number}"
        case "RS256":
            return rsa.generate_private_key(65537, 2048)
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case _:
            return ed25519.Ed25519PrivateKey.generate()


def public(algorithm: str, number: int = 0) -> str:
    """What a file of keys has of it."""
    key = private(algorithm, number)
    return key if isinstance(key, str) else pem(key)


def pem(key: Any) -> str:
    made = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return made.decode()


def key_file(folder: Path, **keys: tuple[str, str]) -> Path:
    """Write a file with these keys: name = (algorithm, key)."""
    path = folder / "keys.json"
    tables = {
        kid.replace("_", "-"): {"algorithm": algorithm, "key": key}
        for kid, (algorithm, key) in keys.items()
    }
    whole = {"issuer": ISSUER, "audience": AUDIENCE, "keys": tables}
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def now() -> int:
    return runtime.now_ms() // 1000


def claims(**more: Any) -> dict[str, Any]:
    """What a good token says; None leaves something out."""
    given = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "alice",
        "exp": now() + 600,
        "scope": "jobs:read",
        **more,
    }
    return {name: value for name, value in given.items() if value is not None}


def signed(
    algorithm: str = "HS256",
    key: Any = None,
    *,
    kid: Any = None,
    headers: dict[str, Any] | None = None,
    **more: Any,
) -> str:
    """Sign a token; its key is named as its algorithm unless said otherwise."""
    headers = {"kid": algorithm if kid is None else kid, **(headers or {})}
    return jwt.encode(claims(**more), key or private(algorithm), algorithm, headers)


def part(value: Any) -> str:
    """Write one part of a token; bytes as they are."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def raw(header: Any, payload: Any, key: str | None = None) -> str:
    """Write a token of any content, signed with a secret if there is one."""
    text = f"{part(header)}.{part(payload)}"
    secret = private("HS256") if key is None else key
    signature = hmac.digest(secret.encode(), text.encode(), hashlib.sha256)
    return f"{text}.{part(signature)}"
