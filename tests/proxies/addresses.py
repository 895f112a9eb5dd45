"""Addresses that lead through a proxy."""

from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from tests.proxies.door import HOST

# The proxy answers for itself: without TLS, and where it listens.
_OF_THE_WAY = {"host", "hostaddr", "port", "sslmode"}


def through(url: str, port: int) -> str:
    """Give the same address with a proxy of this machine as the server."""
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    kept = {name: value for name, value in parse_qsl(parts.query) if name not in _OF_THE_WAY}
    return urlunsplit(
        parts._replace(netloc=f"{user}{at}{HOST}:{port}", query=urlencode(kept, quote_via=quote))
    )


def target_of(url: str) -> tuple[str, int]:
    """Give host and port of an address that names both."""
    parts = urlsplit(url)
    if parts.hostname is None or parts.port is None:
        raise ValueError(f"{url} does not name a host and a port: write postgresql://host:5432/…")
    return parts.hostname, parts.port
