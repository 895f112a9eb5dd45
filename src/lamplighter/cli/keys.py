"""Single keys from the terminal, while a view has it."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress

Press = Callable[[], None]

_CHUNK = 64
_ESCAPE = "\x1b"


@contextmanager
def pressed(keys: Mapping[str, Press]) -> Generator[bool]:
    """Call ``keys[key]`` when a key is pressed, for the time of the ``with`` block.

    Gives whether there is a keyboard. Keys come without Enter and are not shown; Ctrl-C, Ctrl-Z
    and the like do what they always do. The terminal is as before when the block ends, however
    it ends.
    """
    keyboard = _keyboard()
    if keyboard is None:
        yield False
        return
    before = termios.tcgetattr(keyboard)
    loop = asyncio.get_running_loop()
    try:
        # `now` keeps what was typed ahead: it was meant for us.
        tty.setcbreak(keyboard, termios.TCSANOW)
        loop.add_reader(keyboard, _read, loop, keyboard, keys)
        yield True
    finally:
        loop.remove_reader(keyboard)
        with suppress(termios.error):
            # What nobody has read should not be taken for a command by the shell.
            termios.tcsetattr(keyboard, termios.TCSAFLUSH, before)


def _keyboard() -> int | None:
    """Return the descriptor keys can be read from; none in the background or without a terminal."""
    try:
        keyboard = sys.stdin.fileno()
        if not os.isatty(keyboard):
            return None
    except (AttributeError, OSError, ValueError):
        return None
    try:
        in_front = os.tcgetpgrp(keyboard) == os.getpgrp()
    except OSError:
        # Not the terminal that controls us, so nothing can stop us for using it.
        return keyboard
    return keyboard if in_front else None


def _read(loop: asyncio.AbstractEventLoop, keyboard: int, keys: Mapping[str, Press]) -> None:
    try:
        typed = os.read(keyboard, _CHUNK)
    except BlockingIOError:
        return
    except OSError:
        typed = b""
    if not typed:
        # The terminal is gone; that is told by a signal.
        loop.remove_reader(keyboard)
        return
    text = typed.decode(errors="replace")
    if _ESCAPE in text:
        # An arrow or a function key is a sequence of signs; none of them is meant as a letter.
        text = text[: text.index(_ESCAPE)]
    for key in text:
        press = keys.get(key.lower())
        if press is not None:
            press()
