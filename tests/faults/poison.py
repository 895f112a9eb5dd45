"""Job types that do harm, each in two ways: beside others, and in a process of its own.

Beside them there are good ones, to whom nothing may happen. What becomes of each is fixed, down to
the last count: see `KINDS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamplighter import App, Context, Limits, Retry
from tests.faults.checker import GOOD, Budget
from tests.faults.recording import recorded
from tests.faults.rules import FOLDER

TIMEOUT = 1.0
ATTEMPTS = 2
JOB = "LAMPLIGHTER_FAULTS_JOB"
"""Variable of processes that must be gone when the job that started them has ended."""
FOREVER = 600
GATE = "gate"
"""File that lets all `gated` jobs end."""

app = App()

# ── good ones ────────────────────────────────────────────────────────────────────────────────


@app.job(name="calm")
async def calm(ctx: Context, ms: int = 10) -> dict[str, Any]:
    """Sleep on the loop."""
    with recorded(ctx) as author:
        await asyncio.sleep(ms / 1000)
        return author


@app.job(name="quiet")
def quiet(ctx: Context, ms: int = 10) -> dict[str, Any]:
    """Sleep in a thread, or in a process if it has to."""
    with recorded(ctx) as author:
        time.sleep(ms / 1000)
        return author


@app.job(name="lone", isolation="process")
def lone(ctx: Context, ms: int = 10) -> dict[str, Any]:
    """Sleep in a process of its own."""
    with recorded(ctx) as author:
        time.sleep(ms / 1000)
        return author


@app.job(name="gated")
def gated(ctx: Context) -> dict[str, Any]:
    """Wait until the gate is opened, in a thread or alone."""
    with recorded(ctx) as author:
        gate = Path(os.environ[FOLDER]) / GATE
        while not gate.exists():
            time.sleep(0.05)
        return author


@app.job(name="mixed")
async def mixed(ctx: Context, ms: int = 1000, poison: str = "") -> dict[str, Any]:
    """Sleep, unless the argument says what to die of; one cannot tell from the outside."""
    with recorded(ctx) as author:
        if poison:
            await asyncio.sleep(ms / 2000)
            KILLERS[poison]()
        await asyncio.sleep(ms / 1000)
        return author


# ── those that end their process ─────────────────────────────────────────────────────────────


def _segfault() -> None:
    ctypes.string_at(0)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _parting() -> None:
    """Leave processes behind, and die."""
    _daemonise("parting")
    os._exit(7)


KILLERS: Mapping[str, Callable[[], None]] = {
    "segfault": _segfault,
    "abort": os.abort,
    "exit": lambda: os._exit(1),
    "good exit": lambda: os._exit(0),
    "kill": _kill,
    "parting": _parting,
}


def _malloc() -> None:
    """Use memory as a library does that does not look whether it got any."""
    allocate = ctypes.CDLL(None).malloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    ctypes.memset(allocate(1 << 40) or 0, 1, 1 << 40)


def _close() -> None:
    """Close every file, the worker's own included, and go on as if nothing had happened."""
    os.closerange(3, 1024)


def _burn() -> None:
    while True:
        sum(range(10_000))


# ── those that fail, or do not end ───────────────────────────────────────────────────────────


def _memory() -> None:
    kept = [bytearray(1 << 20)]
    while True:
        kept.append(bytearray(len(kept[-1]) * 2))


def _map() -> None:
    mmap.mmap(-1, 1 << 36)


def _recursion() -> None:
    _recursion()


def _leave() -> None:
    sys.exit("a handler ends the program")


def _hang() -> None:
    while True:
        # Whatever is raised here to stop it.
        with contextlib.suppress(BaseException):
            time.sleep(FOREVER)


def _stubborn() -> None:
    """Wait for a program that does not want to end."""
    subprocess.run(["sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done"], check=False)


def _daemonise(job_id: str) -> None:
    """Start processes that leave their group, their session and their parents."""
    subprocess.run(
        ["sh", "-c", f"setsid sleep {FOREVER} & (setsid sh -c 'setsid sleep {FOREVER} &' &) &"],
        env={**os.environ, JOB: job_id},
        check=True,
    )


def _fork() -> None:
    """Become two, both of which go back to whoever called."""
    os.fork()


async def _swallow() -> None:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(FOREVER)


async def _stall() -> None:
    _hang()


async def _leave_loop() -> None:
    sys.exit("a handler ends the program")


async def _slow() -> None:
    await asyncio.sleep(FOREVER)


# ── what each comes to ───────────────────────────────────────────────────────────────────────

CRASHES = Budget("dead", crashes=3, reason="poison: ", errors=("Abandoned", "only this job died"))


def failed(*errors: str) -> Budget:
    reason = f"failed {ATTEMPTS} of {ATTEMPTS} attempts"
    return Budget("dead", attempt=ATTEMPTS, reason=reason, errors=errors)


KILLED = failed("TimedOut", f"timeout of {TIMEOUT:g} s", "killed")
STOPPED = failed("TimedOut", f"timeout of {TIMEOUT:g} s")
BOTH = ("shared", "process")


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to do harm."""

    act: Callable[..., Any]
    budgets: Mapping[str, Budget]
    """What it comes to, by isolation."""
    limits: Limits | None = None


def _both(act: Callable[..., Any], budget: Budget) -> Kind:
    return Kind(act, dict.fromkeys(BOTH, budget))


def _alone(act: Callable[..., Any], budget: Budget, limits: Limits | None = None) -> Kind:
    return Kind(act, {"process": budget}, limits)


SMALL = Limits(memory_mb=512)
KINDS: Mapping[str, Kind] = {
    **{name: _both(act, CRASHES) for name, act in KILLERS.items()},
    "close": _alone(_close, CRASHES),
    "malloc": _alone(_malloc, CRASHES, SMALL),
    "burn": _alone(_burn, CRASHES, Limits(cpu_seconds=1)),
    "memory": _alone(_memory, failed("MemoryError"), SMALL),
    "map": _alone(_map, failed("OSError", "Cannot allocate memory"), SMALL),
    "recursion": _both(_recursion, failed("RecursionError")),
    "leave": _both(_leave, failed("SystemExit")),
    "leave loop": _both(_leave_loop, failed("SystemExit")),
    "hang": _both(_hang, KILLED),
    "swallow": _both(_swallow, KILLED),
    "stall": _both(_stall, KILLED),
    "slow": _both(_slow, STOPPED),
    # A thread is killed with its process; alone, it can be told.
    "stubborn": _both(_stubborn, STOPPED),
    "daemon": _alone(_daemonise, GOOD),
    "fork": _alone(_fork, GOOD),
}


def _handler(kind: Kind) -> Callable[..., Any]:
    act: Any = kind.act
    if asyncio.iscoroutinefunction(act):

        async def harm(ctx: Context) -> dict[str, Any]:
            with recorded(ctx) as author:
                await act()
                return author

        return harm

    def harm_in_thread(ctx: Context) -> dict[str, Any]:
        with recorded(ctx) as author:
            act(*((ctx.job_id,) if act is _daemonise else ()))
            return author

    return harm_in_thread


for _name, _kind in KINDS.items():
    for _isolation in _kind.budgets:
        app.job(
            name=f"{_name} {_isolation}",
            # What ends by another limit must not end by this one.
            timeout=TIMEOUT if _kind.limits is None else 30.0,
            retry=Retry(fixed=0.1, max_attempts=ATTEMPTS),
            isolation=_isolation,
            limits=_kind.limits,
        )(_handler(_kind))
