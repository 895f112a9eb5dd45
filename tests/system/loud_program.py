"""Handlers that say more than a pipe holds."""

import asyncio
import logging
import sys

from lamplighter import App

app = App()
log = logging.getLogger("loud")
logging.basicConfig(level=logging.INFO)

WORDS = "nobody reads this " * 500


def shout() -> None:
    print(WORDS, flush=True)
    sys.stderr.write(WORDS)
    sys.stdout.buffer.write(WORDS.encode())
    sys.stdout.buffer.flush()
    log.info("%s", WORDS)


@app.job
async def in_loop() -> None:
    shout()


@app.job
def in_thread() -> None:
    shout()


@app.job(isolation="process")
def alone() -> None:
    shout()


@app.job
async def patient(seconds: float) -> None:
    shout()
    await asyncio.sleep(seconds)
