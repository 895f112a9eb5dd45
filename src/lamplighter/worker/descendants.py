"""Ends what the handlers of a dead process have started, wherever it has gone.

A process can leave its group and its session, but not the environment it was started with. So
each of our processes has a variable of its own, which all that it starts inherit.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Collection
from pathlib import Path

from lamplighter import runtime

SLOT = "LAMPLIGHTER_SLOT"
"""Variable that names one slot process, and all that it starts."""
CHILD = "LAMPLIGHTER_CHILD"
"""Variable that names one child, by its worker id, and all that it starts."""
ROUNDS = 100
"""Looks at all processes, at most; so many are only needed for what forks faster than we kill."""
MOMENT = 0.005
"""Seconds between two looks at those who are dying."""
EXEC_TIME = 5.0
"""Seconds for which processes in exec are waited for: on a busy machine that may take long."""

_PROCESSES = Path("/proc")
_PF_KTHREAD = 0x00200000


def kill_marked(mark: str) -> int:
    """Kill every process whose environment has the variable ``mark``, written as ``NAME=value``.

    Looks again until none is left, because one may start another while we look. Gives how many
    were killed. Only Linux shows the environments of processes; elsewhere it does nothing.
    """
    if sys.platform != "linux":
        return 0
    wanted, killed, gone = f"\0{mark}\0".encode(), set[int](), False
    rounds, until = 0, runtime.monotonic() + EXEC_TIME
    while rounds < ROUNDS:
        found, unsure = _look_for(wanted)
        if not found and not unsure and gone:
            break
        gone = not found
        if found <= killed:
            # Killed already, in exec, or none is left as far as we see: look again in a moment.
            threading.Event().wait(MOMENT)
        if found or not unsure or runtime.monotonic() > until:
            rounds += 1
        killed |= {pid for pid in found if _kill(pid, wanted)}
    return len(killed)


def _look_for(wanted: bytes) -> tuple[set[int], bool]:
    """Return who has a variable, and whether there is somebody of whom that cannot be told yet."""
    found, unsure = set[int](), False
    for pid in _pids():
        environment = _environment(pid)
        if environment is not None and wanted in environment:
            found.add(pid)
        elif environment == b"\0" and _is_in_exec(pid):
            unsure = True
    return found, unsure


def _is_in_exec(pid: int) -> bool:
    """Whether it is just being replaced by another program, which has no environment yet.

    On a busy machine that can take long. Kernel threads and the dead have none either; they are
    left out. A program that was started without any variable has an address for them.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as below
            fields = file.read().rpartition(b") ")[2].split()
    except OSError:
        return False
    state, flags, env_start = fields[0], int(fields[6]), int(fields[47])
    return state not in b"ZX" and not flags & _PF_KTHREAD and env_start == 0


def kill_abandoned(boot: str) -> int:
    """Kill what children of supervisors have started that were killed themselves.

    Their jobs are given back when the leases end; nothing of them may still be at work then.
    ``boot`` names this boot of the machine, as worker ids do.
    """
    if sys.platform != "linux":
        return 0
    killed = 0
    for pid in _pids():
        mark = _mark(pid)
        if mark is not None and _is_orphan(mark, boot) and _is_near(pid):
            killed += _kill(pid, f"\0{CHILD}={mark}\0".encode())
    return killed


def _mark(pid: int) -> str | None:
    variables = (_environment(pid) or b"").split(b"\0")
    start = f"{CHILD}=".encode()
    found = next((one for one in variables if one.startswith(start)), None)
    return None if found is None else found.removeprefix(start).decode(errors="replace")


def _is_near(pid: int) -> bool:
    """Whether its numbers of processes are ours: those in a container mean others."""
    try:
        return Path(f"/proc/{pid}/ns/pid").readlink() == Path("/proc/self/ns/pid").readlink()
    except OSError:
        return False


def _is_orphan(mark: str, boot: str) -> bool:
    """Whether the supervisor that a worker id names is dead: host, boot, pid and chance."""
    parts = mark.partition("/")[0].rsplit("-", 3)
    if len(parts) != 4 or parts[1] != boot or not parts[2].isdigit():
        return False
    try:
        os.kill(int(parts[2]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def kill_group(pid: int) -> None:
    """Kill a process group by the number of its leader, if it is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parents end, where the system offers it."""
    if sys.platform == "linux":
        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1)


def children() -> set[int]:
    """Return the processes that this one is the parent of, as far as the system tells."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for task in os.listdir("/proc/self/task"):  # noqa: PTH208 - twice as fast
            with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/children") as file:  # noqa: PTH123
                found.update(map(int, file.read().split()))
    return found


def kill_children(spared: Collection[int]) -> None:
    """Kill all children but these, and all that they have started.

    Who has adopted orphans sees its grandchildren as children once these are dead.
    """
    if not hasattr(os, "waitid"):
        return
    for _ in range(ROUNDS):
        try:
            # The one system call that it costs when there is nothing to do.
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        found = children().difference(spared)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in found:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _pids() -> list[int]:
    own = os.getpid()
    return [int(name) for name in os.listdir(_PROCESSES) if name.isdigit() and int(name) != own]  # noqa: PTH208 - twice as fast


def _environment(pid: int) -> bytes | None:
    """Read its variables, each between zeros; those of other users are closed to us."""
    try:
        descriptor = os.open(f"/proc/{pid}/environ", os.O_RDONLY)
    except OSError:
        return None
    environment = b"\0"
    try:
        while piece := os.read(descriptor, 1 << 17):
            environment += piece
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return environment


def _kill(pid: int, wanted: bytes) -> bool:
    """Kill it if it is still the one we saw: a number may have gone to somebody else since."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if wanted not in (_environment(pid) or b""):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
