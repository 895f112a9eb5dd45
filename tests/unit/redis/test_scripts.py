"""The Lua files: whole, described, and known to the server by the name we compute."""

import re

import pytest
import redis

from lamplighter.engines.redis import scripts

ALL = scripts.names()
GUARD = re.sub(r"^--[^\n]*\n", "", scripts._read("lib/guard.lua"), flags=re.MULTILINE).strip()
LUA = {
    *("error", "ipairs", "pairs", "pcall", "select", "tonumber", "tostring", "type", "unpack"),
    *("if", "while", "until", "return"),
}
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


@pytest.mark.parametrize("name", ALL)
def test_a_script_calls_only_what_it_has(name: str):
    text = re.sub(r"--[^\n]*|'(?:[^'\\\n]|\\.)*'", "", scripts.script(name).text.decode())
    names = re.findall(r"local function (\w+)|function\s*\w*\(([^)]*)\)|local ([\w, ]+) =", text)
    known = {word for groups in names for word in re.findall(r"\w+", " ".join(groups))}

    called = set(re.findall(r"(?<![\w.])(\w+)\(", text)) - {"function", "and", "or", "not", "in"}
    assert called <= known | LUA


def test_what_a_layout_declares_is_put_in_where_it_is_named():
    text = scripts.laid_out("local due = job_due(values[n]) + JOB_DUE + JOB_HELD_FLAG")

    assert text == "local due = (struct.unpack('<I8', values[n], 15)) + 15 + 64"


def test_a_field_is_read_of_a_variable_or_an_element():
    with pytest.raises(ValueError, match="job_due"):
        scripts.laid_out("local due = job_due(brief(P, id))")


def test_a_word_in_a_comment_pastes_no_function():
    part = "local function one()\nend\n\nlocal function other()\nend"

    assert scripts._needed("one()\n  -- other than one\n", [part]) == {"one"}
