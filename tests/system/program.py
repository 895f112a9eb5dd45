"""Handlers for the system tests. Each tells its runs by appending a line to the file RUN_LOG."""

import asyncio
import logging
import os
import signal
import sys
import time
from pathlib import Path

from lamplighter import App, Context, Reject, Retry, Snooze, TimedOut

app = App()


def note(ctx: Context, what: str) -> None:
    line = f"{ctx.job_id} {what} {os.getpid()} {ctx.lease}\n".encode()
    log = os.open(os.environ["RUN_LOG"], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(log, line)
    os.close(log)


def released() -> bool:
    return Path(os.environ["RUN_LOG"] + ".release").exists()


@app.job
async def add(ctx: Context, a: int, b: int) -> int:
    note(ctx, "run")
    return a + b


@app.job
def add_in_thread(ctx: Context, a: int, b: int) -> int:
    note(ctx, "run")
    return a + b


@app.job(retry=Retry(delays=[0.05, 0.05]))
async def fail(ctx: Context) -> None:
    note(ctx, "run")
    raise ValueError("not today")


@app.job(retry=Retry(max_attempts=1))
async def transfer(ctx: Context) -> None:
    note(ctx, ctx.effect_key("transfer"))
    raise ConnectionError("the bank has the money, its answer was lost")


@app.job(retry=Retry(max_attempts=1))
def leave(ctx: Context) -> None:
    raise SystemExit(3)


@app.job
async def reject(ctx: Context) -> None:
    note(ctx, "run")
    raise Reject("no such order")


@app.job
async def snooze(ctx: Context) -> str:
    note(ctx, "run")
    if ctx.lease == 1:
        raise Snooze(0.2)
    return "awake"


@app.job(retry=Retry(fixed=0.1, jitter=0))
async def come_back(ctx: Context, how: str) -> None:
    note(ctx, f"{time.monotonic():.3f}")
    if ctx.lease == 1 and how == "snooze":
        raise Snooze(0.1)
    if ctx.lease == 1:
        raise ValueError("not yet")


@app.job
async def wait(ctx: Context) -> str:
    note(ctx, "start")
    try:
        while not released():  # noqa: ASYNC110 - the file is made by another process
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        note(ctx, "stopped")
        raise
    note(ctx, "end")
    return "released"


@app.job(retry=Retry(max_attempts=1))
async def see_timeout(ctx: Context) -> None:
    try:
        await asyncio.sleep(60)
    except TimedOut:
        note(ctx, "TimedOut")
        raise


@app.job(retry=Retry(max_attempts=1), stalled_after=0.5)
async def crawl(ctx: Context, steps: int) -> None:
    for step in range(steps):
        ctx.progress(step, steps, f"step {step}")
        await asyncio.sleep(0.1)
    await asyncio.sleep(60)


@app.job
def deaf_for_ever(ctx: Context) -> None:
    time.sleep(600)


@app.job(hard_after=0.3, retry=Retry(max_attempts=1))
def deaf_impatient(ctx: Context) -> None:
    time.sleep(600)


@app.job(hard_after=0.3, retry=Retry(max_attempts=1), isolation="process")
def deaf_impatient_alone(ctx: Context) -> None:
    while True:
        try:
            time.sleep(600)
        except TimedOut:
            continue


@app.job(isolation="process")
def alone(ctx: Context, what: str) -> int:
    note(ctx, "start")
    print("about to", what)
    logging.getLogger("tests").warning("still about to %s", what)
    ctx.progress(1, 2, what)
    if what == "exit":
        os._exit(3)
    if what == "crash":
        os.abort()
    while what == "wait" and not released():
        time.sleep(0.02)
    return os.getpid()


@app.job
async def chat(ctx: Context, secret: str = "") -> None:
    print("one")
    logging.getLogger("tests").info("two %s", secret)
    ctx.progress(1, 2, "half")
    note(ctx, "start")
    while not released():  # noqa: ASYNC110 - the file is made by another process
        await asyncio.sleep(0.02)
    print("three")


@app.job(secrets=["card"], retry=Retry(max_attempts=1))
async def charge(card: str) -> None:
    print("charging", card)
    raise ValueError(f"{card} was refused")


@app.job
async def kill_its_process(ctx: Context) -> None:
    note(ctx, "start")
    # Neighbours have started by then.
    while len(Path(os.environ["RUN_LOG"]).read_text().splitlines()) < 4:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    os.kill(os.getpid(), signal.SIGSEGV)


@app.job
async def wait_stubbornly(ctx: Context) -> str:
    note(ctx, "start")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return "done anyway"
    return "slept"


@app.job
def wait_in_thread(ctx: Context) -> str:
    note(ctx, "start")
    while not released():
        ctx.raise_if_cancelled()
        time.sleep(0.02)
    note(ctx, "end")
    return "released"


@app.job
def deaf_thread(ctx: Context) -> str:
    note(ctx, "start")
    while not released():
        time.sleep(0.02)
    note(ctx, "end")
    return "released"


@app.job
async def block_the_loop(ctx: Context, seconds: float) -> str:
    note(ctx, "start")
    time.sleep(seconds)  # noqa: ASYNC251 - this is the mistake under test
    note(ctx, "end")
    return "slept"


@app.job
async def spin(ctx: Context, seconds: float) -> str:
    note(ctx, "start")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    note(ctx, "end")
    return "spun"


@app.job
async def submit_another(ctx: Context) -> str:
    handle = await add.submit(a=2, b=3)
    return handle.id


@app.job
async def close_stdout(ctx: Context) -> str:
    sys.stdout.close()
    os.close(1)
    return "closed"


@app.job
async def cancel_the_pulse(ctx: Context) -> str:
    note(ctx, "run")
    if ctx.lease == 1:
        for task in asyncio.all_tasks():
            if task.get_name() == "pulse":
                task.cancel()
        await asyncio.sleep(60)
    return "alive"
