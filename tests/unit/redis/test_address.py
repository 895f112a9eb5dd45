"""The address of a store: every part of it, and no password in what is shown."""

import pytest

from lamplighter.connect import connect
from lamplighter.engines.redis.address import Durability, parse
from lamplighter.model.addresses import redacted
from lamplighter.model.errors import InvalidUrl


def test_the_defaults_are_those_of_redis_and_a_prefix_of_our_own():
    address = parse("redis://cache.example")

    assert (address.host, address.port, address.db) == ("cache.example", 6379, 0)
    assert (address.user, address.password, address.tls, address.path) == (None, None, False, None)
    assert (address.prefix, address.shards) == ("lamp", None)
    assert address.durability is Durability.EVERYSEC
    assert (address.replicas, address.replica_timeout) == (1, 1.0)


def test_every_part_can_be_given():
    address = parse(
        "rediss://ad%40a:s%2Fe%3Ac@[::1]:6380/3?prefix=a.b:c&shards=4&durability=replicated"
        "&replicas=2&replica_timeout=0.25&ca=/etc/ca%20.pem&cert=/c.pem&key=/k.pem"
    )

    assert (address.user, address.password) == ("ad@a", "s/e:c")
    assert (address.host, address.port, address.db, address.tls) == ("::1", 6380, 3, True)
    assert (address.prefix, address.shards) == ("a.b:c", 4)
    assert address.durability is Durability.REPLICATED
    assert (address.replicas, address.replica_timeout) == (2, 0.25)
    assert (address.ca, address.cert, address.key) == ("/etc/ca .pem", "/c.pem", "/k.pem")


def test_a_password_without_a_user_belongs_to_the_default_user():
    address = parse("redis://:secret@host")

    assert (address.user, address.password) == (None, "secret")


def test_a_socket_has_a_path_and_its_database_among_the_options():
    address = parse("unix:///run/my%20redis.sock?db=2&prefix=jobs")

    assert (address.path, address.db, address.prefix) == ("/run/my redis.sock", 2, "jobs")


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("redis://ada:secret@host/0", "redis://ada:***@host/0"),
        ("redis://:secret@host", "redis://:***@host"),
        ("redis://ada:se@cret@host?prefix=x", "redis://ada:***@host?prefix=x"),
        ("redis://ada:se?cret@host", "redis://ada:***@host"),
        ("unix://:secret@/run/s?db=1", "unix://:***@/run/s?db=1"),
    ],
)
def test_a_password_is_never_shown(url: str, public: str):
    assert redacted(url) == public
    assert "secret" not in repr(parse(url) if "se?" not in url else public)


@pytest.mark.parametrize(
    "url",
    [
        "redis:host",
        "redis//host",
        "http://host",
        "redis://host:port",
        "redis://host:0",
        "redis://host:65536",
        "redis://host:99999999999999999999",
        "redis://host/one",
        "redis://host/-1",
        "redis://host/1/2",
        "redis://a:b:c",
        "redis://host?shards=0",
        "redis://host?shards=1025",
        "redis://host?shards=",
        "redis://host?shards=\u0664",
        "redis://host?prefix=",
        "redis://host?prefix=a*",
        "redis://host?prefix={a}",
        "redis://host?prefix=a%20b",
        "redis://host?prefix=" + "x" * 65,
        "redis://host?durability=maybe",
        "redis://host?durability=always",
        "redis://host?durability=",
        "redis://host?replicas=1",
        "redis://host?durability=everysec&replica_timeout=1",
        "redis://host?durability=replicated&replicas=0",
        "redis://host?durability=replicated&replicas=17",
        "redis://host?durability=replicated&replicas=one",
        "redis://host?durability=replicated&replica_timeout=0",
        "redis://host?durability=replicated&replica_timeout=5.1",
        "redis://host?durability=replicated&replica_timeout=-1",
        "redis://host?durability=replicated&replica_timeout=nan",
        "redis://host?durability=replicated&replica_timeout=1s",
        "redis://host?db=x",
        "redis://host?pool=4",
        "redis://host?prefix=a&prefix=b",
        "redis://host?ca=/x",
        "rediss://host?key=/x",
        "unix://run/s",
        "redis://host\x00",
        "redis://ho#st",
    ],
)
def test_what_cannot_be_read_is_refused_with_a_remedy(url: str):
    with pytest.raises(InvalidUrl) as refused:
        parse(url)

    assert refused.value.hint


@pytest.mark.parametrize("rest", ["h:x", "h?pool=1", "h?shards=0", "h/one", "h#", "a:b:c"])
def test_a_refusal_does_not_show_the_password(rest: str):
    with pytest.raises(InvalidUrl) as refused:
        parse(f"redis://ada:secret@{rest}")

    assert "secret" not in f"{refused.value} {refused.value.value}"


@pytest.mark.parametrize("url", ["redis://h", "rediss://h", "unix:///run/s"])
def test_connect_knows_the_engine(url: str):
    assert connect(url).capabilities.name == "redis"


def test_what_is_promised_follows_the_declared_durability():
    promised = {
        level: connect(f"redis://h?durability={level}").capabilities for level in Durability
    }

    assert [level for level in Durability if promised[level].durable_submit] == [Durability.FSYNC]
    assert len({one.loss_window for one in promised.values()}) == 4
    assert all(f"durability={level}" in one.loss_window for level, one in promised.items())
