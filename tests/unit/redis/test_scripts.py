"""The Lua files: whole, described, and known to the server by the name we compute."""

import re

import pytest
import redis

from lamplighter.engines.redis import scripts

ALL = scripts.names()
GUARD = re.sub(r"^--[^\n]*\n", "", scripts._read("lib/guard.lua"), flags=re.MULTILINE).strip()
BEFORE_THERE_IS_A_STORE = {"open", "rights"}


def test_there_is_a_script_for_opening_and_for_wake_ups():
    assert {"open", "listen", "notify"} <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_the_server_takes_the_script_and_calls_it_as_we_do(admin: redis.Redis, name: str):
    script = scripts.script(name)

    assert admin.script_load(script.text) == script.sha.decode()


@pytest.mark.parametrize("name", ALL)
def test_a_script_says_what_it_is_for_what_it_takes_and_what_it_returns(name: str):
    header = scripts._read(f"{name}.lua").partition("\n--@include")[0]

    assert re.match(rf"-- {name}: \S", header)
    assert "\n-- KEYS  1 " in header
    assert "\n-- ARGV  1 clock" in header
    assert "\n-- RETURNS  " in header


@pytest.mark.parametrize("name", ALL)
def test_a_script_builds_its_keys_from_the_prefix_and_looks_through_nothing(name: str):
    text = re.sub(r"--[^\n]*", "", scripts.script(name).text.decode()).replace(GUARD, "")

    assert text.count("KEYS[") == text.count("KEYS[1]")
    assert not re.search(r"call\(\s*['\"](?:KEYS|SCAN|FLUSHDB|FLUSHALL|CONFIG|PUBLISH)['\"]", text)


@pytest.mark.parametrize("name", ALL)
def test_a_script_begins_with_a_look_at_the_mark_of_the_store(name: str):
    text = re.sub(r"^(#!|--)[^\n]*\n", "", scripts.script(name).text.decode(), flags=re.MULTILINE)

    assert text.startswith(GUARD) == (name not in BEFORE_THERE_IS_A_STORE)


@pytest.mark.parametrize("name", ALL)
def test_includes_are_pasted(name: str):
    assert b"--@include" not in scripts.script(name).text


def test_a_script_is_read_once():
    assert scripts.script("open") is scripts.script("open")
