"""Makes the clock of a server wrong and its disk slow, by a few lines of C loaded into it."""

import os
import shutil
import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("warp.c")
_NUMBERS = struct.Struct("=qq")


class CompilerMissing(Exception):
    """There is nothing to make the library with; says what to do."""


class Warp:
    """What a server started with its `environment` is told of the time and of its disk."""

    def __init__(self, folder: Path) -> None:
        self._library = _built(folder)
        self._file = folder / "warp"
        self._numbers = [0, 0]
        self._tell()

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the server."""
        return {"LD_PRELOAD": str(self._library), "LAMPLIGHTER_WARP": str(self._file)}

    @property
    def ahead_ms(self) -> int:
        """How far the server's clock is ahead of ours now; negative: behind."""
        return self._numbers[0]

    def set_clock(self, ahead_ms: int) -> None:
        """Let the server's time of day be ahead of ours, from now on."""
        self._numbers[0] = ahead_ms
        self._tell()

    def slow_disk(self, seconds: float) -> None:
        """Let each flush to the disk take so much longer, from now on."""
        self._numbers[1] = round(seconds * 1000)
        self._tell()

    def _tell(self) -> None:
        """Write in place: the server has the file in its memory."""
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(descriptor, _NUMBERS.pack(*self._numbers), 0)
        finally:
            os.close(descriptor)


def _built(folder: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise CompilerMissing(
            "no C compiler (cc, gcc, clang) on PATH, so that a server's clock cannot be set\n\n"
            "hint: install one (Debian: `apt install gcc libc6-dev`)"
        )
    library = folder / "warp.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return library
