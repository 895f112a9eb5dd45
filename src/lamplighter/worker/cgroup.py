"""Control groups (version 2) for slot processes, where the system lets us make some.

A group limits a job together with all that it starts, and ends all of it at once. It needs a
place: our own group when it may have children, or the one above when it was delegated to us, as
systemd does with `Delegate=yes` and `DelegateSubgroup=`.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from lamplighter import runtime
from lamplighter.model.isolation import Limits

MEGABYTE = 1 << 20
CONTROLLERS = ("memory", "pids")
PREFIX = "lamplighter-slot-"

_DELEGATED = ("user.delegate", "trusted.delegate")
"""Attributes with which systemd marks a group that it has left to a service."""


class Group:
    """One control group, with one slot process and its descendants inside."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether the system has killed something in it because it reached its limit."""
        with contextlib.suppress(OSError, ValueError):
            for line in (self.path / "memory.events").read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count) > 0
        return False

    def add(self, pid: int) -> None:
        """Put a process in; raises OSError."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def kill(self) -> None:
        """Kill all that is in it. Systems before 5.14 cannot; others ways are left to them."""
        with contextlib.suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        """Remove it, if nothing is in it any more."""
        with contextlib.suppress(OSError):
            self.path.rmdir()


class Groups:
    """The place where groups can be made."""

    def __init__(self, base: Path) -> None:
        self._base = base
        for left in base.glob(f"{PREFIX}*"):
            # Of a worker that was killed. What is not empty cannot be removed.
            if not _is_alive(left.name):
                Group(left).remove()

    def make(self, limits: Limits) -> Group:
        """Make a group with these limits; raises OSError."""
        group = Group(self._base / f"{PREFIX}{os.getpid()}-{runtime.random_bits(32):08x}")
        group.path.mkdir()
        try:
            if limits.memory_mb is not None:
                (group.path / "memory.max").write_text(str(limits.memory_mb * MEGABYTE))
                # All of a job or nothing of it: half of its processes would only hang.
                (group.path / "memory.oom.group").write_text("1")
                with contextlib.suppress(OSError):
                    # Absent where nothing is swapped.
                    (group.path / "memory.swap.max").write_text("0")
            if limits.processes is not None:
                (group.path / "pids.max").write_text(str(limits.processes))
        except OSError:
            group.remove()
            raise
        return group


def find(proc: Path = Path("/proc/self")) -> Groups | None:
    """Find a place where we may make groups; None: there is none."""
    own = _own(proc)
    if own is None:
        return None
    if _is_usable(own):
        return Groups(own)
    if _is_delegated(own.parent) and _is_usable(own.parent):
        return Groups(own.parent)
    return None


def _own(proc: Path) -> Path | None:
    """Return the folder of the group this process is in."""
    try:
        mounts = (proc / "mountinfo").read_text().splitlines()
        groups = (proc / "cgroup").read_text().splitlines()
    except OSError:
        return None
    place = next((line[3:] for line in groups if line.startswith("0::")), None)
    for line in mounts:
        before, _, after = line.partition(" - ")
        if place is not None and after.startswith("cgroup2 "):
            root, point = before.split(" ")[3:5]
            if root in {"/", place} or place.startswith(f"{root}/"):
                inside = place if root == "/" else place[len(root) :]
                return Path(point) / inside.lstrip("/")
    return None


def _is_delegated(folder: Path) -> bool:
    for name in _DELEGATED:
        with contextlib.suppress(OSError, AttributeError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def _is_usable(folder: Path) -> bool:
    """Whether groups with both controllers can be made here; switches these on if need be."""
    try:
        there = set((folder / "cgroup.controllers").read_text().split())
        if not there.issuperset(CONTROLLERS) or not os.access(folder, os.W_OK | os.X_OK):
            return False
        if not os.access(folder / "cgroup.procs", os.W_OK):
            return False
        switch = folder / "cgroup.subtree_control"
        if not set(switch.read_text().split()).issuperset(CONTROLLERS):
            # Refused while processes are in the group itself, as they are without a subgroup.
            switch.write_text(" ".join(f"+{name}" for name in CONTROLLERS))
    except OSError:
        return False
    return True


def _is_alive(name: str) -> bool:
    pid = name.removeprefix(PREFIX).partition("-")[0]
    return pid.isdigit() and Path(f"/proc/{pid}").exists()
