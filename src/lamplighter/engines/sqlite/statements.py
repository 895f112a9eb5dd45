"""Loads the SQL files: statements under ``-- name:`` lines, what several share under ``-- part:``.

Parameters are written by name in the files. At load they become numbered ones, in the order of
the statement's ``-- in:`` line, so that hot paths can bind plain tuples.

``@called@`` stands for the part `called` of the same file. The columns of records come from
`model/fields.py`, group by group: ``@job.columns@`` for their names, ``@job.columns(job)@`` with
the table before each, ``@submitted.values@`` for parameters of the same names,
``@counters.assignments@`` to set each to its parameter and ``@counters.zeros@`` to set each to 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from lamplighter.model.fields import GROUPS

_HEADING = re.compile(r"^-- (name|part): (\w+)$", re.MULTILINE)
_IN = re.compile(r"^-- in: (.+)$", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_GROUP = re.compile(r"@(\w+)\.(columns|values|assignments|zeros)(?:\((\w+)\))?@")
_PART = re.compile(r"@(\w+)@")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, ready to be bound to a tuple in the order of ``names``."""

    text: str
    names: tuple[str, ...]


@cache
def load(verb: str) -> dict[str, Statement]:
    """Read all statements of a file."""
    folder = resources.files("lamplighter.engines.sqlite").joinpath("sql")
    source = folder.joinpath(f"{verb}.sql").read_text(encoding="utf-8")
    _, *pieces = _HEADING.split(_GROUP.sub(_columns, source))
    sections = list(zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True))
    parts = {
        name: _COMMENT.sub("", body).strip() for kind, name, body in sections if kind == "part"
    }
    return {
        name: _statement(f"{verb}.{name}", _PART.sub(lambda found: parts[found[1]], body))
        for kind, name, body in sections
        if kind == "name"
    }


def _columns(found: re.Match[str]) -> str:
    """Write a group of fields in one of its forms."""
    group, form, table = found.groups()
    pattern = {
        "columns": f"{table}.{{0}}" if table else "{0}",
        "values": ":{0}",
        "assignments": "{0} = :{0}",
        "zeros": "{0} = 0",
    }[form]
    return ", ".join(pattern.format(name) for name in GROUPS[group])


def _statement(name: str, body: str) -> Statement:
    declared = _IN.search(body)
    names = tuple(n.strip() for n in declared.group(1).split(",")) if declared else ()
    text = _COMMENT.sub("", body)
    used = set(_PARAMETER.findall(text))
    if used != set(names):
        raise RuntimeError(f"{name}: `-- in:` lists {sorted(names)}, the text uses {sorted(used)}")
    numbers = {parameter: f"?{index}" for index, parameter in enumerate(names, 1)}
    text = _PARAMETER.sub(lambda found: numbers[found.group(1)], text)
    return Statement(" ".join(text.split()).rstrip(";"), names)
