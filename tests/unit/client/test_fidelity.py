"""What a handler gets is what was given, or it is refused at submit; defaults are fresh."""

import json
import threading
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest

from lamplighter import App, payload, testing
from lamplighter.model.errors import InvalidHandler, InvalidPayload
from lamplighter.registry import JobType

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
SENTINEL, LOCK = object(), threading.Lock()
Point = namedtuple("Point", "x y")  # noqa: PYI024 - the untyped one is what is tested


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    YES = "yes"


class Rank(IntEnum):
    FIRST = 1


@dataclass
class Order:
    id: str
    tags: set[str] = field(default_factory=set)
    lines: dict[str, int] = field(default_factory=dict)


@dataclass
class Special(Order):
    more: int = 0


@dataclass(eq=False)
class Unequal:
    id: int


class Struct(msgspec.Struct):
    content: Any


def taking(annotation: object) -> JobType:
    def handler(v): ...

    handler.__annotations__ = {"v": annotation}
    return JobType(handler)


# ── values ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (bytes, b"\x00\xff"),
        (bytes, b""),
        (bytearray, bytearray(b"x")),
        (list[bytes], [b"a", b"b"]),
        (dict[str, bytes], {"k": b"a"}),
        (set[str], {"a", "b"}),
        (frozenset[int], frozenset({1, 2})),
        (tuple[int, str], (1, "a")),
        (Point, Point(1, 2)),
        (datetime, NOON),
        (datetime, NOON.astimezone(ZoneInfo("Europe/Berlin"))),
        (datetime, datetime(2030, 1, 1)),  # noqa: DTZ001 - stays without a zone
        (date, date(2030, 1, 1)),
        (timedelta, timedelta(days=400, microseconds=1)),
        (UUID, UUID(int=7)),
        (Decimal, Decimal("1.10")),
        (Colour, Colour.RED),
        (Word, Word.YES),
        (str, Word.YES),
        (int, Rank.FIRST),
        (Any, Rank.FIRST),
        (Order, Order("o-1", {"b", "a"}, {"z": 1, "a": 2})),
        (Struct, Struct({"z": [1]})),
        (Any, OrderedDict(b=1, a=2)),
        (float, 5e-324),
        (int, 2**64 - 1),
        (Any, [2**63, -(2**63)]),
        (float, 2**53),
        (float, 2**63),
    ],
)
def test_what_the_annotation_brings_back_may_be_given(annotation, value):
    job_type = taking(annotation)

    assert job_type.decode(job_type.bind((value,), {}))["v"] == value


@pytest.mark.parametrize(
    ("annotation", "value", "came"),
    [
        (list[int], (1, 2), [1, 2]),
        (Any, (1, [2, (3,)]), [1, [2, [3]]]),
        (datetime, "2030-01-01T12:00:00Z", NOON),
        (Order, {"id": "o-1", "tags": ["a"]}, Order("o-1", {"a"})),
        (float, 1, 1.0),
        (set[int], [1, 1], {1}),
    ],
)
def test_json_data_is_read_as_what_the_annotation_says(annotation, value, came):
    job_type = taking(annotation)

    assert job_type.decode(job_type.bind((value,), {}))["v"] == came


def test_objects_that_know_no_equality_and_the_sign_of_zero_are_kept():
    boxes, numbers = taking(Unequal), taking(float)

    assert boxes.decode(boxes.bind((Unequal(3),), {}))["v"].id == 3
    assert str(numbers.decode(numbers.bind((-0.0,), {}))["v"]) == "-0.0"


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (Any, b"x", "arguments.v"),
        (str, b"x", "arguments.v"),
        (Any, bytearray(b"x"), "arguments.v"),
        (Any, memoryview(b"x"), "arguments.v"),
        (dict[str, Any], {"deep": [1, b"x"]}, "arguments.v.deep[1]"),
        (Struct, Struct(b"x"), "arguments.v.content"),
        (Any, {1, 2}, "arguments.v"),
        (list[int], {1, 2}, "arguments.v"),
        (Any, Point(1, 2), "arguments.v"),
        (Any, NOON, "arguments.v"),
        (str, NOON, "arguments.v"),
        (Any, UUID(int=7), "arguments.v"),
        (Any, Decimal("1.1"), "arguments.v"),
        (Any, Colour.RED, "arguments.v"),
        (str, Colour.RED, "arguments.v"),
        (Any, Order("o-1"), "arguments.v"),
        (dict[str, Any], Order("o-1"), "arguments.v"),
        (Order, Special("o-1"), "arguments.v"),
        (Any, {"when": [NOON]}, "arguments.v.when[0]"),
        (float, 2**53 + 1, "arguments.v"),
        (list[float], [0, -(2**53) - 1], "arguments.v[1]"),
        (datetime, datetime(2030, 10, 27, 2, fold=1), "arguments.v"),  # noqa: DTZ001
    ],
)
def test_what_would_come_back_as_something_else_is_refused(annotation, value, path):
    with pytest.raises(InvalidPayload) as caught:
        taking(annotation).bind((value,), {})

    assert caught.value.cause.startswith(f"{path}: ")
    assert "annotate the parameter" in caught.value.hint


def test_a_secret_that_would_come_back_as_something_else_is_not_quoted():
    def handler(v): ...

    with pytest.raises(InvalidPayload) as caught:
        JobType(handler, secrets=("v",)).bind((b"hidden",), {})

    assert "hidden" not in str(caught.value)
    assert "aGlkZGVu" not in str(caught.value)


@pytest.mark.parametrize("value", [b"x", bytearray(b"x"), memoryview(b"x"), msgspec.Raw(b"{")])
async def test_bytes_are_refused_where_nobody_is_known_who_reads_them(tmp_path, value):
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    listing = app.command("list", ["ls"])
    given = {"v": {"w": value}}

    with pytest.raises(InvalidPayload, match=r"^arguments\.v\.w"):
        await app.submit("elsewhere", given)
    with pytest.raises(InvalidPayload, match=r"^metadata\.v\.w"):
        listing.options(metadata=given)
    with pytest.raises(InvalidPayload, match=r"^arguments\.v\.w"):
        listing.call(**given)
    await app.close()


@pytest.mark.parametrize("value", [NOON, {1}, Decimal(1), Colour.RED, Order("o")])
def test_metadata_is_plain_data(value):
    app = App("sqlite:///nowhere.db")

    @app.job
    async def work() -> None: ...

    with pytest.raises(InvalidPayload, match=r"metadata\.v"):
        work.options(metadata={"v": value})


def test_whole_numbers_of_any_size_are_plain_data():
    app = App("sqlite:///nowhere.db")

    @app.job
    async def work() -> None: ...

    work.options(metadata={"v": [2**64 - 1, 2**53 + 1, -(2**63)]})


@pytest.mark.parametrize(
    ("annotation", "value", "kept"),
    [
        (bytes, b"x", True),
        (Any, b"x", False),
        (dict[str, Any], {"v": b"x"}, False),
        (Any, NOON, True),
        (Any, Order("o-1"), True),
        (Any, [NOON, b"x"], False),
        (Any, Order("o-1", {b"x"}), False),
    ],
)
def test_a_result_with_bytes_that_would_become_text_is_not_kept(annotation, value, kept):
    def handler(): ...

    handler.__annotations__ = {"return": annotation}

    written, note = JobType(handler).encode_result(value)

    assert (written is not None) == kept
    assert kept or "bytes" in note


# ── order ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"z": 1, "a": {"y": [{"q": 1, "b": 2}], "c": 3}}, None),
        (OrderedDict([("z", 1), ("a", 2)]), '{"z":1,"a":2}'),
        ({"z": {"b", "a"}, "a": 1}, '{"z":["a","b"],"a":1}'),
        (
            Order("o", {"b", "a"}, {"z": 1, "a": 2}),
            '{"id":"o","tags":["a","b"],"lines":{"z":1,"a":2}}',
        ),
        (Struct({"z": {"b", "a"}, "a": 1}), '{"content":{"z":["a","b"],"a":1}}'),
    ],
)
def test_keys_keep_their_order_beside_sets_too(value, text):
    written = payload.encode({"v": value})

    wanted = text or json.dumps(value, separators=(",", ":"))
    assert written.decode() == f'{{"v":{wanted}}}'


def test_a_value_that_is_written_is_not_changed():
    order = Order("o", {"b", "a"}, {"z": 1})
    payload.encode({"v": order})

    assert order == Order("o", {"b", "a"}, {"z": 1})


async def test_a_handler_sees_keys_in_the_order_in_which_they_were_given(tmp_path):
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    seen: list[object] = []

    @app.job
    async def work(ctx, v: dict[str, Any]) -> None:
        seen.append((list(v), list(v["a"]), list(ctx.metadata)))

    async with testing.store(app) as t:
        await work.options(metadata={"z": 1, "a": 2}).submit({"z": 1, "a": {"y": 1, "b": 2}})
        await t.run_until_idle()
    assert seen == [(["z", "a"], ["y", "b"], ["z", "a"])]


# ── defaults ─────────────────────────────────────────────────────────────────────────────────


async def test_what_one_job_leaves_in_a_default_is_not_seen_by_the_next(tmp_path):
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    seen: list[tuple[int, int, int]] = []

    @app.job
    async def work(
        n: int,
        found: list[int] = [],  # noqa: B006 - that is what is tested
        deep: dict[str, list[int]] = {"v": []},  # noqa: B006
        order: Order = Order("o"),  # noqa: B008
    ) -> None:
        found.append(n)
        deep["v"].append(n)
        order.lines[str(n)] = n
        seen.append((len(found), len(deep["v"]), len(order.lines)))

    async with testing.store(app) as t:
        for n in range(3):
            await work.submit(n)
        await t.run_until_idle()

    assert seen == [(1, 1, 1)] * 3


def test_a_default_that_cannot_change_is_the_object_itself():
    def handler(a: Any = SENTINEL, b: Colour = Colour.RED, c: tuple[int, ...] = (1, 2)): ...

    found = JobType(handler).decode(b"{}")

    assert found["a"] is SENTINEL
    assert found["b"] is Colour.RED
    assert found["c"] == (1, 2)


def test_a_default_that_can_change_and_not_be_copied_is_refused():
    def handler(locks: list[Any] = [LOCK]): ...  # noqa: B006

    with pytest.raises(InvalidHandler, match="`locks`") as caught:
        JobType(handler)

    assert "locks=None" in caught.value.hint
