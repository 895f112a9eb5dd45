"""Versions of a job type: which of the live ones take a job's arguments, and where it waits.

Workers publish a JSON Schema of the arguments of each type. Every live worker holds a slot, a small
number; no two workers that hold the same slot know different versions of one type. A job that a
worker's version does not take moves to the lane `version:N` of a slot whose version takes it, and
where there is none to `no_version`, for which no worker asks. Only workers that serve the job's
queue count: others never ask for it, whatever they take.

What a schema says is a first guess: it is read leniently, and a version that has refused a job in
fact is remembered with the job and not tried again. So every job is refused at most once by each
version.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from lamplighter.model.job import NO_VERSION, Refusal, version_requirement
from lamplighter.model.outcome import Misfit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from lamplighter.model.job import ErrorInfo, Job

MOST_SLOTS = 8
"""Lanes are never removed: so many versions of one type can be told apart at once."""
MOST_SHOWN = 200
"""Characters of a signature in a message."""
_DEPTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Live workers that know a version, hold one slot and serve the same queues."""

    slot: int
    """0: none was free."""
    queues: tuple[str, ...]
    workers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of a type that live workers know."""

    hash: str
    schema: str
    """JSON Schema of its arguments, as text."""
    seats: tuple[Seat, ...]

    def workers(self, slot: int | None = None) -> int:
        """Count the live workers that know it, or those of them on a slot."""
        return sum(seat.workers for seat in self.seats if slot in {None, seat.slot})

    def slots(self) -> set[int]:
        """Return the slots for which a job can wait."""
        return {seat.slot for seat in self.seats if seat.slot}


# ── where a job waits ────────────────────────────────────────────────────────────────────────


def serving(live: Iterable[Version], queue: str) -> list[Version]:
    """Return what lives in one queue: versions with only those of their workers that serve it."""
    found = (
        replace(one, seats=tuple(seat for seat in one.seats if queue in seat.queues))
        for one in live
    )
    return [one for one in found if one.seats]


def place(job: Job, live: Iterable[Version], refused: Collection[str]) -> str:
    """Return the part of the requirement under which a job waits for a version that takes it.

    Empty: all versions that live in its queue take it, so that any worker there may. Of several
    versions, and of several slots of one, that of most workers is chosen.
    """
    here = serving(live, job.queue)
    able = [one for one in here if one.hash not in refused and accepts(one.schema, job.args)]
    if here and len(able) == len(here):
        return ""
    reachable = [one for one in able if one.slots()]
    if not reachable:
        return NO_VERSION
    best = max(reachable, key=lambda one: (one.workers(), one.hash))
    return version_requirement(max(best.slots(), key=lambda slot: (best.workers(slot), -slot)))


def free_slot(
    mine: Mapping[str, str], others: Iterable[tuple[int, str, str]], wanted: int = 1
) -> int:
    """Return a slot on which no other version of a type of ``mine`` stands, or 0.

    The one where most of ``mine`` stand already, so that equal versions meet on one slot: what
    waits for a version waits on one of its slots, and the workers on its others do not help. Else
    the one that is wanted, else the lowest. ``mine`` has the hash of each type; ``others`` are
    (slot, type, hash) of live workers.
    """
    taken: set[int] = set()
    shared: Counter[int] = Counter()
    for slot, name, digest in others:
        if mine.get(name, digest) != digest:
            taken.add(slot)
        elif name in mine:
            shared[slot] += 1
    slots = [slot for slot in (wanted, *range(1, MOST_SLOTS + 1)) if slot not in taken]
    return max(slots, key=lambda slot: shared[slot], default=0)


def orphans(live: Iterable[Version]) -> dict[tuple[int, ...], tuple[str, ...]]:
    """Return the slots of a type that no live worker holds in a queue: nobody asks for them there.

    They are returned with the queues for which the same slots are orphans. Queues that nobody
    serves are left out: there is nobody to wait for yet.
    """
    held: dict[str, set[int]] = {}
    for seat in (seat for version in live for seat in version.seats):
        for queue in seat.queues:
            held.setdefault(queue, set()).add(seat.slot)
    queues: dict[tuple[int, ...], list[str]] = {}
    for queue in sorted(held):
        slots = tuple(slot for slot in range(1, MOST_SLOTS + 1) if slot not in held[queue])
        queues.setdefault(slots, []).append(queue)
    return {slots: tuple(names) for slots, names in queues.items()}


def with_refusal(before: Sequence[Refusal], refusal: Refusal) -> tuple[Refusal, ...]:
    """Add a refusal to those that are known; of one version the last counts."""
    kept = [one for one in before if one.version != refusal.version]
    return (*kept, refusal)[-MOST_SLOTS:]


# ── what a schema takes ──────────────────────────────────────────────────────────────────────


def accepts(schema: str, args: bytes) -> bool:
    """Tell whether arguments may fit a schema; in doubt they do.

    Names and the JSON types of values are compared. Formats, patterns and bounds are left to the
    worker.
    """
    try:
        value, root = json.loads(args), json.loads(schema)
    except ValueError:
        return False
    return _fits(value, root, root, _DEPTH)


def _fits(value: object, schema: object, root: object, depth: int) -> bool:
    if not isinstance(schema, dict) or depth == 0:
        return True
    rules = cast("dict[str, Any]", schema)
    if "$ref" in rules:
        return _fits(value, _referred(rules["$ref"], root), root, depth - 1)
    if "anyOf" in rules:
        return any(_fits(value, one, root, depth - 1) for one in rules["anyOf"])
    if "enum" in rules and value not in rules["enum"]:
        return False
    if "const" in rules and value != rules["const"]:
        return False
    if not _is_of(value, rules):
        return False
    if isinstance(value, dict):
        return _fits_object(cast("dict[str, object]", value), rules, root, depth)
    return True


def _fits_object(value: dict[str, object], rules: dict[str, Any], root: object, depth: int) -> bool:
    known: dict[str, Any] = rules.get("properties", {})
    if any(name not in value for name in rules.get("required", ())):
        return False
    if rules.get("additionalProperties") is False and any(name not in known for name in value):
        return False
    return all(_fits(item, known.get(name), root, depth - 1) for name, item in value.items())


def _is_of(value: object, rules: dict[str, Any]) -> bool:
    """Compare the JSON type; a text with a format may have been given as a number, and so on."""
    wanted: object = rules.get("type")
    if wanted is None or ("format" in rules and isinstance(value, (str, int, float))):
        return True
    kinds = cast("list[str]", wanted) if isinstance(wanted, list) else [str(wanted)]
    named = _kind(value)
    if named == "number" and "integer" in kinds:
        return cast("float", value).is_integer()
    return named in kinds or (named == "integer" and "number" in kinds)


def _referred(reference: str, root: object) -> object:
    """Follow a reference inside the schema; what is not there takes anything."""
    found = root
    for step in reference.removeprefix("#/").split("/"):
        if not isinstance(found, dict):
            return None
        found = cast("dict[str, object]", found).get(step)
    return found


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


# ── for people ───────────────────────────────────────────────────────────────────────────────


def signature(name: str, schema: str) -> str:
    """Write what a version takes, as in `charge(order: integer, coupon: string = …)`."""
    try:
        root = cast("dict[str, Any]", json.loads(schema))
        required = set(cast("list[str]", root.get("required", ())))
        given: dict[str, Any] = root.get("properties", {})
        parts = [
            f"{field}: {_named(rules, root)}{'' if field in required else ' = …'}"
            for field, rules in given.items()
        ]
    except (ValueError, AttributeError, TypeError):
        return _cut(f"{name}(…)")
    return _cut(f"{name}({', '.join(sorted(parts, key=lambda part: part.endswith('…')))})")


def signature_of(name: str, args: bytes) -> str:
    """Write names and types of a job's arguments, never a value, in the same way."""
    try:
        values = cast("dict[str, object]", json.loads(args))
        parts = [f"{field}: {_kind(value)}" for field, value in values.items()]
    except (ValueError, AttributeError):
        return _cut(f"{name}(…)")
    return _cut(f"{name}({', '.join(parts)})")


def _named(rules: object, root: object) -> str:
    if not isinstance(rules, dict):
        return "any"
    found = cast("dict[str, Any]", rules)
    if "anyOf" in found:
        return " | ".join(dict.fromkeys(_named(one, root) for one in found["anyOf"]))
    if "$ref" in found:
        return str(found["$ref"]).rpartition("/")[2]
    kind: object = found.get("type", "any")
    return " | ".join(cast("list[str]", kind)) if isinstance(kind, list) else str(kind)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def no_version_reason(name: str, args: bytes, live: Sequence[Version], span: str) -> str:
    """Say why a job is dead that no live version took for too long."""
    accepted = "; ".join(signature(name, version.schema) for version in live[:MOST_SLOTS])
    return (
        f"no_version: no live version took it for {span}; it was submitted as "
        f"{signature_of(name, args)}, and the live versions take {accepted}"
    )


# ── what becomes of a job that did not fit ───────────────────────────────────────────────────


def refused(
    job: Job,
    by: str,
    error: ErrorInfo,
    *,
    before: Sequence[Refusal],
    live: Sequence[Version],
    now_ms: int,
) -> Misfit:
    """Decide where a job waits that the version ``by`` has refused; ``before`` it, others did."""
    since = min((one.since_ms for one in before), default=now_ms)
    refusals = with_refusal(before, Refusal(version=by, since_ms=since))
    where = place(job, live, {one.version for one in refusals})
    return Misfit(replace(error, refusals=refusals), where)


def looked_at_again(
    job: Job,
    error: ErrorInfo | None,
    live: Sequence[Version],
    *,
    now_ms: int,
    patience_ms: int,
    interval_ms: int,
) -> Misfit:
    """Decide again about a job that no version took, or whose version is gone.

    It was looked at last when it became due. Time in which nobody looked, because everything was
    switched off, does not count against it: a look is to come every ``interval_ms``.
    """
    before = () if error is None else error.refusals
    here = serving(live, job.queue)
    where = place(job, live, {one.version for one in before})
    if where != NO_VERSION:
        return Misfit(None, where)
    since = min((one.since_ms for one in before), default=job.due_at_ms)
    unseen = now_ms - job.due_at_ms
    if unseen > 2 * interval_ms:
        since += unseen
    if here and now_ms - since >= patience_ms:
        reason = no_version_reason(job.type, job.args, here, _span(patience_ms))
        return Misfit(error, where, reason)
    if error is not None:
        moved = tuple(replace(one, since_ms=since) for one in before)
        error = replace(error, refusals=moved)
    return Misfit(error, where)


def _span(milliseconds: int) -> str:
    minutes = milliseconds / 60_000
    return f"{minutes:g} min" if minutes >= 1 else f"{milliseconds / 1000:g} s"
