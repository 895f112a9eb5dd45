"""Ways to run a program that refuses to be run by root. None adds a user or opens a folder."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Launcher:
    """Runs programs as somebody: ``uid`` and ``gid`` of their own, behind ``prefix``."""

    name: str
    prefix: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None

    def own(self, folder: Path) -> None:
        """Make a new folder belong to those who run the programs."""
        if os.geteuid() == 0:
            os.chown(folder, self.uid or 0, self.gid or 0)

    def start(self, command: Sequence[object], home: Path, **options: Any) -> subprocess.Popen[str]:
        """Start a program in ``home``, in a session of its own: Ctrl-C is for the tests."""
        if self.uid is not None:
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return subprocess.Popen(
            [*self.prefix, *map(str, command)],
            cwd=home,
            env=_environment(home),
            text=True,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **options,
        )

    def run(self, command: Sequence[object], home: Path, seconds: float = 60.0) -> str | None:
        """Run a program to its end. Gives what went wrong, or None."""
        try:
            process = self.start(command, home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except OSError as error:
            return str(error)
        with process:
            try:
                said, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                return f"no end after {seconds:g} s"
        return None if process.returncode == 0 else said.strip()


def launchers() -> list[Launcher]:
    """Give the ways to run a server here, the most ordinary first."""
    if os.geteuid() != 0:
        return [Launcher("as the current user")]
    return [_as_nobody(), _in_namespace()]


def _as_nobody() -> Launcher:
    """Root gives up its rights; the programs and the data must be where nobody may go."""
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return Launcher("as nobody", uid=_NOBODY, gid=_NOBODY)
    return Launcher("as nobody", uid=entry.pw_uid, gid=entry.pw_gid)


def _in_namespace() -> Launcher:
    """Root looks like user 1000 to the program, which may go wherever root owns the folders."""
    unshare = shutil.which("unshare") or "unshare"
    return Launcher(
        "in a user namespace (unshare)",
        prefix=(unshare, "-U", "--map-user=1000", "--map-group=1000"),
    )


def _environment(home: Path) -> dict[str, str]:
    """Leave out what would point the programs at another server, or at files of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, "HOME": str(home)}
