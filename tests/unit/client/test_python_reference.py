"""The page on Python explains every type of ours that it names."""

import inspect
import sys
from dataclasses import dataclass
from types import ModuleType

import pytest

import lamplighter
from lamplighter.inspection.views import JobView
from lamplighter.model.stride import QueueStride
from tools import python_reference


@dataclass
class Shown:
    """A public value with a field of a type that the page does not have."""

    order: QueueStride
    """Which queue is next."""


def test_every_type_that_is_named_is_explained():
    assert python_reference.unexplained() == []


def test_a_type_that_is_named_and_not_explained_is_found(monkeypatch, capsys):
    monkeypatch.setattr(lamplighter, "Shown", Shown, raising=False)
    monkeypatch.setattr(lamplighter, "__all__", [*lamplighter.__all__, "Shown"])
    monkeypatch.setattr(sys, "argv", ["python_reference.py", "--check"])

    assert python_reference.unexplained() == [("QueueStride", "Shown")]
    assert python_reference.main() == 1
    assert "Shown names QueueStride" in capsys.readouterr().err


def test_the_types_of_a_job_view_are_imported_from_the_package():
    from lamplighter import ErrorInfo, Note, Progress

    fields = inspect.get_annotations(JobView)
    for name, kind in {
        "hold": Note,
        "cancel": Note,
        "error": ErrorInfo,
        "progress": Progress,
    }.items():
        assert fields[name] == f"{kind.__name__} | None"


@pytest.mark.parametrize("name", ["Retry", "JobView", "Note", "ErrorInfo", "Progress", "Status"])
def test_every_field_that_users_touch_first_has_a_meaning(name):
    assert not isinstance(getattr(lamplighter, name), ModuleType)
    section = python_reference.section(name, getattr(lamplighter, name))
    rows = [row for row in section.splitlines() if row.startswith("| `")]
    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []


def test_nothing_on_the_page_is_without_a_meaning():
    lines = python_reference.page().splitlines()
    assert [line for line in lines if line.startswith("| `") and line.endswith("|  |")] == []
    assert "\n```\n\n\n" not in python_reference.page()


def test_a_record_says_that_it_is_the_stores_own_and_where_the_other_is():
    said = str(lamplighter.Handle.record.__doc__)
    assert "store's own record" in said
    assert "app.jobs.get" in said
