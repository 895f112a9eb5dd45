"""The command `lamplighter` from its first moment on."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
"""The exit code of whoever ends at Ctrl-C."""


def start() -> NoReturn:
    """Run the command line; Ctrl-C while it is being loaded ends it without a word."""
    # Ignored it stays where somebody wants that, as shells do for what runs in the background.
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listens:
        signal.signal(signal.SIGINT, _leave)
    from lamplighter.cli.main import main

    try:
        if listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """End at once: nothing has begun that would have to be brought to an end."""
    del number, frame
    os._exit(INTERRUPTED)
