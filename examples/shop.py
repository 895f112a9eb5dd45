"""A small online shop, told as background jobs. Run it with `make run`.

That command runs a worker and the story at the end of this file. It divides all waiting by 2880,
so a day passes in half a minute. In a terminal, press k to kill a worker process with -9 and see
that no job is lost; or change a job in this file, save it, and the next one runs the new code. To
look behind the scenes, try in a second terminal, in the same folder:

    .venv/bin/lamplighter queues
    .venv/bin/lamplighter jobs list --status retrying
    .venv/bin/lamplighter dlq list
    .venv/bin/lamplighter schedules runs count_the_till
"""

import asyncio
import itertools
import random
import secrets

from lamplighter import App, Context, Retry

app = App()  # jobs live in lamplighter.db here, unless LAMPLIGHTER_URL says otherwise

MINUTE, HOUR = 60, 3600


# ── What the shop does in the background ─────────────────────────────────────────────────────


@app.job(queue="mail")
async def send_confirmation(customer: str, order: str) -> str:
    """The simplest job there is: it runs as soon as a worker has a free hand."""
    await asyncio.sleep(random.uniform(0.01, 0.05))
    return f"Dear {customer}, thank you for order {order}!"


@app.job(queue="mail", priority="low")
async def remind_of_cart(customer: str, cart: list[str]) -> str:
    """Submitted when somebody walks away from a full cart, due 24 hours later."""
    return f"Dear {customer}, you left {' and '.join(cart)} behind."


class CardNetworkDown(Exception):
    """The bank does not answer. It usually does, a little later."""


@app.job(
    queue="payments",
    priority="high",
    timeout=30,
    retry=Retry(delays=[1 * MINUTE, 5 * MINUTE, 30 * MINUTE]),
)
async def charge(ctx: Context, order: str, euros: int) -> str:
    """A failed charge is tried again after 1 minute, 5 minutes and half an hour.

    The effect key is the same in every attempt, so the bank takes the money only once.
    """
    if euros >= 100 and ctx.attempt < 4:
        raise CardNetworkDown(f"no answer about {euros} € for order {order}")
    return f"{euros} € received, receipt {ctx.effect_key('charge')}"


@app.job(queue="billing")
def write_invoice(ctx: Context, number: int) -> str:
    """Plain functions work too: they run in a thread."""
    return f"invoice {number} for {ctx.tenant}"


@app.job(queue="billing")
async def close_the_books(ctx: Context, month: str) -> str:
    """A long job says how far it has come. When its process dies, another one begins anew."""
    for day in range(1, 31):
        ctx.progress(day, 30, f"{month}, day {day}")
        await asyncio.sleep(0.25)
    return f"the books of {month} are closed"


@app.schedule("*/15 * * * * *", timezone="Europe/Berlin")
@app.job(queue="billing")
async def count_the_till(ctx: Context) -> str:
    """Runs by the calendar, each occurrence once, whatever the number of workers.

    Calendars follow the real clock: this one fires every 15 seconds. In a real shop it would say
    "0 22 * * mon-sat".
    """
    return f"run {ctx.job_id[-6:]}: the till is right"


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

MONTHS = ["January", "February", "March", "April", "May", "June", "July"]


@app.on_dev
async def open_the_shop(app: App) -> None:
    for tenant, weight in TENANTS.items():
        await app.tenants.set(tenant, weight=weight, by="examples.shop", reason="its plan")

    today = secrets.token_hex(3)
    for number in itertools.count(1):
        customer, order = random.choice(CUSTOMERS), f"{today}-{number}"

        # With a key, the same order submitted twice is charged once.
        euros = 250 if number % 3 == 0 else 19
        await charge.options(idempotency_key=order).submit(order, euros)
        await send_confirmation.submit(customer, order)

        if number % 2 == 0:
            cart = random.sample(GOODS, k=2)
            await remind_of_cart.options(delay=24 * HOUR, tags=["cart"]).submit(customer, cart)
        if number % 5 == 0:
            await app.submit_many(
                write_invoice.options(tenant=tenant).call(line)
                for tenant in TENANTS
                for line in range(1, 11)
            )
        if number % 8 == 1:
            month, tenant = MONTHS[number // 8 % len(MONTHS)], random.choice([*TENANTS])
            await close_the_books.options(tenant=tenant).submit(month)
        if number % 10 == 0:
            await sync_old_warehouse.submit(shelf=f"B{number // 10}")

        await asyncio.sleep(0.5)
