from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lamplighter.model.stride import (
    MAX_WEIGHT,
    STARVED_EVERY,
    STEP,
    QueueStride,
    awake_at,
    hand_out,
    step,
    takes_the_longest_waiting,
)

times = st.integers(0, 2**50)
weights = st.integers(1, MAX_WEIGHT)


@given(st.integers(1, 1_000), weights)
def test_a_step_is_shorter_for_more_weight_and_longer_for_more_cost(cost, weight):
    assert step(cost, weight) >= 1
    assert step(cost + 1, weight) > step(cost, weight) - 1
    assert step(cost, weight) >= step(cost, min(MAX_WEIGHT, weight + 1))


def test_a_step_is_a_million_for_one():
    assert (step(1, 1), step(1, 4), step(3, 1)) == (STEP, STEP // 4, 3 * STEP)


@given(times, times)
def test_a_turn_never_wakes_behind_the_clock(time, clock):
    assert awake_at(time, clock) == max(time, clock)


@given(times, times, st.integers(1, 10**9))
def test_a_hand_out_moves_time_on_and_never_turns_the_clock_back(time, clock, moved):
    later, now = hand_out(time, clock, moved)

    assert now >= clock
    assert later == max(time, clock) + moved
    assert later > now


def test_every_tenth_hand_out_goes_to_who_waited_longest():
    chosen = [n for n in range(1, 41) if takes_the_longest_waiting(n)]

    assert chosen == [10, 20, 30, 40]
    assert STARVED_EVERY == 10


@given(st.lists(weights, min_size=2, max_size=5))
def test_backlogged_tenants_get_their_shares(given_weights):
    tenants = {f"t{n}": weight for n, weight in enumerate(given_weights)}
    times, clock, served = dict.fromkeys(tenants, 0), 0, Counter()
    total = 2_000
    for _ in range(total):
        name = min(tenants, key=lambda tenant: (times[tenant], tenant))
        times[name], clock = hand_out(times[name], clock, step(1, tenants[name]))
        served[name] += 1

    for name, weight in tenants.items():
        share = total * weight / sum(tenants.values())
        assert abs(served[name] - share) <= len(tenants) + 0.01 * share


def test_strict_queues_are_always_asked_in_order_for_all_there_is_room_for():
    queues = QueueStride(("b", "a"))
    queues.took("b", 100)

    assert queues.ask(5) == [("b", 5), ("a", 5)]


def test_weighted_queues_share_the_room():
    queues = QueueStride(("a", "b"), (3, 1))

    assert dict(queues.ask(8)) == {"a": 6, "b": 2}


@given(st.integers(0, 200), st.lists(weights, min_size=1, max_size=5))
def test_quotas_use_up_the_room_exactly(room, given_weights):
    names = tuple(f"q{n}" for n in range(len(given_weights)))

    asked = QueueStride(names, tuple(given_weights)).ask(room)

    assert sorted(name for name, _ in asked) == sorted(names)
    assert sum(quota for _, quota in asked) == room
    assert all(quota >= 0 for _, quota in asked)


def test_weighted_queues_get_their_shares_one_at_a_time():
    queues, served = QueueStride(("a", "b"), (3, 1)), Counter()
    for _ in range(400):
        first = next(name for name, quota in queues.ask(1) if quota)
        queues.took(first, 1)
        served[first] += 1

    assert served == {"a": 300, "b": 100}


def test_the_queue_that_is_furthest_behind_is_asked_first():
    queues = QueueStride(("a", "b"), (1, 1))
    queues.took("a", 1)

    assert [name for name, _ in queues.ask(1)] == ["b", "a"]


def test_a_queue_that_was_empty_has_not_saved_up():
    queues, served = QueueStride(("empty", "full"), (1, 1)), Counter()
    for _ in range(1_000):
        queues.took("full", 1)
    for _ in range(100):
        first = next(name for name, quota in queues.ask(1) if quota)
        queues.took(first, 1)
        served[first] += 1

    assert served["empty"] <= 55


def test_taking_nothing_changes_nothing():
    queues = QueueStride(("a", "b"), (1, 1))
    before = queues.ask(4)
    queues.took("a", 0)

    assert queues.ask(4) == before
