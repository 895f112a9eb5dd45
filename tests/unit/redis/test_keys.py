"""Names in keys: Python and Lua write the same, and no two names become one."""

import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamplighter.engines.redis import keys
from lamplighter.engines.redis.scripts import _read

ENCODE = _read("lib/keys.lua") + "\nreturn encode(ARGV[1])"
names = st.text(st.characters(codec="utf-8"), max_size=70)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=names)
def test_python_and_lua_write_a_name_in_the_same_way(admin: redis.Redis, name: str):
    assert admin.eval(ENCODE, 0, name.encode()).decode() == keys.encode(name)


@given(name=names)
def test_a_name_in_a_key_has_nothing_that_means_something_there(name: str):
    written = keys.encode(name)

    assert not set(written) & set(":{}*?[]\\ \n\r\0/~")
    assert written.isascii()


@given(one=names, other=names)
def test_different_names_stay_different(one: str, other: str):
    assert (keys.encode(one) == keys.encode(other)) == (one == other)


def test_a_shard_has_a_hash_tag_of_its_own():
    assert keys.shard_prefix("lamp", 3) == "{lamp:3}:"


def test_what_expires_is_described():
    assert keys.KINDS.keys() >= keys.EXPIRING
