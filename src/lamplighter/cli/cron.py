"""`lamplighter cron`: what an expression means, before anything depends on it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lamplighter import runtime
from lamplighter.cli import output, reading

if TYPE_CHECKING:
    from lamplighter.model.schedule import Cron, Gap, Overlap, Preview, Touch

_LOCAL = "%a %Y-%m-%d %H:%M:%S"
_TIME = "%H:%M"
_EFFECTS = {
    "moved": "{wall} does not exist then and happens at {high}",
    "skipped": "{wall} does not exist then and is left out",
    "doubled": "{wall} comes twice then and happens both times",
    "first only": "{wall} comes twice then and happens the first time only",
}


@click.group()
def cron() -> None:
    """Explain cron expressions. Needs no store."""


@cron.command()
@click.argument("expression")
@click.option(
    "--timezone",
    metavar="NAME",
    default="UTC",
    show_default=True,
    help="The zone whose clocks it follows, as in Europe/Berlin.",
)
@click.option(
    "--gap",
    type=click.Choice(["next_valid", "skip"]),
    default="next_valid",
    show_default=True,
    help="What becomes of a time that the clocks skip.",
)
@click.option(
    "--overlap",
    type=click.Choice(["first", "both"]),
    default="first",
    show_default=True,
    help="What becomes of a time that the clocks show twice.",
)
@click.option("--seed", metavar="TEXT", default="", help="The schedule's name, for H.")
@click.option("--tenant", default="default", show_default=True, help="Whose schedule it is, for H.")
@click.option(
    "--count",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="How many runs to show.",
)
@click.option("--after", metavar="TIME", help="Show runs later than this instant.  [default: now]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def explain(
    expression: str,
    *,
    timezone: str,
    gap: Gap,
    overlap: Overlap,
    seed: str,
    tenant: str,
    count: int,
    after: str | None,
    as_json: bool,
) -> None:
    """Say when a cron expression fires, and what the clocks do to it.

    Quote the expression: lamplighter cron explain "30 2 * * *" --timezone Europe/Berlin
    """
    from lamplighter.model.ids import schedule_key
    from lamplighter.model.schedule import Cron, next_touch, preview

    key = schedule_key(tenant, seed) if seed else ""
    calendar = Cron(expression, timezone=timezone, gap=gap, overlap=overlap, seed=key)
    start = _now() if after is None else reading.instant("--after", after)
    runs = preview(calendar, start, count)
    touch = next_touch(calendar, start)
    if as_json:
        output.print_json(_document(calendar, runs, touch))
        return
    output.print_text(calendar.describe(), bold=True)
    output.print_text("")
    output.print_table(
        ["local", "UTC", ""],
        ([_local(run.local), _utc(run.utc), (run.mark or "", "yellow")] for run in runs),
        empty=f"it never fires after {start.isoformat()}",
    )
    output.print_text("")
    output.print_text(_touched(touch))


def _now() -> datetime:
    return datetime.fromtimestamp(runtime.now_ms() / 1000, UTC)


def _local(at: datetime) -> str:
    return f"{at.strftime(_LOCAL)} {at.isoformat()[19:]}"


def _utc(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _touched(touch: Touch | None) -> str:
    if touch is None:
        return "No change of the clocks in the next hundred years touches it."
    wall, low, high = (at.strftime(_TIME) for at in (touch.wall, touch.low, touch.high))
    if touch.low.date() != touch.high.date():
        high = touch.high.strftime("%Y-%m-%d %H:%M")
    effect = _EFFECTS[touch.effect].format(wall=wall, high=high)
    skipped = touch.effect in {"moved", "skipped"}
    kind = "skip" if skipped else "show twice"
    return (
        f"The next change of the clocks that touches it is at {_utc(touch.at)}: they {kind} "
        f"{touch.low.strftime('%Y-%m-%d')} {low} to {high}, so {effect}."
    )


def _document(calendar: Cron, runs: list[Preview], touch: Touch | None) -> dict[str, Any]:
    from lamplighter.model.schedule import encode, tzdata_version

    return {
        **encode(calendar),
        "description": calendar.describe(),
        "follows": "elapsed time" if calendar.free_running else "wall time",
        "tzdata": tzdata_version(),
        "runs": [
            {"utc": _utc(run.utc), "local": run.local.isoformat(), "mark": run.mark} for run in runs
        ],
        "touched": None
        if touch is None
        else {
            "at": _utc(touch.at),
            "effect": touch.effect,
            "wall": touch.wall.isoformat(),
            "low": touch.low.isoformat(),
            "high": touch.high.isoformat(),
        },
    }
