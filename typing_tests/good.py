"""What must type-check: arguments and results keep their types from the handler to the caller."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import assert_type

from lamplighter import (
    App,
    Call,
    CallNext,
    Claim,
    Context,
    Handle,
    Job,
    JobReport,
    Outcome,
    Retry,
    Status,
    provided,
)
from lamplighter.http import HttpApp, HttpCall, HttpHandle

app = App("sqlite:///jobs.db")


@dataclass
class Order:
    id: str
    cents: int


@app.job
async def bare(order_id: str) -> int:
    return len(order_id)


@app.job(queue="payments", retry=Retry(delays=[60, 300, 1800]), timeout=30)
async def charge(ctx: Context, order_id: str, cents: int) -> str:
    return ctx.effect_key("charge")


@app.job(priority="low", delivery="at_most_once", name="mail", secrets=["to"])
def send_mail(ctx: Context, to: str, *, subject: str = "") -> None:
    ctx.raise_if_cancelled()


@app.job()
def add(left: int, right: int = 0) -> int:
    return left + right


@app.job
async def ship(order: Order) -> Order:
    return order


class Db:
    def find(self, id: str) -> Order:
        return Order(id, 1)


@app.provide
async def db() -> AsyncIterator[Db]:
    yield Db()


@app.job
async def find(ctx: Context, id: str, *, db: Db = provided(Db)) -> Order:
    return db.find(id)


async def what_is_provided_is_not_submitted(ctx: Context) -> None:
    assert_type(await find.submit("o-1"), Handle[Order])
    assert_type(await find(ctx, "o-1", db=Db()), Order)
    with app.override(Db, Db()):
        find.submit_sync(id="o-1")


@app.middleware
async def timed(claim: Claim, call_next: CallNext) -> Outcome:
    assert_type(claim.job.type, str)
    return await call_next()


class Limited:
    async def __call__(self, claim: Claim, call_next: CallNext) -> Outcome:
        return await call_next()


app.middleware(Limited())


@app.on_failure
@app.on_death
async def alert(report: JobReport) -> None:
    assert_type(report.error, str | None)


@app.on_success
def count(report: JobReport) -> None: ...


backup = app.command("backup", ["pg_dump"], timeout=60, no_retry_codes=(2,), env={"A": "b"})


async def commands_give_their_output() -> None:
    assert_type(await (await backup.submit(database="shop")).result(), str)


@app.on_dev
async def story(app: App) -> None:
    await app.submit_many([bare.call("o-1")])


async def results_keep_their_types() -> None:
    assert_type(await charge.submit("o-1", 995), Handle[str])
    assert_type(await charge.submit(order_id="o-1", cents=995), Handle[str])
    assert_type(await (await bare.submit("o-1")).result(timeout=10), int)
    assert_type(await (await send_mail.submit("a@b", subject="hi")).result(), None)
    assert_type(await (await ship.submit(Order("o", 1))).result(), Order)
    assert_type(await (await add.submit(1)).status(), Status)


async def options_keep_the_signature() -> None:
    later = charge.options(delay=3600, tenant="acme", priority="high", idempotency_key="charge:o-1")
    assert_type(await later.submit("o-1", 995), Handle[str])
    await charge.options(delay=timedelta(hours=1), tags=["a"], metadata={"a": [1]}).submit("o", 1)
    await charge.options(run_at=datetime(2030, 1, 1, tzinfo=UTC), timeout=None).submit("o", 1)


async def many_at_once() -> None:
    assert_type(charge.call("o-1", 995), Call[str])
    same = await app.submit_many([charge.call("o-1", 995), charge.options(delay=5).call("o", 1)])
    assert_type(same, list[Handle[str]])
    mixed: list[Call[str | int]] = [charge.call("o-1", 995), bare.call("o-1")]
    assert_type(await app.submit_many(mixed), list[Handle[str | int]])


def plain_code() -> None:
    assert_type(charge.submit_sync("o-1", 995), Handle[str])
    assert_type(charge.submit_sync("o-1", 995).result_sync(timeout=1), str)
    assert_type(add.options(delay=1).submit_sync(1, right=2).status_sync(), Status)
    assert_type(app.submit_many_sync([add.call(1)]), list[Handle[int]])
    app.close_sync()


async def calling_a_job_calls_the_function(ctx: Context) -> None:
    assert_type(await charge(ctx, "o-1", 995), str)
    assert_type(await bare("o-1"), int)
    assert_type(send_mail(ctx, "a@b", subject="hi"), None)
    assert_type(add(1, 2), int)


async def without_code() -> None:
    assert_type(await app.submit("charge", {"order_id": "o-1"}, delay=5), Handle[object])
    assert_type(app.handle("01J"), Handle[object])


def takes_any_job(job: Job[[str, int], str]) -> None:
    job.submit_sync("o-1", 995)


takes_any_job(charge)


async def over_http(service: HttpApp) -> None:
    named = await service.submit("charge", {"order_id": "o-1"}, delay=5)
    assert_type(named, HttpHandle[object])
    assert_type(await named.result(timeout=5), object)
    at_hand = await service.submit(charge, {"order_id": "o-1"})
    assert_type(await at_hand.result(), str)
    assert_type(service.submit_sync(charge, {}).result_sync(), str)
    call = await service.call(charge, {}, priority="high")
    assert_type(call, HttpCall[str])
    assert_type(await service.submit_many([call]), list[HttpHandle[str]])
    assert_type(await named.status(), Status)
