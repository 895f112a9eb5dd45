"""A program for a child of its own."""

import asyncio

from lamplighter import App

app = App()


@app.job
async def wild() -> None:
    """Run where it may."""


@app.job
async def tame() -> None:
    """Run beside others."""


@app.job
async def endless() -> None:
    """Run until it is stopped."""
    await asyncio.Event().wait()
