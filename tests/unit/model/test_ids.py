import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.model.errors import InvalidName
from lamplighter.model.ids import (
    ID_LENGTH,
    RANDOM_BITS,
    SHARD_BITS,
    check_id,
    compose,
    milliseconds_of,
    of_occurrence,
    of_wish,
    shard_of,
    shard_of_schedule,
)

milliseconds = st.integers(0, 2**48 - 1)
shards = st.integers(0, 2**SHARD_BITS - 1)
chances = st.integers(0, 2**RANDOM_BITS - 1)


@given(milliseconds, shards, chances)
def test_an_id_gives_its_parts_back(time, shard, chance):
    text = compose(time, shard, chance)

    assert len(text) == ID_LENGTH
    assert (milliseconds_of(text), shard_of(text)) == (time, shard)
    assert check_id(text) == text


def test_a_wish_under_a_key_always_has_the_same_id_and_no_other_has_it():
    wished = of_wish("default", "nightly", 1_700_000_000_000, "k")

    assert check_id(wished) == wished == of_wish("default", "nightly", 1_700_000_000_000, "k")
    assert shard_of(wished) == shard_of_schedule("default", "nightly")
    assert wished not in {
        of_wish("default", "nightly", 1_700_000_000_000, "l"),
        of_wish("default", "nightly", 1_700_000_000_001, "k"),
        of_wish("default", "weekly", 1_700_000_000_000, "k"),
        of_occurrence("default", "nightly", 1_700_000_000_000),
    }


@given(st.tuples(milliseconds, shards, chances), st.tuples(milliseconds, shards, chances))
def test_ids_sort_as_their_parts_do(first, second):
    assert (compose(*first) < compose(*second)) == (first < second)


@given(milliseconds, shards, chances)
def test_an_id_is_read_in_any_case_and_with_space_around_it(time, shard, chance):
    text = compose(time, shard, chance)

    assert check_id(f"  {text.lower()}\n") == text


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "short",
        "0" * 25,
        "0" * 27,
        "I" * 26,
        "0" * 25 + "U",
        "8" + "0" * 25,
        "Z" * 26,
        "0" * 25 + "ß",
        "0" * 24 + "ﬁ",
        None,
        7,
        b"0" * 26,
    ],
)
def test_what_is_not_an_id_is_refused_with_a_hint(bad):
    with pytest.raises(InvalidName) as refused:
        check_id(bad)

    assert refused.value.hint
    assert refused.value.value == bad


@given(st.text(max_size=30))
def test_any_text_is_an_id_or_refused(text):
    try:
        known = check_id(text)
    except InvalidName:
        return
    assert check_id(known) == known
