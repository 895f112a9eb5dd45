"""The job types of the fault runs. Each run says when it starts and ends, and leaves one effect.

A result or an error names the fence it was made under, so that the audit can tell whether the
store accepted it under the same.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import time
from typing import Any

from lamplighter import App, Context, Retry
from tests.faults.recording import recorded

_SOON = Retry(fixed=0.2, max_attempts=5)

app = App()


def _fail(author: dict[str, Any]) -> None:
    raise RuntimeError(f"made under {json.dumps(author)}")


@app.job(name="doze", retry=_SOON)
async def doze(ctx: Context, ms: int) -> dict[str, Any]:
    """Sleep on the loop."""
    with recorded(ctx) as author:
        await asyncio.sleep(ms / 1000)
        return author


@app.job(name="nap", retry=_SOON)
def nap(ctx: Context, ms: int) -> dict[str, Any]:
    """Sleep in a thread, and stop when asked."""
    with recorded(ctx) as author:
        end = time.monotonic() + ms / 1000
        while (left := end - time.monotonic()) > 0:
            ctx.raise_if_cancelled()
            time.sleep(min(left, 0.05))
        return author


@app.job(name="deaf", retry=_SOON)
def deaf(ctx: Context, ms: int) -> dict[str, Any]:
    """Sleep in a thread, and do not listen: only the end of the process stops it."""
    with recorded(ctx) as author:
        time.sleep(ms / 1000)
        return author


@app.job(name="sole", delivery="at_most_once")
async def sole(ctx: Context, ms: int) -> dict[str, Any]:
    """Sleep on the loop, but never a second time."""
    with recorded(ctx) as author:
        await asyncio.sleep(ms / 1000)
        return author


@app.job(name="sole kill", delivery="at_most_once")
async def sole_kill(ctx: Context) -> None:
    """End the process with the first instruction, and never a second time."""
    with recorded(ctx):
        os.kill(os.getpid(), signal.SIGKILL)


@app.job(name="flaky", retry=_SOON)
async def flaky(ctx: Context, failures: int) -> dict[str, Any]:
    """Fail a few times, then succeed."""
    with recorded(ctx) as author:
        await asyncio.sleep(0.01)
        if ctx.attempt <= failures:
            _fail(author)
        return author


@app.job(name="doomed", retry=Retry(delays=[0.1, 0.2]))
async def doomed(ctx: Context) -> None:
    """Fail always."""
    with recorded(ctx) as author:
        _fail(author)


@app.job(name="spin", retry=_SOON)
def spin(ctx: Context, ms: int) -> dict[str, Any]:
    """Keep a core busy, in a thread."""
    with recorded(ctx) as author:
        end = time.monotonic() + ms / 1000
        while time.monotonic() < end:
            sum(range(1000))
        return author


@app.job(name="block", retry=_SOON)
async def block(ctx: Context, ms: int) -> dict[str, Any]:
    """Block the loop: what an async handler must not do, and does."""
    with recorded(ctx) as author:
        time.sleep(ms / 1000)  # noqa: ASYNC251 - that is the point
        return author


@app.job(name="grip", retry=_SOON)
def grip(ctx: Context, ms: int) -> dict[str, Any]:
    """Hold the interpreter's lock in one long call: no other thread of the process runs."""
    with recorded(ctx) as author:
        library = ctypes.PyDLL(None)
        library.usleep(ctypes.c_uint(ms * 1000))
        return author


@app.job(name="fair", queue="fair", retry=_SOON)
async def fair(ctx: Context) -> dict[str, Any]:
    """Next to nothing; there are many of these."""
    with recorded(ctx) as author:
        await asyncio.sleep(0.05)
        return author


@app.job(name="doze alone", retry=_SOON, isolation="process")
async def doze_alone(ctx: Context, ms: int) -> dict[str, Any]:
    """Sleep on the loop of a process of its own."""
    with recorded(ctx) as author:
        await asyncio.sleep(ms / 1000)
        return author


@app.job(name="nap alone", retry=_SOON, isolation="process")
def nap_alone(ctx: Context, ms: int) -> dict[str, Any]:
    """Sleep in a process of its own; whoever wants to stop it has to interrupt it."""
    with recorded(ctx) as author:
        time.sleep(ms / 1000)
        return author


@app.job(name="block alone", retry=_SOON, isolation="process")
async def block_alone(ctx: Context, ms: int) -> dict[str, Any]:
    """Block the loop of a process of its own."""
    with recorded(ctx) as author:
        time.sleep(ms / 1000)  # noqa: ASYNC251 - that is the point
        return author
