"""The release in which handlers take one more argument, which may be left out."""

from lamplighter import App, Context
from tests.system.program import note

app = App()


@app.job(delivery="at_most_once")
async def charge(ctx: Context, order: int, coupon: str = "") -> str:
    note(ctx, "new")
    return coupon


@app.job
async def invoice(ctx: Context, order: int, coupon: str = "") -> str:
    note(ctx, "new")
    return coupon


@app.job(delivery="at_most_once", isolation="process")
def label(ctx: Context, order: int, coupon: str = "") -> str:
    note(ctx, "new")
    return coupon
