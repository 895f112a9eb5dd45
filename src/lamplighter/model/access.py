"""Who may do what: scopes, and the form of the tokens that carry them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from enum import StrEnum

PREFIX_BITS = 48
SECRET_BITS = 256

_TOKEN = re.compile(r"ll_([0-9a-f]{12})_[0-9a-f]{64}")
_CODE = re.compile(r"llc_([0-9a-f]{12})_[0-9a-f]{64}")


class Scope(StrEnum):
    """What somebody may do."""

    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"
    JOBS_ERASE = "jobs:erase"
    SCHEDULES_READ = "schedules:read"
    SCHEDULES_WRITE = "schedules:write"
    OPERATOR_READ = "operator:read"
    OPERATOR = "operator"
    ADMIN = "admin"


_INCLUDES = {
    Scope.OPERATOR: frozenset(Scope) - {Scope.ADMIN, Scope.JOBS_ERASE},
    Scope.ADMIN: frozenset(Scope),
}


def granted(names: Iterable[str]) -> frozenset[Scope]:
    """Return the scopes that these names stand for, with those they include; others say nothing.

    ``operator`` includes reading and writing of jobs and schedules, ``admin`` includes all; to
    erase jobs for ever is included in ``admin`` alone. Writing does not include reading.
    ``operator:read`` is for scrapers: it shows queues, tenants, workers and metrics, and no job.
    """
    known = {scope.value: scope for scope in Scope}
    found: set[Scope] = set()
    for name in names:
        if name in known:
            found |= _INCLUDES.get(known[name], frozenset({known[name]}))
    return frozenset(found)


def token_of(prefix_bits: int, secret_bits: int) -> tuple[str, str]:
    """Make a token of unguessable bits: the prefix by which it is found, and its whole text."""
    prefix = f"{prefix_bits:012x}"
    return prefix, f"ll_{prefix}_{secret_bits:064x}"


def prefix_of(token: str) -> str | None:
    """Return the prefix of a token, if the text has the form of one."""
    found = _TOKEN.fullmatch(token)
    return None if found is None else found[1]


def code_of(prefix_bits: int, secret_bits: int) -> tuple[str, str]:
    """Make a login code; it cannot be taken for a token."""
    prefix = f"{prefix_bits:012x}"
    return prefix, f"llc_{prefix}_{secret_bits:064x}"


def code_prefix_of(code: str) -> str | None:
    """Return the prefix of a login code, if the text has the form of one."""
    found = _CODE.fullmatch(code)
    return None if found is None else found[1]


def digest_of(token: str) -> str:
    """Return what a store keeps of a token: nobody can get back from it to the token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
