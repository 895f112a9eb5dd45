"""Which versions of a type take a job's arguments, and where it waits."""

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from lamplighter.model.job import (
    NO_VERSION,
    ErrorInfo,
    Job,
    Level,
    Refusal,
    base_requirement,
    next_requirement,
    requirement_of,
    version_in,
)
from lamplighter.model.versions import (
    Seat,
    Version,
    accepts,
    free_slot,
    looked_at_again,
    orphans,
    place,
    refused,
    signature,
    signature_of,
)
from lamplighter.registry import JobType

HOUR, MINUTE = 3_600_000, 60_000


def schema_of(function) -> str:
    return JobType(function).schema


async def old(order: int) -> None: ...


async def new(order: int, coupon: str = "") -> None: ...


class Address(msgspec.Struct):
    street: str
    number: int | None = None


async def ship(to: Address, tags: list[str], how: str | None = None) -> None: ...


def seat(slot: int, *queues: str, workers: int = 1) -> Seat:
    return Seat(slot=slot, queues=queues or ("default",), workers=workers)


OLD = Version(hash="old", schema=schema_of(old), seats=(seat(1, workers=5),))
NEW = Version(hash="new", schema=schema_of(new), seats=(seat(2, workers=2),))
PLAIN, MORE = b'{"order":1}', b'{"order":1,"coupon":"x"}'


def make_job(args: bytes = MORE, due: int = 0) -> Job:
    return Job(
        id="j",
        type="charge",
        args=args,
        queue="default",
        level=Level.NORMAL,
        tenant="default",
        due_at_ms=due,
        created_at_ms=0,
    )


def waits(args: bytes, live: list[Version], refusing: Collection[str] = ()) -> str:
    return place(make_job(args), live, refusing)


@pytest.mark.parametrize("base", ["", "gpu", "a+b"])
@pytest.mark.parametrize("version", ["", "version:1", "version:12", NO_VERSION])
@pytest.mark.parametrize("suspect", [False, True])
def test_a_requirement_says_what_it_was_made_of(base, version, suspect):
    made = requirement_of(base, suspect=suspect, version=version)

    assert base_requirement(made) == base
    assert version_in(made) == version
    assert next_requirement(made, suspect=False, version=None) == made
    moved = next_requirement(made, suspect=True, version="version:7")
    assert moved == requirement_of(base, suspect=True, version="version:7")


@pytest.mark.parametrize(
    ("function", "arguments", "fits"),
    [
        (old, {"order": 1}, True),
        (old, {"order": 1.5}, False),
        (old, {"order": True}, False),
        (old, {"order": "1"}, False),
        (old, {}, False),
        (old, {"order": 1, "coupon": "x"}, False),
        (new, {"order": 1}, True),
        (new, {"order": 1, "coupon": "x"}, True),
        (new, {"order": 1, "coupon": None}, False),
        (ship, {"to": {"street": "a"}, "tags": []}, True),
        (ship, {"to": {"street": "a", "number": None}, "tags": [], "how": None}, True),
        (ship, {"to": {"street": "a", "number": "1"}, "tags": []}, False),
        (ship, {"to": {}, "tags": []}, False),
        (ship, {"to": "a", "tags": []}, False),
        (ship, {"to": {"street": "a"}, "tags": "a"}, False),
        (ship, {"to": {"street": "a"}, "tags": [], "how": 1}, False),
    ],
)
def test_a_schema_takes_what_its_handler_takes(function, arguments: dict[str, Any], fits):
    written = json.dumps(arguments).encode()

    assert accepts(schema_of(function), written) is fits
    if fits:
        JobType(function).decode(written)


@pytest.mark.parametrize("schema", ["{", "[]", "true", '{"$ref": "#/$defs/gone"}', '{"type": 7}'])
def test_a_schema_that_cannot_be_read_decides_nothing_and_breaks_nothing(schema):
    assert accepts(schema, PLAIN) is (schema not in {"{", '{"type": 7}'})
    assert signature("charge", schema).startswith("charge(")


def test_a_schema_that_refers_to_itself_comes_to_an_end():
    schema = '{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}'

    assert accepts(schema, PLAIN)


def test_a_job_waits_for_a_version_that_takes_it():
    assert waits(MORE, [OLD, NEW], {"old"}) == "version:2"
    assert waits(MORE, [OLD], {"old"}) == NO_VERSION
    assert waits(MORE, [], ()) == NO_VERSION
    assert waits(PLAIN, [OLD, NEW], ()) == ""
    assert waits(PLAIN, [OLD, NEW], {"new"}) == "version:1"


def test_a_version_that_refused_it_in_fact_is_not_tried_again():
    assert waits(MORE, [NEW], {"new"}) == NO_VERSION


def test_a_version_without_a_slot_cannot_be_waited_for_unless_all_take_it():
    nowhere = replace(NEW, seats=(seat(0),))

    assert waits(MORE, [OLD, nowhere], ()) == NO_VERSION
    assert waits(MORE, [nowhere], ()) == ""


def test_of_several_versions_the_one_most_workers_know_is_chosen():
    other = replace(NEW, hash="other", seats=(seat(4, workers=2), seat(6, workers=7)))

    assert waits(MORE, [OLD, NEW, other]) == "version:6"


def test_a_job_waits_only_for_workers_that_serve_its_queue():
    both = replace(NEW, seats=(seat(2, "letters", workers=9), seat(3, "default", "letters")))

    assert waits(MORE, [OLD, both]) == "version:3"
    assert waits(MORE, [OLD, replace(NEW, seats=(seat(2, "letters"),))]) == NO_VERSION
    elsewhere = replace(OLD, seats=(seat(1, "letters"),))
    assert waits(MORE, [elsewhere, NEW]) == ""
    assert waits(PLAIN, [elsewhere]) == NO_VERSION


def test_slots_are_shared_by_equal_versions_and_by_those_that_have_no_type_in_common():
    others = [(1, "a", "a1"), (1, "b", "b1"), (2, "a", "a2")]

    assert free_slot({"a": "a1"}, others) == 1
    assert free_slot({"a": "a2"}, others) == 2
    assert free_slot({"a": "a2", "b": "b1"}, others) == 2
    assert free_slot({"a": "a3"}, others) == 3
    assert free_slot({"c": "c1"}, others) == 1
    assert free_slot({"c": "c1"}, others, wanted=5) == 5
    assert free_slot({"a": "x"}, [(n, "a", f"a{n}") for n in range(1, 9)]) == 0


def test_equal_versions_meet_on_one_slot():
    others = [(2, "a", "a2"), (2, "b", "b1"), (3, "a", "a2"), (4, "b", "b2")]

    assert free_slot({"a": "a2"}, others) == 2
    assert free_slot({"a": "a2", "b": "b1"}, others) == 2
    assert free_slot({"a": "a2", "b": "b1"}, others, wanted=5) == 2
    assert free_slot({"a": "a2"}, others, wanted=3) == 3
    assert free_slot({"a": "a2", "b": "b3"}, others) == 3


def test_slots_that_nobody_holds_in_a_queue_are_orphans_there():
    assert orphans([OLD, NEW]) == {(3, 4, 5, 6, 7, 8): ("default",)}
    assert orphans([]) == {}
    spread = replace(NEW, seats=(seat(2, "default", "a", "b"), seat(0, "c"), seat(3, "b")))
    assert orphans([OLD, spread]) == {
        (3, 4, 5, 6, 7, 8): ("default",),
        (1, 3, 4, 5, 6, 7, 8): ("a",),
        (1, 4, 5, 6, 7, 8): ("b",),
        (1, 2, 3, 4, 5, 6, 7, 8): ("c",),
    }


def test_signatures_show_names_and_types_and_no_values():
    assert signature("charge", NEW.schema) == "charge(order: integer, coupon: string = …)"
    assert signature_of("charge", MORE) == "charge(order: integer, coupon: string)"
    assert signature_of("charge", b"not json") == "charge(…)"
    assert len(signature_of("charge", json.dumps({f"n{i}": 1 for i in range(99)}).encode())) == 200


def test_refusals_are_remembered_once_for_each_version_since_the_first():
    error = ErrorInfo(type="DoesNotFit", message="no")
    before = (Refusal(version="x", since_ms=5), Refusal(version="old", since_ms=5))

    misfit = refused(make_job(), "old", error, before=before, live=[OLD, NEW], now_ms=99)

    assert misfit.version == "version:2"
    assert misfit.error.refusals == before


def looked(due: int, now: int, since: int, live=(OLD,)):
    error = ErrorInfo(
        type="DoesNotFit", message="no", refusals=(Refusal(version="old", since_ms=since),)
    )
    return looked_at_again(
        make_job(due=due),
        error,
        list(live),
        now_ms=now,
        patience_ms=HOUR,
        interval_ms=5 * MINUTE,
    )


def test_a_job_that_nobody_took_waits_until_its_time_is_over():
    early = looked(due=55 * MINUTE, now=HOUR - 1, since=0)
    late = looked(due=55 * MINUTE, now=HOUR, since=0)

    assert (early.dead, early.version) == (None, NO_VERSION)
    assert late.dead == (
        "no_version: no live version took it for 60 min; it was submitted as "
        "charge(order: integer, coupon: string), and the live versions take charge(order: integer)"
    )


def test_time_in_which_nobody_looked_does_not_count():
    misfit = looked(due=10 * MINUTE, now=50 * HOUR, since=0)

    assert misfit.dead is None
    assert misfit.error.refusals[0].since_ms == 50 * HOUR - 10 * MINUTE
    again = looked(due=50 * HOUR, now=50 * HOUR + 5 * MINUTE, since=50 * HOUR - 10 * MINUTE)
    assert again.dead is None


def test_time_in_which_nobody_serves_its_queue_does_not_count():
    elsewhere = replace(OLD, seats=(seat(1, "letters"),))

    misfit = looked(due=55 * MINUTE, now=HOUR, since=0, live=(elsewhere,))

    assert (misfit.dead, misfit.version) == (None, NO_VERSION)


def test_a_job_goes_to_a_version_that_has_come_even_when_its_time_is_over():
    misfit = looked(due=HOUR, now=HOUR, since=0, live=(OLD, NEW))

    assert (misfit.dead, misfit.version) == (None, "version:2")
