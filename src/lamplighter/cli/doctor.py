"""`lamplighter doctor`: look at the store and say what is wrong with it."""

from __future__ import annotations

from dataclasses import replace

import click

from lamplighter import config
from lamplighter.cli import output, store
from lamplighter.connect import connect
from lamplighter.coordinator.outlook import look
from lamplighter.model.counts import counted
from lamplighter.model.errors import LamplighterError
from lamplighter.port import outlook
from lamplighter.port.checkup import Checkup, Finding, Grade
from lamplighter.port.store import Engine

_STYLES = {
    Grade.OK: "green",
    Grade.NOTE: "cyan",
    Grade.WARNING: "yellow",
    Grade.PROBLEM: "red",
}


@click.command(short_help="Say what is wrong with the store, and how to mend it.")
@store.store_options
@click.pass_context
def doctor(context: click.Context, url: str | None, *, as_json: bool) -> None:
    """Look at the store and its settings: what is wrong, and how to mend it.

    Changes nothing. The exit code is 1 if there is a problem.
    """
    found = store.run(_check_up(url))
    if as_json:
        output.print_json(_shape(found))
    else:
        _tell(found)
    context.exit(1 if found.problems else 0)


async def _check_up(url: str | None) -> Checkup:
    settings = config.load(url=url)
    engine = connect(settings.url, deadline=settings.store_deadline)
    found = await engine.check_up(lease_ms=round(settings.lease * 1000))
    return replace(found, findings=(*found.findings, *await _outlook(engine)))


async def _outlook(engine: Engine) -> list[Finding]:
    """Say what nobody runs, if the store can be opened; the check-up has said why it cannot."""
    try:
        await engine.open(create=False)
        try:
            return outlook.findings(await look(engine))
        finally:
            await engine.close()
    except LamplighterError:
        return []


def _tell(found: Checkup) -> None:
    wide = max(len(finding.check) for finding in found.findings)
    for finding in found.findings:
        grade = click.style(f"{finding.grade.value:<8}", fg=_STYLES[finding.grade])
        click.echo(f"{grade} {finding.check:<{wide}}  {_words(finding)}")
    if found.survives:
        click.echo("\nAn acknowledged job survives")
        wide = max(map(len, found.survives))
        for accident, answer in found.survives.items():
            click.echo(f"  {accident + ':':<{wide + 1}}  {output.one_line(answer)}")
    click.echo(f"\n{_sum(found)}")


def _words(finding: Finding) -> str:
    remedy = f" → {finding.remedy}" if finding.remedy else ""
    return output.one_line(f"{finding.text}{remedy}")


def _sum(found: Checkup) -> str:
    warnings = sum(finding.grade is Grade.WARNING for finding in found.findings)
    return f"{_count(found.problems, 'problem')}, {_count(warnings, 'warning')}"


def _count(number: int, what: str) -> str:
    return counted(number, what) if number else f"no {what}s"


def _shape(found: Checkup) -> dict[str, object]:
    return {
        "engine": found.engine,
        "problems": found.problems,
        "findings": [
            {
                "check": finding.check,
                "grade": finding.grade.value,
                "text": finding.text,
                "remedy": finding.remedy or None,
            }
            for finding in found.findings
        ],
        "survives": dict(found.survives),
    }
