"""Shards: every job has one, and answers come back in the order of the question."""

from collections import Counter

import pytest

from lamplighter.engines.redis import shards
from lamplighter.model.ids import compose

IDS = [compose(1_700_000_000_000 + n, n % 1024, n) for n in range(2048)]


def test_the_bits_of_the_id_decide():
    assert [shards.shard_of(compose(1, n, 7), 4) for n in range(8)] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert {shards.shard_of(one, 1) for one in IDS} == {0}


def test_shards_get_equally_many():
    counted = Counter(shards.shard_of(one, 8) for one in IDS)

    assert set(counted.values()) == {len(IDS) // 8}


@pytest.mark.parametrize("odd", ["", "short", "\N{BUG}" * 26, "01M7GGD4EDil0S2HVKAAH9H50Y"])
def test_what_is_no_id_has_a_shard_too(odd: str):
    assert shards.shard_of(odd, 4) == 0


@pytest.mark.parametrize("count", [1, 2, 5])
def test_split_and_joined_keep_the_order(count: int):
    parts = shards.split(IDS, count, lambda one: one)

    assert all(shards.shard_of(one, count) == n for n, (_, mine) in parts.items() for one in mine)
    assert shards.joined([(places, mine) for places, mine in parts.values()]) == IDS


def test_one_shard_hands_the_items_through():
    assert shards.split(IDS, 1, lambda one: one)[0][1] is IDS


def test_the_same_text_is_always_in_the_same_shard():
    found = {text: shards.shard_of_text(text, 16) for text in ("a", "b", "é", "\ud800")}

    assert found == {text: shards.shard_of_text(text, 16) for text in found}
    assert {shards.shard_of_text(str(n), 4) for n in range(100)} == {0, 1, 2, 3}
    assert shards.shard_of_text("anything", 1) == 0
