"""A program with jobs of every fate, for the tests of the console."""

import asyncio
import logging
import os
from pathlib import Path

from lamplighter import App, Context, Reject, Retry

log = logging.getLogger(__name__)
app = App()

SIGNALS = Path(os.environ.get("CONSOLE_SIGNALS", "."))
"""Files here tell handlers what to do."""
HOSTILE = "<script>alert('type')</script><img src=x onerror=alert(1)>"
HOSTILE_QUEUE = "<b onmouseover=alert('queue')>javascript:alert(2)</b>"


@app.job
async def greet(name: str) -> str:
    log.info("greeting %s", name)
    return f"Hello, {name}"


@app.job(queue="payments", retry=Retry(max_attempts=1))
async def charge(order: str, euros: int = 10) -> str:
    """Fails until somebody has mended the bank; until then what is no order is refused."""
    if not (SIGNALS / "mended").exists():
        if not order:
            raise Reject("there is no order")
        raise ConnectionRefusedError("the bank does not answer")
    return f"{euros} € for {order}"


@app.job(queue="parcels", retry=Retry(max_attempts=1))
async def deliver(address: str) -> None:
    """Fails always."""
    raise LookupError(f"no such street: {address}")


@app.job(queue="reports")
async def report(ctx: Context, steps: int = 10) -> str:
    """Tells how far it is, until somebody lets it finish."""
    log.info("report begins")
    ctx.progress(3, steps, "reading the books")
    while not (SIGNALS / "release").exists():  # noqa: ASYNC110 - a sign from another process
        await asyncio.sleep(0.02)
    ctx.progress(steps, steps, "done")
    log.info("report ends")
    return "written"


@app.job(name=HOSTILE, queue=HOSTILE_QUEUE, retry=Retry(max_attempts=1))
async def hostile(text: str, *, fail: bool) -> dict[str, str]:
    """Says what it was given, everywhere one can say something."""
    log.warning("%s", text)
    print(text)
    if fail:
        raise ValueError(text)
    return {text: text}
