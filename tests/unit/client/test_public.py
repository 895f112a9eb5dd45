import ast
from importlib import import_module
from pathlib import Path

import pytest

import lamplighter
from lamplighter.model.errors import LamplighterError


def test_the_public_names_are_sorted_and_exist():
    assert lamplighter.__all__ == sorted(lamplighter.__all__)
    assert all(hasattr(lamplighter, name) for name in lamplighter.__all__)


def test_names_are_where_the_type_checker_is_told():
    source = Path(lamplighter.__file__).read_text(encoding="utf-8")
    told = {
        name.name: node.module.removeprefix("lamplighter.")
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("lamplighter.")
        for name in node.names
    }
    for name in lamplighter.__all__:
        home = import_module(f"lamplighter.{told[name]}")
        assert getattr(lamplighter, name) is getattr(home, name)
    assert told.keys() == set(lamplighter.__all__)
    assert set(lamplighter.__all__) <= set(dir(lamplighter))


def test_a_name_that_is_none_is_no_attribute():
    with pytest.raises(AttributeError, match="'lamplighter' has no attribute 'Nope'"):
        _ = lamplighter.Nope
    with pytest.raises(ImportError):
        from lamplighter import Nope  # noqa: F401


def test_public_errors_are_the_same_as_in_the_errors_module():
    for name in lamplighter.__all__:
        value = getattr(lamplighter, name)
        if isinstance(value, type) and issubclass(value, LamplighterError):
            assert getattr(lamplighter.errors, name) is value
