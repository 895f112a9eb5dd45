"""The store itself: its version, its parts, and who may do what with it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from lamplighter.engines.postgres import statements
from lamplighter.engines.postgres.checkup.facts import Facts
from lamplighter.port import checkup
from lamplighter.port.checkup import Finding, note, ok, problem, warning

_DAY_MS = 86_400_000
_PART = re.compile(r"^CREATE (TABLE|(?:UNIQUE )?INDEX|SEQUENCE) (\w+)", re.MULTILINE)
_MIGRATE = "run `lamplighter migrate` as the owner of the schema"


def schema(facts: Facts) -> Finding:
    """There is a store, and this program can use it."""
    if facts.refusal is not None:
        cause, hint = facts.refusal
        return problem("schema", cause, hint)
    if facts.version == 0 and facts.stranger is not None:
        return problem(
            "schema",
            f"there is no store yet, and none can be made safely: {facts.stranger.cause}",
            facts.stranger.remedy(facts.user, facts.schema),
        )
    if facts.version == 0:
        return problem(
            "schema",
            f"there is no store in the schema `{facts.schema}` yet",
            "run: lamplighter migrate --url URL",
        )
    if not facts.current:
        return warning(
            "schema",
            f"version {facts.version}, but its functions are not those of this program",
            f"{_MIGRATE}; opening the store as its owner does the same",
        )
    return ok("schema", f"`{facts.schema}`, version {facts.version}")


def parts(facts: Facts) -> Finding:
    """Nothing was dropped, and every index can be used."""
    there = {one.name for one in facts.relations}
    gone = [f"{kind.lower()} `{name}`" for kind, name in expected() if name not in there]
    callable_ = {one.name for one in facts.routines}
    gone += [f"function `{name}`" for name in statements.function_names() if name not in callable_]
    if gone:
        return problem(
            "parts",
            f"{', '.join(gone[:5])}{' and more' if len(gone) > 5 else ''} missing",
            "`lamplighter migrate` puts functions back; make lost indexes anew as in "
            "migrations/*.sql, restore lost tables from a backup",
        )
    broken = [one.name for one in facts.relations if not one.valid]
    if broken:
        return problem(
            "parts",
            f"the index `{broken[0]}` is not valid and is not used",
            f"REINDEX INDEX CONCURRENTLY {facts.schema}.{broken[0]}",
        )
    return ok("parts", f"all {len(expected())} tables and indexes and all functions are there")


def expected() -> list[tuple[str, str]]:
    """Return what the migrations make: kind and name."""
    return [found for step in statements.migrations() for found in _PART.findall(step)]


def rights(facts: Facts) -> Finding:
    """This user may do what running jobs takes."""
    writing = list(_lacking(facts, reading=False))
    if not writing:
        return ok("rights", f"the user `{facts.user}` may run jobs")
    owner = facts.host.owner
    as_owner = f"as the owner `{owner}`: lamplighter migrate"
    reading = list(_lacking(facts, reading=True))
    if not reading:
        return note(
            "rights",
            f"the user `{facts.user}` may look, but not run jobs",
            f"{as_owner} --grant-run {facts.user}",
        )
    shown = ", ".join(reading[:4]) + (f" and {len(reading) - 4} more" if len(reading) > 4 else "")
    return problem(
        "rights",
        f"the user `{facts.user}` lacks {shown}",
        f"{as_owner} --grant-run {facts.user} (or --grant-read)",
    )


def _lacking(facts: Facts, *, reading: bool) -> Iterable[str]:
    if not facts.host.may_use:
        yield f"USAGE on schema {facts.schema}"
    for one in facts.relations:
        # Days are reached through the table they belong to.
        if not (one.partition and _is_day(one.name)):
            for right in one.lacks:
                if not reading or right == "SELECT":
                    yield f"{right} on {one.name}"
    names = set(statements.function_names())
    for one in facts.routines:
        if one.name in names and not one.callable and not (reading and one.changes):
            yield f"EXECUTE on function {one.name}"


def guard(facts: Facts) -> Finding:
    """Functions that act as the owner cannot be turned against the owner."""
    if facts.stranger is not None:
        owner = facts.host.owner or facts.user
        return problem(
            "guard",
            f"{facts.stranger.cause}, and could have functions of their own run with the rights of "
            f"the owner `{owner}` and of everybody who uses the store",
            facts.stranger.remedy(owner, facts.schema),
        )
    acting = [one for one in facts.routines if one.definer]
    loose = [one.name for one in acting if one.everybody or not one.path]
    if loose:
        return problem(
            "guard",
            f"the function `{loose[0]}` acts as its owner, and may be called by everybody or "
            "looks names up where its caller says",
            f"REVOKE ALL ON ROUTINE {facts.schema}.{loose[0]} FROM PUBLIC, or {_MIGRATE}",
        )
    return ok("guard", f"{len(acting)} functions act as the owner, for those who run jobs only")


def days(facts: Facts) -> Finding:
    """The tables of the next days are there before they are needed."""
    made = {one.name for one in facts.relations if one.partition and _is_day(one.name)}
    if not made:
        return note("days", "no table of a day yet: the first worker makes those of the next days")
    today = int(facts.now_ms) // _DAY_MS
    ahead = [_day(today), _day(today + 1)]
    missing = [name for name in ahead if name not in made]
    if missing:
        return warning(
            "days",
            f"the table `{missing[0]}` was not made ahead: what finishes on that day goes to "
            "`done_other`, from where it is removed one by one",
            "run a worker with its coordinator (not --no-coordinator), and see that nobody reads "
            "`done` for hours",
        )
    return ok("days", f"{len(made)} tables of days, the next ones made ahead")


def _day(number: int) -> str:
    return datetime.fromtimestamp(number * _DAY_MS / 1000, UTC).strftime("done_%Y%m%d")


def _is_day(name: str) -> bool:
    return re.fullmatch(r"done_\d{8}", name) is not None


def schedules(facts: Facts) -> Finding:
    """Schedules are fired when they are due."""
    return checkup.schedules(facts.overdue)


CHECKS = (parts, rights, guard, days, schedules)
"""For a store that is there; `schema` says whether it is."""
