"""Names of hosts: which of them mean this machine."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

_REMEMBERED = 256
"""Hosts of which is remembered what they are: nearly all requests name the same."""


@lru_cache(maxsize=_REMEMBERED)
def hostname(url: str) -> str:
    """Return the host of an address, without its port; nothing if there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


@lru_cache(maxsize=_REMEMBERED)
def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, and cannot be reached from others."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
