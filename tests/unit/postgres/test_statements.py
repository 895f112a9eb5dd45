"""What several functions share stands once, and is put where it is named."""

import re
from importlib import resources

import pytest

from lamplighter.engines.postgres import statements

KNOWN = {
    "one": ([], "1"),
    "jobs_of": (["turn", "most"], "SELECT job\nWHERE job.lane = @turn@.lane\nLIMIT @most@"),
    "head_of": (["turn"], "@jobs_of(@turn@, 1)@"),
}
SOURCES = {
    entry.name: entry.read_text(encoding="utf-8")
    for entry in resources.files("lamplighter.engines.postgres").joinpath("sql").iterdir()
    if entry.name.endswith(".sql")
}


def test_a_part_stands_where_it_is_named_with_what_it_is_given():
    text = statements.included("    (\n        @head_of(t)@\n    ) AS head", KNOWN)

    assert text == (
        "    (\n        SELECT job\n        WHERE job.lane = t.lane\n        LIMIT 1\n    ) AS head"
    )


def test_a_constant_is_a_part_without_anything_given():
    assert statements.included("awake = @one@ AND '@schema@'", KNOWN) == "awake = 1 AND '@schema@'"


@pytest.mark.parametrize("text", ["@unknown(t)@", "@two@"])
def test_a_part_that_nobody_has_defined_is_an_error(text: str):
    with pytest.raises(KeyError):
        statements.included(text, KNOWN)


@pytest.mark.parametrize("text", ["@head_of@", "@head_of(t, u)@", "@one(t)@"])
def test_a_part_is_given_all_that_it_needs_and_no_more(text: str):
    with pytest.raises(ValueError, match="zip"):
        statements.included(text, KNOWN)


def test_every_part_is_used():
    texts = [*SOURCES.values(), *(text for _, text in statements.parts().values())]
    used = {name for text in texts for name in re.findall(r"@([a-z][\w.]*)", text)}

    assert statements.parts().keys() <= used


def test_nothing_is_left_to_put_in():
    for file in statements.functions("lamplighter"):
        assert not re.search(r"@[a-z][\w.]*(\([^)]*\))?@", file)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_no_function_is_longer_than_a_hundred_lines(name: str):
    for function in re.findall(
        r"^CREATE OR REPLACE (.*?)^\$\$;$", SOURCES[name], re.MULTILINE | re.DOTALL
    ):
        assert function.count("\n") <= 100, function.partition("(")[0]
