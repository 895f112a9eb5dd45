"""The release before a handler got one more argument."""

from lamplighter import App, Context
from tests.system.program import note

app = App()


@app.job(delivery="at_most_once")
async def charge(ctx: Context, order: int) -> str:
    note(ctx, "old")
    return "old"


@app.job
async def invoice(ctx: Context, order: int) -> str:
    note(ctx, "old")
    return "old"


@app.job(delivery="at_most_once", isolation="process")
def label(ctx: Context, order: int) -> str:
    note(ctx, "old")
    return "old"
