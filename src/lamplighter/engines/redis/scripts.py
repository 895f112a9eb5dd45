"""Loads the Lua files: each with what it includes, and with the name the server knows it by.

Of an include only those functions are pasted that the script needs: the server makes all functions
of a script anew whenever it runs, and that is a good part of what a small script costs.

What `layout.py` declares is put in where it is named: for a line ``--@layout job`` the functions
that pack and unpack a job, for ``job_due(value)`` what reads that field, for ``JOB_DUE`` its place.

A line `--@flags allow-oom` in the header of a script lets it run when the server's memory is used
up: what ends, frees or keeps a job alive must go on then. The server takes flags from a first line
that is made here, so that a file begins with what it is for.

Every script begins with `lib/guard.lua`, which looks for the mark of the store: on a server that
has lost its data nothing is written. `--@unguarded` in its header exempts a script that runs before
there is a store.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from lamplighter.engines.redis.layout import LAYOUTS

_INCLUDE = re.compile(r"^--@include (\S+)[ \t]*$", re.MULTILINE)
_LAYOUT = re.compile(r"^--@layout (\w+)[ \t]*$", re.MULTILINE)
_READERS = {name: code for one in LAYOUTS.values() for name, code in one.lua_readers.items()}
_READER = re.compile(rf"\b({'|'.join(_READERS)})\((\w+(?:\[[^\[\]()]+\])?)\)")
_CONSTANTS = {name: text for one in LAYOUTS.values() for name, text in one.lua_constants.items()}
_FUNCTION = re.compile(r"^local function (\w+)\(.*?^end$", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_REMARK = re.compile(r"^--(?!@).*\n", re.MULTILINE)
_ASIDE = re.compile(r"--(?!@).*")
_UNGUARDED = re.compile(r"^--@unguarded[ \t]*$", re.MULTILINE)
_GUARD = "lib/guard.lua"
_FLAGS = re.compile(r"^--@flags (\S+)[ \t]*$", re.MULTILINE)
# `send` is a function of ours that is told the command.
_COMMAND = re.compile(r"\b(?:redis\.p?call|send)\(\s*'([A-Za-z]+)'")


@dataclass(frozen=True, slots=True)
class Script:
    """One script, ready to be sent."""

    name: str
    text: bytes = field(repr=False)
    sha: bytes
    """What the server calls it once it has seen it."""


@cache
def script(name: str) -> Script:
    """Return ``lua/<name>.lua``."""
    text = _flagged(_pasted(name)).encode()
    digest = hashlib.sha1(text, usedforsecurity=False).hexdigest()
    return Script(name, text, digest.encode())


def names() -> list[str]:
    """The names of all scripts, sorted."""
    return sorted(
        entry.name.removesuffix(".lua")
        for entry in _folder().iterdir()
        if entry.name[-4:] == ".lua"
    )


@cache
def commands() -> tuple[str, ...]:
    """All commands that a script runs, sorted: who uses the store needs the right to each."""
    return tuple(sorted({found for name in names() for found in _COMMAND.findall(_pasted(name))}))


def _flagged(text: str) -> str:
    flags = _FLAGS.search(text)
    return text if flags is None else f"#!lua flags={flags[1]}\n{text}"


def _guarded(text: str) -> str:
    return text if _UNGUARDED.search(text) else f"{_REMARK.sub('', _read(_GUARD)).strip()}\n{text}"


def _pasted(name: str) -> str:
    """Read a script with its includes, each once and one level deep: an include has none."""
    text = laid_out(_read(f"{name}.lua"))
    paths = _INCLUDE.findall(text)
    if len(set(paths)) < len(paths):
        raise ValueError(f"lua/{name}.lua includes a file twice")
    parts = {path: laid_out(_read(path)) for path in paths}
    for path, part in parts.items():
        if _INCLUDE.search(part):
            raise ValueError(f"lua/{path} is included and includes others itself")
    needed = _needed(text, parts.values())

    def wanted(found: re.Match[str]) -> str:
        return found[0] if found[1] in needed else ""

    def include(found: re.Match[str]) -> str:
        return _FUNCTION.sub(wanted, _REMARK.sub("", parts[found[1]])).strip("\n")

    return _guarded(_INCLUDE.sub(include, text))


def _needed(text: str, parts: Iterable[str]) -> set[str]:
    """Return the functions of the parts that a script names, and those that these name."""
    parts = [_REMARK.sub("", part) for part in parts]
    functions = {found[1]: found[0] for part in parts for found in _FUNCTION.finditer(part)}
    rest = "".join(_FUNCTION.sub("", part) for part in parts)
    needed: set[str] = set()
    looked_at = [text, rest]
    while looked_at:
        words = _WORD.findall(_ASIDE.sub("", looked_at.pop()))
        new = functions.keys() & set(words) - needed
        needed |= new
        looked_at += [functions[one] for one in new]
    return needed


def laid_out(text: str) -> str:
    """Put in what layouts make of their names."""
    text = _LAYOUT.sub(lambda found: LAYOUTS[found[1]].lua_functions(), text)
    text = _READER.sub(lambda found: _READERS[found[1]].format(found[2]), text)
    text = _WORD.sub(lambda found: _CONSTANTS.get(found[0], found[0]), text)
    left = _READERS.keys() & set(_WORD.findall(_REMARK.sub("", text)))
    if left:
        raise ValueError(f"{', '.join(left)}: give a variable or an element, and nothing else")
    return text


def _read(path: str) -> str:
    return _folder().joinpath(*path.split("/")).read_text(encoding="utf-8")


def _folder() -> Traversable:
    return resources.files("lamplighter.engines.redis").joinpath("lua")
