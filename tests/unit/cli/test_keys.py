"""Single keys, typed into a real pseudo-terminal."""

import asyncio
import os
import pty
import sys
import termios

import pytest

from lamplighter.cli.keys import pressed


@pytest.fixture
def terminal(monkeypatch):
    keyboard, screen = pty.openpty()
    with os.fdopen(screen, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield keyboard
    os.close(keyboard)


async def until(condition) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the terminal is outside of the loop
            await asyncio.sleep(0.01)


async def test_keys_come_without_enter_and_the_terminal_is_as_before_afterwards(terminal):
    before = termios.tcgetattr(sys.stdin)
    typed: list[str] = []
    with pressed({key: lambda key=key: typed.append(key) for key in "kq"}) as has_keys:
        assert has_keys
        during = termios.tcgetattr(sys.stdin)
        os.write(terminal, b"kxK")
        await until(lambda: len(typed) == 2)
        os.write(terminal, b"q")
        await until(lambda: len(typed) == 3)
    assert typed == ["k", "k", "q"]
    assert not during[3] & termios.ICANON
    assert not during[3] & termios.ECHO
    assert during[3] & termios.ISIG
    assert termios.tcgetattr(sys.stdin) == before


async def test_the_terminal_is_as_before_after_an_error_too(terminal):
    before = termios.tcgetattr(sys.stdin)

    def fail() -> None:
        assert termios.tcgetattr(sys.stdin) != before
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), pressed({}):
        fail()
    assert termios.tcgetattr(sys.stdin) == before


async def test_arrows_and_function_keys_are_no_letters(terminal):
    typed: list[str] = []
    with pressed({key: lambda key=key: typed.append(key) for key in "[aodk"}):
        os.write(terminal, b"\x1b[A\x1bOD")
        await asyncio.sleep(0.05)
        os.write(terminal, b"k")
        await until(lambda: typed)
    assert typed == ["k"]


async def test_without_a_keyboard_there_are_no_keys(monkeypatch):
    with open(os.devnull) as stdin:  # noqa: PTH123, ASYNC230
        monkeypatch.setattr(sys, "stdin", stdin)
        with pressed({}) as has_keys:
            assert not has_keys
    monkeypatch.setattr(sys, "stdin", None)
    with pressed({}) as has_keys:
        assert not has_keys


async def test_a_terminal_that_goes_away_disturbs_nothing(terminal):
    keyboard, screen = pty.openpty()
    with os.fdopen(screen, "r") as stdin:
        sys.stdin = stdin
        with pressed({}) as has_keys:
            os.close(keyboard)
            await asyncio.sleep(0.05)
            assert has_keys
