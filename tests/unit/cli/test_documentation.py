"""The reference of the command line names every command and every option there is."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lamplighter.cli.main import main

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"


def commands(
    command: click.Command, path: str = "lamplighter"
) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from commands(child, f"{path} {name}")
    else:
        yield path, command


def help_of(path: str) -> str:
    arguments = [*path.split()[1:], "--help"]
    shown = CliRunner().invoke(main, arguments, terminal_width=80, max_content_width=80)
    return "\n".join(line.rstrip() for line in shown.stdout.rstrip().splitlines())


ALL = dict(commands(main))


@pytest.mark.parametrize("path", ALL)
def test_every_command_is_documented_as_its_help_says(path):
    page = PAGE.read_text(encoding="utf-8")
    assert f"# `{path}`\n" in page, f"docs/reference/cli.md has no heading for `{path}`"
    text = f"```text\n{help_of(path)}\n```"
    assert text in page, f"docs/reference/cli.md differs from `{path} --help`:\n\n{text}"


@pytest.mark.parametrize("path", ALL)
def test_every_command_that_needs_a_store_takes_its_address_and_all_speak_json(path):
    options = {option for parameter in ALL[path].params for option in parameter.opts}
    wanted = {"--json"} if path.startswith("lamplighter cron ") else {"--url", "--json"}
    assert wanted <= options


@pytest.mark.parametrize("path", ALL)
def test_every_option_says_what_it_does(path):
    for parameter in ALL[path].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path} {parameter.opts}"
