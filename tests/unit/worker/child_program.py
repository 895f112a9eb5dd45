"""A program for a child of its own."""

from lamplighter import App

app = App()


@app.job
async def wild() -> None:
    """Run where it may."""


@app.job
async def tame() -> None:
    """Run beside others."""
