"""The check of the pinned requirements notices what it is for."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HASH = "--hash=sha256:" + "a" * 64


@pytest.fixture
def supply(monkeypatch):
    spec = importlib.util.spec_from_file_location("supply", ROOT / "tools" / "supply.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "supply", module)
    spec.loader.exec_module(module)
    return module


def test_the_projects_own_requirements_are_in_order(supply):
    assert supply.problems() == []


def test_a_pin_without_a_hash_is_named(supply):
    text = f"click==8.0 \\\n    {HASH}\nrich==14.0\n"
    assert supply.lock_problems("core.txt", text) == ["core.txt: `rich` has no hash"]


@pytest.mark.parametrize(
    "line", ["--index-url https://example.org/simple", "rich @ https://example.org/rich.whl"]
)
def test_a_host_is_refused(supply, line):
    text = f"{line}\nclick==8.0 \\\n    {HASH}\n"
    assert "core.txt: names a host" in supply.lock_problems("core.txt", text)


def test_an_empty_lock_is_refused(supply):
    assert supply.lock_problems("core.txt", "# nothing\n") == ["core.txt: no pins"]


def test_an_import_nobody_declared_is_named(supply):
    imports = {"click": {"cli/main.py"}, "yaml": {"config.py"}, "os": {"config.py"}}
    assert supply.import_problems(imports, {"click"}) == [
        "`yaml` is imported by config.py but not declared in pyproject.toml"
    ]


def test_test_libraries_are_imported_only_where_tests_are_shipped(supply):
    assert supply.import_problems({"pytest": {"port/conformance/claim.py"}}, set()) == []
    assert supply.import_problems({"pytest": {"app.py"}}, set())


def test_a_declaration_nobody_uses_is_named(supply):
    assert supply.import_problems({}, {"rich"}) == ["`rich` is declared but never imported"]


def test_the_list_of_contents_names_every_runtime_pin_with_its_hashes(supply):
    listed = json.loads(supply.sbom())
    names = {part["name"] for part in listed["components"]}
    assert {"click", "msgspec", "rich"} <= names
    assert all(part["hashes"] for part in listed["components"])
