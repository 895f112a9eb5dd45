"""Ends a server whose tests were killed before they could stop it."""

import subprocess
from pathlib import Path

# Reads a pipe that only the tests hold open: a line says that all is well, its end without one
# that they are gone. The number in the file may be another process's by then, so look first.
_SCRIPT = """
read -r word && exit 0
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
runs() { [ -n "$pid" ] && grep -qaF "$1/data" "/proc/$pid/cmdline"; }
tries=0
while runs "$1" && [ "$tries" -lt 100 ]; do
    [ "$tries" -gt 0 ] || kill -QUIT "$pid"
    sleep 0.1
    tries=$((tries + 1))
done
runs "$1" || rm -rf "$1"
"""


class Guard:
    """Watches over the server in ``home`` from a process of its own, until it is told to stop."""

    def __init__(self, home: Path) -> None:
        self._process = subprocess.Popen(
            ["sh", "-c", _SCRIPT, "guard", str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """The tests have stopped the server themselves."""
        self._process.communicate(b"dismissed\n")
