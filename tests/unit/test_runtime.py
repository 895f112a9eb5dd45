"""The seam to the world: chance."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from lamplighter import runtime

BITS = 70


@pytest.fixture
def hasty_threads():
    """Let threads take turns as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_threads_are_never_given_the_same_bits():
    system, drawn = runtime.System(), []

    def draw():
        mine = [system.random_bits(BITS) for _ in range(20_000)]
        drawn.extend(mine)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == len(drawn) == 80_000


def test_a_forked_child_draws_other_bits_than_its_parent():
    system = runtime.System()
    system.random_bits(BITS)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, str(system.random_bits(BITS)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        os.close(write)
        assert int(pipe.read()) != system.random_bits(BITS)


@pytest.mark.parametrize("bits", [1, 10, 64, 70, 72, 73, 128, 256])
def test_each_of_the_bits_is_drawn(bits):
    system = runtime.System()
    seen_set = seen_clear = 0
    for _ in range(200):
        value = system.random_bits(bits)
        assert 0 <= value < 1 << bits
        seen_set |= value
        seen_clear |= ~value & ((1 << bits) - 1)
    assert seen_set == seen_clear == (1 << bits) - 1
