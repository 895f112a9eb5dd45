"""No address shows its password, however somebody has written it."""

import pytest

from lamplighter.config import Settings, without_secrets
from lamplighter.connect import store_name
from lamplighter.engines.postgres.address import parse as postgres
from lamplighter.engines.redis.address import parse as redis
from lamplighter.engines.sqlite.database import path_of
from lamplighter.http.address import checked
from lamplighter.model.addresses import redacted
from lamplighter.model.errors import LamplighterError
from lamplighter.server.jwt_sources import check_jwks_url

CANARY = "canary-pw-77"

ADDRESSES = [
    f"redis://user:{CANARY}@host:1/0",
    f"redis://:{CANARY}@host",
    f"redis://host?password={CANARY}",
    f"redis://host?p%61ssword={CANARY}&prefix=a",
    f"redis://host?prefix=a&PASSWORD={CANARY}",
    f"redis://user:{CANARY}",
    f"redis://user:a@b?{CANARY}@host",
    f"redis://user:a%40{CANARY}@host:port",
    f"rediss://user:{CANARY}@host?ca=/x",
    f"unix://user:{CANARY}@/run/redis.sock",
    f"sqlite://user:{CANARY}@host/jobs.db",
    f"sqlite:{CANARY}",
    f"redis://host?pw={CANARY}",
    f"redis://host?creds={CANARY}",
    f"sqlite:///jobs.db?password={CANARY}",
    f"sqlite:///jobs.db?key={CANARY}",
    f"postgresql://user:{CANARY}@host/db",
    f"postgresql://user:a@{CANARY}@host/db",
    f"postgresql://user:a?{CANARY}@host/db?schema=x",
    f"postgresql://host/db?password={CANARY}&sslpassword={CANARY}",
    f"postgres://user:{CANARY}",
    f"https://{CANARY}@host/jwks",
    f"https://user:{CANARY}@host/jwks#x",
    f"https://host/jwks?key={CANARY}",
    f"http://elsewhere.example.com/?token={CANARY}",
    f"ftp://user:{CANARY}@host",
    f"user:{CANARY}@host",
    CANARY,
]


@pytest.mark.parametrize("url", ADDRESSES)
def test_nobody_who_shows_an_address_shows_its_password(url):
    assert CANARY not in redacted(url)
    assert CANARY not in store_name(url)
    for read in (postgres, redis, path_of, checked, check_jwks_url):
        assert CANARY not in told(read, url)


def told(read, url: str) -> str:
    """What people see of an address that somebody reads, or refuses."""
    try:
        found = read(url)
    except LamplighterError as error:
        return f"{error} {error.value!r}"
    return getattr(found, "shown", "")


@pytest.mark.parametrize(
    "url",
    [
        "redis://host:6379/0?prefix=lamp&shards=4",
        "redis://[::1]:6379/0",
        "unix:///run/redis.sock?db=0",
        "postgresql://user@host:5432/db?schema=x&sslmode=require",
        "postgresql://h1:1,h2:2/db",
        "postgresql:///db?host=/run",
        "sqlite:///my#jobs.db",
    ],
)
def test_an_address_without_a_password_is_shown_as_it_is(url):
    assert redacted(url) == url


def test_settings_do_not_show_their_secrets():
    assert CANARY not in repr(Settings(url=f"redis://u:{CANARY}@h", http_secret=CANARY * 4))


def test_programs_that_are_not_ours_are_not_told_where_the_store_is():
    ours = {
        name: CANARY
        for secret in ("URL", "HTTP_SECRET", "TOKEN")
        for name in (f"LAMPLIGHTER_{secret}", f"LAMPLIGHTER_{secret}_FILE")
    }
    kept = {"PATH": "/bin", "LAMPLIGHTER_SPEED": "2", "URL": "x"}
    assert without_secrets({**ours, **kept}) == kept
