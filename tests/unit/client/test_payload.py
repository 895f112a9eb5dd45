"""Values on their way into JSON: nothing may be changed silently."""

from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter import payload
from lamplighter.model.errors import InvalidPayload


@dataclass
class Box:
    content: object


class Struct(msgspec.Struct):
    content: object


class Number(float):
    pass


class Text(str):
    __slots__ = ()


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (float("nan"), "arguments.v"),
        (float("inf"), "arguments.v"),
        (-float("inf"), "arguments.v"),
        ([1, float("nan")], "arguments.v[1]"),
        ({"a": {"b": float("nan")}}, "arguments.v.a.b"),
        (OrderedDict(a=float("nan")), "arguments.v.a"),
        ({1: 2}, "arguments.v"),
        ({None: 2}, "arguments.v"),
        ({(1, 2): 2}, "arguments.v"),
        ([{"a": {5: 1}}], "arguments.v[0].a"),
        (object(), "arguments.v"),
        ([1, (2, {"x": object()})], "arguments.v[1][1].x"),
        (1j, "arguments.v"),
        (2**64, "arguments.v"),
        (-(2**63) - 1, "arguments.v"),
        ([10**5000], "arguments.v[0]"),
        ("\ud800", "arguments.v"),
        (["ok", "\udfff"], "arguments.v[1]"),
        ("a\0b", "arguments.v"),
        ({"a\0": 1}, "a key of arguments.v"),
        (Box(float("nan")), "arguments.v.content"),
        (Struct([float("nan")]), "arguments.v.content[0]"),
        (Decimal("NaN"), "arguments.v"),
        (Decimal("sNaN"), "arguments.v"),
        (Number("nan"), "arguments.v"),
        (nested(100), "arguments.v[0][0]"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(value, path):
    with pytest.raises(InvalidPayload) as caught:
        payload.encode({"v": value})

    assert caught.value.cause.startswith(path)
    assert caught.value.hint


@pytest.mark.parametrize(
    "value",
    ["", "null", "\\u0000", "é\U0001f600", 0, -(2**63), 2**64 - 1, 0.1, 1e308, None, True, [], {}],
)
def test_plain_values_come_back_unchanged(value):
    assert payload.plain(payload.encode({"v": value})) == {"v": value}


def test_subclasses_of_plain_values_are_written_as_what_they_are():
    assert payload.encode({"v": [Number(1.5), Text("a")]}) == b'{"v":[1.5,"a"]}'


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(json_values)
def test_every_json_value_survives_the_way_through_the_store(value):
    assert payload.plain(payload.encode({"v": value})) == {"v": value}


@given(st.dictionaries(st.text("abc"), st.integers(0, 9)))
def test_the_canonical_form_does_not_depend_on_the_order_of_keys(value):
    turned = dict(reversed(value.items()))

    assert payload.canonical(payload.encode_value(value, "v")) == payload.canonical(
        payload.encode_value(turned, "v")
    )
