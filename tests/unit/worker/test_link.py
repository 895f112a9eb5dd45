"""The line between supervisor and child."""

import socket

from lamplighter.worker.link import (
    Begin,
    Claimed,
    Drain,
    Finished,
    Link,
    Started,
    Told,
    child_end,
    supervisor_end,
)
from tests.unit.worker.fakes import until


def make_line() -> tuple[Link, Link, list, list, list]:
    ours, theirs = socket.socketpair()
    at_supervisor, at_child, closed = [], [], []
    supervisor = supervisor_end(ours, at_supervisor.append, lambda: closed.append("supervisor"))
    child = child_end(theirs, at_child.append, lambda: closed.append("child"))
    return supervisor, child, at_supervisor, at_child, closed


async def test_messages_arrive_in_order_and_typed():
    supervisor, child, heard, at_child, _ = make_line()
    said = [
        Claimed("n", 0, 1.5, [("a", 1, "x"), ("b", 2, "y")]),
        Started([(0, 2.5), (1, 3.5)], 1.75),
        Finished([0, 1]),
        Told("job.started", {"job_id": "a", "number": 1}),
    ]

    for message in said:
        child.say(message)
    supervisor.say(Drain(3.0))
    supervisor.say(Begin("w", "m:a", {"url": "x"}, 5, ("q",), (1,), ["/p"], False, False))
    await until(lambda: len(heard) == 4 and len(at_child) == 2)

    assert heard == said
    assert at_child[0] == Drain(3.0)
    assert at_child[1].settings == {"url": "x"}
    supervisor.close()
    child.close()


async def test_what_is_flushed_is_there_before_the_next_instruction():
    supervisor, child, heard, _, _ = make_line()

    child.say(Started([(0, 1.0)], 0.5))
    assert child.flush()
    supervisor.read()

    assert heard == [Started([(0, 1.0)], 0.5)]
    supervisor.close()
    child.close()


async def test_a_line_nobody_reads_is_congested_until_somebody_does():
    supervisor, child, heard, _, _ = make_line()
    supervisor._loop.remove_reader(supervisor._sock)
    big = Told("x", {"text": "x" * 100_000})

    count = 0
    while not child.congested:
        child.say(big)
        child.flush()
        count += 1
    assert not child.flush()
    supervisor._loop.add_reader(supervisor._sock, supervisor.read)
    await child.drained()
    await until(lambda: len(heard) == count)

    assert not child.congested
    supervisor.close()
    child.close()


async def test_hanging_up_is_noticed_at_the_other_end():
    supervisor, child, heard, _, closed = make_line()

    child.say(Finished([1]))
    child.flush()
    child.close()
    await until(lambda: closed)

    assert heard == [Finished([1])]
    assert closed == ["supervisor"]
    supervisor.say(Drain(1.0))
    assert not supervisor.flush()


async def test_values_msgpack_does_not_know_are_told_as_text():
    supervisor, child, heard, _, _ = make_line()

    child.say(Told("service.error", {"error": ValueError("no")}))
    await until(lambda: heard)

    assert heard[0].fields == {"error": "no"}
    supervisor.close()
    child.close()
