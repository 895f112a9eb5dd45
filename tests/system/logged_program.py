"""Handlers that fail in several ways, and one that submits others."""

import asyncio
import os
from pathlib import Path

from lamplighter import App, Context, Reject, Retry

app = App()


@app.job(secrets=["card"], retry=Retry(delays=[0.05]))
async def charge(card: str, order: str) -> None:
    raise ValueError(f"{card} was refused for {order}")


@app.job(retry=Retry(max_attempts=1))
def fall(number: int) -> None:
    raise KeyError(number)


@app.job
async def refuse() -> None:
    raise Reject("no such\x1b[31m customer")


@app.job(retry=Retry(max_attempts=1), isolation="process")
def crash() -> None:
    os._exit(3)


@app.job
async def die() -> None:
    os._exit(3)


@app.job
async def nothing(number: int) -> None:
    pass


@app.job
async def submits(count: int) -> None:
    for number in range(count):
        await nothing.submit(number)


@app.job
async def wait(ctx: Context, path: str) -> None:
    Path(path).touch()
    await asyncio.sleep(1.0)


@app.job(retry=Retry(max_attempts=1), timeout=0.2)
async def slow() -> None:
    await asyncio.sleep(5.0)
