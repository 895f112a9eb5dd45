"""Finding the program's job types."""

import pytest

from lamplighter.model.errors import InvalidApp
from lamplighter.worker.load import load_registry


@pytest.fixture
def module(tmp_path, monkeypatch, request):
    def write(text: str) -> str:
        name = f"loaded_{abs(hash(request.node.name))}"
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        return name

    return write


GOOD = """
from lamplighter.registry import JobType, Registry
class App: pass
app = App()
app.registry = Registry()
async def work(): pass
app.registry.add(JobType(work))
"""


def test_the_registry_is_found(module):
    assert load_registry(f"{module(GOOD)}:app").names() == ("work",)


@pytest.mark.parametrize("spec", ["", "shop", "shop:", ":app"])
def test_a_name_without_both_parts_is_refused(spec):
    with pytest.raises(InvalidApp, match="does not name an app"):
        load_registry(spec)


def test_a_missing_module_is_named():
    with pytest.raises(InvalidApp, match="there is no module `nowhere_at_all`") as refused:
        load_registry("nowhere_at_all:app")
    assert "PYTHONPATH" in refused.value.hint


def test_a_failing_import_shows_the_users_line_and_not_ours(module):
    name = module("import json\nvalue = 1 / 0\n")

    with pytest.raises(InvalidApp, match="ZeroDivisionError") as refused:
        load_registry(f"{name}:app")
    assert "value = 1 / 0" in refused.value.cause
    assert "load.py" not in refused.value.cause
    assert "importlib" not in refused.value.cause


def test_a_missing_module_inside_the_app_is_no_missing_app(module):
    with pytest.raises(InvalidApp, match="No module named 'absent_thing'"):
        load_registry(f"{module('import absent_thing')}:app")


def test_exit_at_import_is_reported(module):
    with pytest.raises(InvalidApp, match="SystemExit"):
        load_registry(f"{module('raise SystemExit(1)')}:app")


def test_a_missing_attribute_is_named(module):
    with pytest.raises(InvalidApp, match="has no `oops`"):
        load_registry(f"{module(GOOD)}:oops")


def test_something_else_than_an_app_is_refused(module):
    with pytest.raises(InvalidApp, match="is a int, not an App"):
        load_registry(f"{module('app = 3')}:app")


def test_an_app_without_job_types_is_refused(module):
    text = GOOD.replace("app.registry.add", "#")

    with pytest.raises(InvalidApp, match="no job types"):
        load_registry(f"{module(text)}:app")
