"""Handlers: which functions can be one, what they accept, what becomes of their results."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import msgspec
import pytest

from lamplighter import Context, Retry
from lamplighter.model.errors import (
    InvalidArguments,
    InvalidHandler,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    UnknownType,
)
from lamplighter.model.job import Delivery, Level
from lamplighter.registry import DoesNotFit, JobType, NotJson, Registry


class Colour(Enum):
    RED = "red"


@dataclass
class Item:
    name: str
    price: float = 1.0


@dataclass
class Order:
    id: str
    items: list[Item] = field(default_factory=list)


class Point(msgspec.Struct):
    x: int
    y: int


class Model:
    """Validates and dumps itself the way pydantic models do."""

    def __init__(self, number: int) -> None:
        self.number = number

    @classmethod
    def model_validate(cls, value: Mapping[str, int]) -> Model:
        if not isinstance(value, dict) or not isinstance(value.get("number"), int):
            raise ValueError("number must be an integer")  # noqa: TRY004 - as pydantic does
        return cls(value["number"])

    def model_dump(self, *, mode: str) -> dict[str, int]:
        assert mode == "json"
        return {"number": self.number}


class Opaque:
    pass


def charge(ctx: Context, order_id: str, cents: int = 5, *, note: str | None = None) -> str:
    return order_id


async def rich(  # noqa: PLR0917
    order: Order,
    point: Point,
    when: datetime,
    id: UUID,
    price: Decimal,
    colour: Colour,
    numbers: Sequence[int],
    anything: Any = None,
    thing: object = None,
    size: Annotated[int, msgspec.Meta(ge=1)] = 1,
) -> Order:
    return order


RICH = {
    "order": Order("o-1", [Item("lamp", 2.5)]),
    "point": Point(1, 2),
    "when": datetime(2030, 1, 1, tzinfo=UTC),
    "id": UUID(int=5),
    "price": Decimal("1.10"),
    "colour": Colour.RED,
    "numbers": [1, 2],
    "anything": {"a": [None, True]},
    "thing": [1],
    "size": 3,
}


# ── registering ──────────────────────────────────────────────────────────────────────────────


def test_a_type_knows_its_handler():
    job_type = JobType(charge, queue="payments", level=Level.HIGH, timeout=3)

    assert (job_type.name, job_type.queue, job_type.level) == ("charge", "payments", Level.HIGH)
    assert job_type.wants_context
    assert not job_type.is_async
    assert JobType(rich).is_async
    assert not JobType(rich).wants_context


def test_an_unannotated_ctx_in_front_is_the_context():
    def handler(ctx, order_id): ...

    job_type = JobType(handler)

    assert job_type.wants_context
    assert job_type.bind((1,), {}) == b'{"order_id":1}'


def test_a_wrapped_coroutine_function_is_async():
    async def handler(order_id: str) -> None: ...

    @functools.wraps(handler)
    def wrapper(*args, **kwargs):
        return handler(*args, **kwargs)

    job_type = JobType(wrapper)

    assert job_type.is_async
    assert job_type.bind(("o-1",), {}) == b'{"order_id":"o-1"}'


def any_number(*numbers: int): ...
def any_names(**names: int): ...
def by_position(number: int, /): ...
def late_context(number: int, ctx: Context): ...
def yielding():
    yield 1


async def yielding_async():
    yield 1


def opaque(thing: Opaque): ...
def opaque_list(things: list[Opaque]): ...
def opaque_union(thing: Opaque | int): ...
def not_there(thing: Missing): ...  # noqa: F821


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (any_number, r"any number of arguments as `\*numbers"),
        (any_names, r"any names as `\*\*names"),
        (by_position, "by position only `number"),
        (late_context, "not its first parameter"),
        (yielding, "yields"),
        (yielding_async, "yields"),
        (opaque, "Opaque"),
        (opaque_list, "Opaque"),
        (opaque_union, "Opaque"),
        (not_there, "names `Missing`"),
        (lambda: None, "lambda has no name"),
        (functools.partial(charge, "x"), "not a function"),
        (Opaque, "not a function"),
        (print, "not a function"),
    ],
)
def test_what_cannot_be_a_handler_is_refused_with_the_reason(function, says):
    with pytest.raises(InvalidHandler, match=says) as caught:
        JobType(function)

    assert caught.value.hint


def test_a_class_inside_a_function_cannot_be_seen_by_a_postponed_annotation():
    class Local: ...

    def handler(thing: Local): ...

    with pytest.raises(InvalidHandler, match="names `Local`") as caught:
        JobType(handler)

    assert "top of the module" in caught.value.hint


@pytest.mark.parametrize("name", ["", "n" * 10_000, "a\0b", 5])
def test_bad_names_are_refused(name):
    with pytest.raises(InvalidName):
        JobType(charge, name=name)
    with pytest.raises(InvalidName):
        JobType(charge, queue=name)


def test_at_most_once_and_retries_contradict_each_other():
    with pytest.raises(InvalidOption, match="at most once"):
        JobType(charge, delivery=Delivery.AT_MOST_ONCE, retry=Retry())


def test_a_name_can_be_taken_once():
    registry = Registry()
    registry.add(JobType(charge))

    with pytest.raises(InvalidHandler, match="two handlers want the name `charge`"):
        registry.add(JobType(rich, name="charge"))


def test_an_unknown_type_is_named_with_its_neighbour():
    registry = Registry()
    registry.add(JobType(charge))
    registry.add(JobType(rich))

    with pytest.raises(UnknownType, match="did you mean `charge`") as caught:
        registry.get("chrage")

    assert "charge, rich" in caught.value.hint
    assert registry.names() == ("charge", "rich")
    assert "charge" in registry
    assert "chrage" not in registry
    assert [info.name for info in registry.infos()] == ["charge", "rich"]


def test_the_published_schema_describes_the_arguments():
    info = JobType(charge, queue="payments", retry=Retry(fixed=3), timeout=9).info()

    schema = json.loads(info.schema)
    assert schema["required"] == ["order_id"]
    assert schema["properties"]["cents"] == {"type": "integer", "default": 5}
    assert "ctx" not in schema["properties"]
    assert info.queue == "payments"
    assert info.options["timeout"] == 9
    assert info.options["retry"]["fixed"] == 3


def test_definitions_of_nested_types_travel_with_the_schema():
    schema = json.loads(JobType(rich).schema)

    assert schema["properties"]["order"] == {"$ref": "#/$defs/Order"}
    assert set(schema["$defs"]) >= {"Order", "Item", "Point"}


def test_the_hash_changes_with_the_signature_and_the_defaults():
    def other(ctx: Context, order_id: str, cents: float = 5): ...

    hashes = {
        JobType(charge).hash,
        JobType(other, name="charge").hash,
        JobType(charge, queue="payments").hash,
        JobType(charge, retry=Retry(function=lambda attempt: 1.0)).hash,
    }

    assert len(hashes) == 4
    assert JobType(charge).hash == JobType(charge).hash


# ── binding ──────────────────────────────────────────────────────────────────────────────────


def test_arguments_are_stored_by_name_as_they_were_given():
    job_type = JobType(charge)

    assert job_type.bind(("o-1",), {}) == b'{"order_id":"o-1"}'
    assert job_type.bind(("o-1", 7), {"note": None}) == b'{"order_id":"o-1","cents":7,"note":null}'


def test_rich_types_come_back_as_what_they_were():
    job_type = JobType(rich)

    assert job_type.decode(job_type.bind((), RICH)) == RICH


def test_defaults_are_filled_in_where_the_job_runs():
    assert JobType(charge).decode(b'{"order_id":"o"}') == {
        "order_id": "o",
        "cents": 5,
        "note": None,
    }


def test_a_default_may_be_any_object():
    default = Order("none", [Item("x")])

    def handler(order: Order = default): ...

    assert JobType(handler).decode(b"{}")["order"] == default


def test_models_are_accepted_by_their_shape():
    def handler(model: Model, maybe: Model | None = None) -> Model: ...

    job_type = JobType(handler)
    written = job_type.bind((Model(5),), {})

    assert written == b'{"model":{"number":5}}'
    assert job_type.decode(written)["model"].number == 5
    assert job_type.decode_result(job_type.encode_result(Model(7))[0]).number == 7
    with pytest.raises(InvalidArguments, match="number must be an integer"):
        job_type.bind(({"number": "x"},), {})


@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        ((), {}, "the argument `order_id` is missing"),
        ((5,), {}, r"arguments.order_id: `5`: expected `str`, got `int`"),
        (("o", "x"), {}, r"arguments.cents: `x`: expected `int`, got `str`"),
        (("o", 1.5), {}, r"arguments.cents: `1.5`"),
        (("o", True), {}, r"arguments.cents: `True`"),
        (("o", 1, "note"), {}, "3 arguments by position"),
        (("o",), {"order_id": "o"}, "given twice"),
        (("o",), {"censt": 5}, "takes no argument `censt`"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_signature(args, kwargs, says):
    with pytest.raises(InvalidArguments, match=says) as caught:
        JobType(charge).bind(args, kwargs)

    assert "charge(order_id: str, cents: int = 5" in caught.value.hint


def test_a_signature_is_shown_as_it_is_written():
    def greet(name: str, mark: str = "", often: int = 1) -> str: ...

    assert (
        JobType(greet).signature.text == "greet(name: str, mark: str = '', often: int = 1) -> str"
    )


def test_the_path_leads_into_nested_arguments():
    bad = {**RICH, "order": {"id": "o", "items": [{"name": "a"}, {"name": 5}]}}

    with pytest.raises(InvalidArguments, match=r"arguments\.order\.items\[1\]\.name: `5`"):
        JobType(rich).bind((), bad)


# ── running ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"nonsense",
        b"[]",
        b"5",
        b"null",
        b'{"order_id":',
        b'{"order_id":5,',
        b'{"order_id":"\xff"}',
        b'{"order_id":"\\ud800"}',
        b"[" * 5000,
        b'{"order_id":' + b"[" * 5000,
    ],
)
def test_bytes_that_nobody_can_read_are_not_json(written):
    with pytest.raises(NotJson):
        JobType(charge).decode(written)


@pytest.mark.parametrize(
    "written",
    [
        b"{}",
        b'{"order_id":5}',
        b'{"order_id":"o","new":1}',
        b'{"order_id":"o","cents":"5"}',
    ],
)
def test_arguments_of_another_version_do_not_fit(written):
    with pytest.raises(DoesNotFit, match="do not fit `charge`"):
        JobType(charge).decode(written)


def test_a_result_comes_back_as_its_type():
    job_type = JobType(rich)

    written, note = job_type.encode_result(RICH["order"])

    assert note is None
    assert job_type.decode_result(written) == RICH["order"]


def test_no_result_is_none():
    job_type = JobType(charge)

    assert job_type.encode_result(None) == (None, None)
    assert job_type.decode_result(None) is None


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    def model_dump(self, **_: object) -> object:
        raise RuntimeError("no")


def endless() -> list[object]:
    endless: list[object] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (float("nan"), "finite"),
        ({"a": [float("inf")]}, r"result\.a\[0\]"),
        (object(), "not JSON data"),
        ({1: 2}, "key"),
        ("\ud800", "surrogate"),
        ("a\0", "NUL"),
        ("x" * 70_000, "70,002 bytes"),
        (endless(), "nested deeper"),
        (Hostile(), "Hostile"),
    ],
)
def test_a_result_that_cannot_be_kept_leaves_a_note(value, says):
    written, note = JobType(charge).encode_result(value)

    assert written is None
    assert says.replace("\\", "") in note


@pytest.mark.parametrize("length", [400, 5_000_000])
def test_a_note_is_short_and_still_says_where_and_what(length):
    _, note = JobType(charge).encode_result({"k" * length: float("nan")})

    assert len(note) <= 500
    assert note.startswith("the result was not kept: result.k")
    assert note.endswith("is not a finite number")


def test_a_result_that_is_not_what_the_handler_promised_is_refused_when_read():
    with pytest.raises(InvalidPayload, match="does not fit the return type of `charge`"):
        JobType(charge).decode_result(b"5")


def test_a_return_type_that_json_cannot_carry_is_read_as_plain_data():
    def handler() -> Opaque: ...

    assert JobType(handler).decode_result(b'{"a":1}') == {"a": 1}
