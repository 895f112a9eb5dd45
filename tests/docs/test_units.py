"""The systemd units: their commands are understood, and they leave a worker time to end."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from lamplighter.cli.main import main
from lamplighter.config import Settings

UNITS = sorted((Path(__file__).resolve().parents[2] / "deploy").glob("*.service"))


def setting(unit: Path, name: str) -> str:
    (value,) = re.findall(rf"^{name}=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    return value


def test_there_are_units_for_a_worker_for_many_and_for_the_service():
    assert [unit.name for unit in UNITS] == [
        "lamplighter-serve.service",
        "lamplighter-worker.service",
        "lamplighter-worker@.service",
    ]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_its_command_is_one_that_the_program_understands(unit: Path):
    _, name, *arguments = shlex.split(setting(unit, "ExecStart"))
    assert isinstance(main, click.Group)
    parent = main.make_context("lamplighter", [name])
    command = main.get_command(parent, name)

    parsed = command.make_context(name, arguments, parent=parent)

    assert parsed.params["url"] is None
    assert "%" not in " ".join(arguments)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_it_has_more_time_to_end_than_the_grace(unit: Path):
    assert int(setting(unit, "TimeoutStopSec")) > Settings().grace + Settings().short_grace


def test_the_template_differs_from_the_single_worker_in_its_name_only():
    def without_comments(unit: Path) -> list[str]:
        lines = unit.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line and not line.startswith("#")]

    _, single, template = map(without_comments, UNITS)
    assert [line.replace(" %i", "") for line in template] == single
