"""Handlers that hurt the process they share with others."""

import asyncio
import atexit
import gc
import locale
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable

from lamplighter import App, Context, Retry
from tests.system.program import note, released

app = App()


@app.job
async def wait(ctx: Context) -> int:
    note(ctx, "start")
    while not released():  # noqa: ASYNC110 - the file is made by another process
        await asyncio.sleep(0.02)
    return os.getpid()


@app.job
async def pid() -> int:
    return os.getpid()


def stop_loop() -> None:
    asyncio.get_running_loop().stop()


def forget_loop() -> None:
    asyncio._set_running_loop(None)


def end_executor() -> None:
    asyncio.get_running_loop()._executor_shutdown_called = True


def exit_at_exit() -> None:
    atexit.register(os._exit, 7)
    stop_loop()


def close_stderr() -> None:
    sys.stderr.close()


def close_stdout() -> None:
    sys.stdout.close()


def lower_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))


HARMS: dict[str, Callable[[], object]] = {
    "stops the loop": stop_loop,
    "forgets the loop": forget_loop,
    "ends the executor": end_executor,
    "exits at exit": exit_at_exit,
    "switches rarely": lambda: sys.setswitchinterval(0.05),
    "recurses little": lambda: sys.setrecursionlimit(400),
    "sets a timeout": lambda: socket.setdefaulttimeout(20.0),
    "freezes": gc.freeze,
    "disables gc": gc.disable,
    "never collects": lambda: gc.set_threshold(0),
    "shuts logging down": logging.shutdown,
    "disables logging": lambda: logging.disable(logging.CRITICAL),
    "closes stderr": close_stderr,
    "closes stdout": close_stdout,
    "closes descriptor 2": lambda: os.close(2),
    "takes a signal": lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL),
    "moves": lambda: os.chdir("/"),
    "speaks another language": lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8"),
    "lowers a limit": lower_files,
}


@app.job(retry=Retry(max_attempts=1))
async def hurt(how: str) -> int:
    HARMS[how]()
    return os.getpid()


@app.job(retry=Retry(max_attempts=1))
def hurt_in_thread(how: str) -> int:
    HARMS[how]()
    return os.getpid()


@app.job(retry=Retry(max_attempts=1), isolation="process")
async def hurt_alone(how: str) -> int:
    HARMS[how]()
    return os.getpid()


@app.job(isolation="process")
async def pid_alone() -> int:
    return os.getpid()


@app.job
async def raise_limits() -> int:
    sys.setrecursionlimit(5000)
    gc.set_threshold(50_000)
    await asyncio.sleep(0.6)
    return os.getpid()


@app.job(retry=Retry(max_attempts=1))
async def cancel_all() -> None:
    for task in asyncio.all_tasks():
        task.cancel()


@app.job(retry=Retry(max_attempts=1))
def close_all() -> None:
    os.closerange(3, 1000)
