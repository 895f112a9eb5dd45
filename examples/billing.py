"""50,000 tenants, each billed at midnight of its own day. Run it with `python -m examples.billing`.

Every tenant has a schedule of its own, `0 0 * * *` in one of forty time zones. A day passes in
seconds: the clock is that of `lamplighter.testing`, and is moved from one quarter of an hour to the
next, because there are zones whose midnight is at a quarter to some hour elsewhere. In the end each
tenant must have been billed exactly once, when its own calendar turned: not always at 00:00, for on
that night the clocks of the Azores go from midnight straight to one.

All of it takes some minutes, as the bills are written one after the other; `--tenants 2000` is done
in seconds.
"""

import argparse
import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from lamplighter import App, Context, testing

app = App()

# fmt: off
ZONES = [
    "Pacific/Kiritimati", "Pacific/Apia", "Pacific/Chatham", "Pacific/Auckland", "Asia/Kamchatka",
    "Pacific/Norfolk", "Australia/Lord_Howe", "Australia/Sydney", "Australia/Adelaide",
    "Asia/Tokyo", "Australia/Eucla", "Asia/Shanghai", "Asia/Jakarta", "Asia/Yangon", "Asia/Dhaka",
    "Asia/Kathmandu", "Asia/Kolkata", "Asia/Karachi", "Asia/Kabul", "Asia/Dubai", "Asia/Tehran",
    "Africa/Nairobi", "Europe/Istanbul", "Europe/Helsinki", "Africa/Cairo", "Europe/Berlin",
    "Africa/Lagos", "Europe/London", "UTC", "Atlantic/Azores", "America/Noronha",
    "America/Sao_Paulo", "America/St_Johns", "America/Santiago", "America/New_York",
    "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Anchorage",
    "Pacific/Marquesas",
]
# fmt: on

START = datetime(2026, 3, 28, 9, 0, tzinfo=UTC)
"""No midnight is at that moment in any of them; in some of them clocks change in the next hours."""
STEP = timedelta(minutes=15)

billed: Counter[str] = Counter()
wrong: list[str] = []


@app.job(queue="billing")
async def bill(ctx: Context, tenant: str, zone: str) -> None:
    """Bill a tenant for the day that has just ended where it lives."""
    due = datetime.fromisoformat(str(ctx.metadata["scheduled_for"]))
    day = due.astimezone(ZoneInfo(zone)).date()
    if (due - timedelta(seconds=1)).astimezone(ZoneInfo(zone)).date() == day:
        wrong.append(f"{tenant} was billed in the middle of {day}")
    billed[tenant] += 1


async def main(tenants: int) -> None:
    """Put all schedules, let a day pass, and look at the bills."""
    names = [(f"tenant-{number:05}", ZONES[number % len(ZONES)]) for number in range(tenants)]
    async with testing.store(app, start=START) as t:
        await app.schedules.put_many(
            app.schedules.make(
                f"billing/{tenant}",
                "0 0 * * *",
                bill.options(tenant=tenant).call(tenant, zone),
                timezone=zone,
            )
            for tenant, zone in names
        )
        print(f"{tenants:,} schedules in {len(ZONES)} zones")
        while t.clock.now() < START + timedelta(days=1):
            t.clock.advance(STEP)
            if made := await t.fire():
                await t.drain(limit=made)
                print(f"{t.clock.now():%H:%M} UTC {made:>7,} bills, {billed.total():>7,} in all")
    missing = [tenant for tenant, _ in names if billed[tenant] != 1]
    if missing or wrong:
        raise SystemExit(f"not billed exactly once: {missing[:5]}; at a wrong time: {wrong[:5]}")
    print(f"each of {tenants:,} tenants was billed once, at its own midnight")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=50_000)
    asyncio.run(main(parser.parse_args().tenants))
