"""Handlers with something around them: what they need, middleware, hooks, and commands."""

import os
from collections.abc import AsyncIterator

from lamplighter import App, CallNext, Claim, Context, JobReport, Outcome, Retry, provided

app = App()


def tell(line: str) -> None:
    log = os.open(os.environ["RUN_LOG"], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(log, f"{line}\n".encode())
    os.close(log)


class Db:
    def __init__(self) -> None:
        self.used = 0

    def use(self) -> int:
        self.used += 1
        return self.used


@app.provide
async def db() -> AsyncIterator[Db]:
    tell("- db-open")
    db = Db()
    yield db
    tell(f"- db-closed {db.used}")


@app.job
async def use(ctx: Context, *, db: Db = provided(Db)) -> int:
    return db.use()


@app.job
def use_in_thread(*, db: Db = provided(Db)) -> int:
    return db.use()


@app.middleware
async def look(claim: Claim, call_next: CallNext) -> Outcome:
    outcome = await call_next()
    tell(f"{claim.job.id} {type(outcome).__name__}")
    return outcome


@app.job(retry=Retry(max_attempts=1))
def fail() -> None:
    raise ValueError("not today")


@app.on_success
@app.on_failure
@app.on_death
def told(report: JobReport) -> None:
    tell(f"{report.job_id} {report.outcome} {report.attempt}")


@app.on_success
async def broken(report: JobReport) -> None:
    raise RuntimeError(report.type)


FAMILY = "echo $LAMPLIGHTER_JOB_ID start $$ >> $RUN_LOG; sleep 60 & wait; echo never"

app.command("echo", ["cat"])
app.command("family", ["sh", "-c", FAMILY])
