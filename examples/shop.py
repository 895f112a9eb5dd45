"""A small online shop, told as background jobs. Run it with `make run`.

That command runs the worker, the scheduler and the story at the end of this file. It divides all
waiting by 2880, so a day passes in half a minute. To look behind the scenes, try in a second
terminal, in the same folder:

    lamplighter queues
    lamplighter jobs list --status retrying
    lamplighter dlq list
"""

import asyncio
import itertools
import random

from lamplighter import App, Context, Retry
from lamplighter.port.values import TenantSettings

app = App()  # jobs live in lamplighter.db here, unless LAMPLIGHTER_URL says otherwise

MINUTE, HOUR, DAY = 60, 3600, 24 * 3600


# ── What the shop does in the background ─────────────────────────────────────────────────────


@app.job(queue="mail")
async def send_confirmation(customer: str, order: int) -> str:
    """The simplest job there is: it runs as soon as a worker has a free hand."""
    await asyncio.sleep(random.uniform(0.01, 0.05))
    return f"Dear {customer}, thank you for order {order}!"


@app.job(queue="mail", priority="low")
async def remind_of_cart(customer: str, cart: list[str]) -> str:
    """Submitted when somebody walks away from a full cart, due 24 hours later."""
    return f"Dear {customer}, you left {' and '.join(cart)} behind."


class CardNetworkDown(Exception):
    """The bank does not answer. It usually does, a little later."""


@app.job(queue="payments", priority="high", timeout=30, retry=Retry(delays=[60, 300, 1800]))
async def charge(ctx: Context, order: int, amount: int) -> str:
    """A failed charge is tried again after 1 minute, 5 minutes and half an hour.

    The effect key is the same in every attempt, so the bank takes the money only once.
    """
    if order % 3 == 0 and ctx.attempt < 4:
        raise CardNetworkDown(f"no answer for order {order}, attempt {ctx.attempt}")
    return f"{amount} € received, receipt {ctx.effect_key('charge')}"


@app.job(queue="billing")
def write_invoice(ctx: Context, number: int) -> str:
    """Plain functions work too: they run in a thread."""
    return f"invoice {number} for {ctx.tenant}"


@app.job(queue="warehouse", retry=Retry(fixed=10 * MINUTE, max_attempts=3))
async def sync_old_warehouse(shelf: str) -> None:
    """Some things cannot work. After the third attempt this job is a dead letter."""
    raise ConnectionRefusedError(f"the computer behind shelf {shelf} was sold in 2009")


# ── One busy day after another, until you press Ctrl-C ───────────────────────────────────────

CUSTOMERS = ["Ada", "Grace", "Linus", "Margaret", "Edsger", "Barbara", "Alan", "Katherine"]
GOODS = ["a lantern", "a box of matches", "lamp oil", "a brass ladder", "a dozen wicks"]

# The shop also does the billing for others. All share the workers: when everybody has invoices
# waiting, the hotel gets five turns for each turn of the bakery. Nobody waits for ever.
TENANTS = {"corner-bakery": 1, "city-library": 2, "harbour-tours": 3, "grand-hotel": 5}


@app.on_dev
async def open_the_shop(app: App) -> None:
    store = await app.engine()
    for tenant, weight in TENANTS.items():
        settings = TenantSettings(weight=weight)
        await store.settings.put_tenant(tenant, settings, by="examples.shop", reason="its plan")

    for order in itertools.count(1):
        customer = random.choice(CUSTOMERS)
        await send_confirmation.submit(customer, order)
        await charge.options(idempotency_key=f"order-{order}").submit(order, amount=19)

        if order % 2 == 0:
            cart = random.sample(GOODS, k=2)
            await remind_of_cart.options(delay=24 * HOUR, tags=["cart"]).submit(customer, cart)
        if order % 5 == 0:
            await app.submit_many(
                write_invoice.options(tenant=tenant).call(number)
                for tenant in TENANTS
                for number in range(10)
            )
        if order % 10 == 0:
            await sync_old_warehouse.submit(shelf=f"B{order // 10}")

        await asyncio.sleep(0.5)
