"""A disk of a few megabytes for a server, made without any rights."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.servers.launchers import Launcher
from tests.servers.ports import ServerFailed
from tests.servers.postgres import Server

SHARED = Path("/dev/shm")
LARGEST = 512
"""Megabytes of a file system that somebody else made and that we would fill."""

# Root of a namespace of its own may mount what others do not see; but a server does not run as
# root, so it goes into another one, where it is somebody else.
_SCRIPT = """
mount -t tmpfs -o "size=$2,mode=0700" small "$1" || exit
shift 2
exec unshare --user --map-user=1000 --map-group=1000 "$@"
"""


@contextmanager
def small_disk(server: Server, megabytes: int) -> Iterator[Path]:
    """Give a folder on a file system of that size; the server is started anew to see it."""
    folder = server.home / "disk"
    folder.mkdir()
    server.launcher.own(folder)
    inside = _inside_namespace(server.launcher, folder, megabytes)
    problem = inside.run(["true"], server.home)
    if problem is None:
        server.stop()
        server.launcher = inside
        server.run()
        yield folder
        return
    size = shutil.disk_usage(SHARED).total >> 20 if SHARED.is_dir() else None
    if size is None or size > LARGEST:
        raise ServerFailed(
            f"no small disk can be made here. Tried a tmpfs in a namespace of its own: {problem}. "
            f"Looked for a small {SHARED}: {'none' if size is None else f'{size} MB'}\n\n"
            "hint: allow user namespaces (Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_"
            "userns=0; in a container: --security-opt seccomp=unconfined), run as root with "
            f"CAP_SYS_ADMIN, or in a container whose {SHARED} has at most {LARGEST} MB"
        )
    shared = Path(tempfile.mkdtemp(prefix="lamplighter-disk-", dir=SHARED))
    try:
        server.launcher.own(shared)
        # The server itself keeps memory there, which must not be what runs out.
        server.configure({"dynamic_shared_memory_type": "mmap"})
        server.restart()
        yield shared
    finally:
        server.stop()
        shutil.rmtree(shared)


def _inside_namespace(launcher: Launcher, folder: Path, megabytes: int) -> Launcher:
    unshare = shutil.which("unshare") or "unshare"
    return replace(
        launcher,
        name=f"{launcher.name}, with a disk of {megabytes} MB",
        prefix=(
            *(unshare, "--user", "--map-root-user", "--mount"),
            *("sh", "-c", _SCRIPT, "small-disk", str(folder), f"{megabytes}m"),
        ),
    )
