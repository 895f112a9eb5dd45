"""Quick dataclasses: built another way, and in all else like any other."""

import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace

import pytest

from lamplighter.model.quick import quick


@quick
@dataclass(frozen=True, slots=True)
class Place:
    lane: int
    name: str = field(default="here", repr=False)


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    first: str
    second: str | None = None
    third: Place = Place(3)


def test_it_is_built_by_place_or_by_name_with_defaults():
    assert (Place(1).lane, Place(1).name) == (1, "here")
    assert Place(1, "there") == Place(name="there", lane=1)
    assert Named(first="a") == Named(first="a", second=None, third=Place(3))


def test_what_an_ordinary_one_refuses_is_refused():
    with pytest.raises(TypeError, match="lane"):
        Place()
    with pytest.raises(TypeError, match="fourth"):
        Named(first="a", fourth=4)
    with pytest.raises(TypeError, match="positional"):
        Named("a")


def test_nothing_is_changed_afterwards():
    place = Place(1)

    with pytest.raises(FrozenInstanceError):
        place.lane = 2
    with pytest.raises(FrozenInstanceError):
        del place.lane
    assert type(place) is Place
    assert not hasattr(place, "__dict__")


def test_it_is_a_dataclass_in_all_else():
    place = Place(1, "there")

    assert replace(place, lane=2) == Place(2, "there")
    assert asdict(place) == {"lane": 1, "name": "there"}
    assert [one.name for one in fields(Place)] == ["lane", "name"]
    assert repr(place) == "Place(lane=1)"
    assert hash(place) == hash(Place(1, "there"))
    assert pickle.loads(pickle.dumps(place)) == place
    match place:
        case Place(lane, name):
            assert (lane, name) == (1, "there")


def test_what_is_made_by_a_function_cannot_be_quick():
    @dataclass(frozen=True, slots=True)
    class Listed:
        items: list[int] = field(default_factory=list[int])

    with pytest.raises(TypeError, match="items is not simply given"):
        quick(Listed)
