"""What must not type-check. An ignore comment that is not needed any more fails the check."""

from lamplighter import App, Context, Retry, provided

app = App("sqlite:///jobs.db")


@app.job
async def charge(ctx: Context, order_id: str, cents: int) -> str:
    return order_id


@app.job(queue="mail")
def send_mail(to: str, *, subject: str = "") -> None: ...


async def wrong_arguments() -> None:
    await charge.submit("o-1", "995")  # pyright: ignore[reportArgumentType]
    await charge.submit("o-1")  # pyright: ignore[reportCallIssue]
    await charge.submit("o-1", 995, 1)  # pyright: ignore[reportCallIssue]
    await charge.submit("o-1", amount=995)  # pyright: ignore[reportCallIssue]
    await charge.options(delay=1).submit(995, "o-1")  # pyright: ignore[reportArgumentType]
    charge.submit_sync("o-1", None)  # pyright: ignore[reportArgumentType]
    charge.call(cents=995)  # pyright: ignore[reportCallIssue]
    await send_mail.submit("a@b", "hi")  # pyright: ignore[reportCallIssue]


async def the_context_is_not_submitted(ctx: Context) -> None:
    await charge.submit(ctx, "o-1", 995)  # pyright: ignore[reportCallIssue]


async def wrong_options() -> None:
    charge.options(dealy=5)  # pyright: ignore[reportCallIssue]
    charge.options(delay="5")  # pyright: ignore[reportArgumentType]
    charge.options(priority="urgent")  # pyright: ignore[reportArgumentType]
    charge.options(retry=3)  # pyright: ignore[reportArgumentType]
    charge.options(run_at="2030-01-01")  # pyright: ignore[reportArgumentType]
    charge.options(metadata=["a"])  # pyright: ignore[reportArgumentType]
    await app.submit("charge", {}, tenants="acme")  # pyright: ignore[reportCallIssue]


def wrong_type_options() -> None:
    app.job(delivery="exactly_once")  # pyright: ignore[reportArgumentType]
    app.job(retries=5)  # pyright: ignore[reportCallIssue]
    app.job(retry=5)  # pyright: ignore[reportArgumentType]
    app.job(secrets=5)  # pyright: ignore[reportArgumentType]
    Retry(delays=60)  # pyright: ignore[reportArgumentType]


async def what_is_provided_has_the_annotated_type(db: str = provided(int)) -> None:  # pyright: ignore[reportArgumentType]
    app.override(int, "1")


async def takes_nothing() -> None: ...


app.middleware(takes_nothing)  # pyright: ignore[reportArgumentType]


async def results_have_their_type() -> int:
    handle = await charge.submit("o-1", 995)
    return await handle.result()  # pyright: ignore[reportReturnType]


def direct_calls(ctx: Context) -> None:
    charge("o-1", 995)  # pyright: ignore[reportCallIssue]
    send_mail(ctx, "a@b")  # pyright: ignore[reportCallIssue]


async def only_calls_can_be_batched() -> None:
    await app.submit_many([charge])  # pyright: ignore[reportArgumentType]
