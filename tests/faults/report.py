"""The summary that a run prints."""

from __future__ import annotations

from collections.abc import Sequence

from tests.faults.measures import percentile
from tests.faults.scenarios.stage import Verdict

SHOWN = 10


def summary(verdicts: Sequence[Verdict]) -> str:
    """Say in a few lines what happened and whether everything held."""
    lines: list[str] = []
    for verdict in verdicts:
        lines += [_scenario(verdict), *(f"  {figure}" for figure in verdict.figures)]
    kinds = sorted({kind for verdict in verdicts for kind in verdict.kills})
    killed = {kind: sum(verdict.kills.get(kind, 0) for verdict in verdicts) for kind in kinds}
    rescues = [seconds for verdict in verdicts for seconds in verdict.rescues]
    slowest, slow = max(rescues, default=0), percentile(rescues, 0.99)
    overlap = max((one.longest_overlap for one in verdicts), default=0)
    lines += [
        "",
        f"kills                    {sum(killed.values())}"
        + "".join(f", {kind} {count}" for kind, count in killed.items()),
        f"submissions answered     {_sum(verdicts, 'acknowledged')}",
        f"  by an existing job     {_sum(verdicts, 'repeated')}",
        f"submissions unanswered   {_sum(verdicts, 'unanswered')}",
        f"jobs                     {_sum(verdicts, 'jobs')}",
        f"effects                  {_sum(verdicts, 'effects')}",
        f"plain effects repeated   {_sum(verdicts, 'duplicates')}",
        f"late writes refused      {_sum(verdicts, 'refused')}",
        f"overlapping runs         {_sum(verdicts, 'overlaps')}, up to {overlap:.3f} s",
        f"rescues                  {len(rescues)}, up to {slowest:.2f} s, p99 {slow:.2f} s",
    ]
    lines += [f"served while backlogged  {one.served}" for one in verdicts if one.served]
    lines += ["", *_invariants(verdicts)]
    return "\n".join(lines)


def _sum(verdicts: Sequence[Verdict], name: str) -> int:
    return sum(getattr(verdict, name) for verdict in verdicts)


def _scenario(verdict: Verdict) -> str:
    words = f"{len(verdict.violations)} violations" if verdict.violations else "held"
    return (
        f"{verdict.name:24} {verdict.jobs:6} jobs, {sum(verdict.kills.values()):4} kills: {words}"
    )


def _invariants(verdicts: Sequence[Verdict]) -> list[str]:
    names = sorted(
        {name for verdict in verdicts for name in verdict.found},
        key=lambda name: (not name.startswith("I"), len(name), name),
    )
    lines: list[str] = []
    for name in names:
        found = [one for verdict in verdicts for one in verdict.found.get(name, ())]
        lines.append(f"{name:8} {'held' if not found else f'VIOLATED {len(found)} times'}")
        lines += [f"         {one.job_id} {one.text}" for one in found[:SHOWN]]
    return lines
