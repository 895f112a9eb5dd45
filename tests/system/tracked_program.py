"""A program with a real error tracker, which writes its events to a file."""

import json
import os
from pathlib import Path

import sentry_sdk
from sentry_sdk.transport import Transport

from lamplighter import App, CallNext, Claim, JobReport, Outcome, Retry
from lamplighter.model.outcome import Failed
from lamplighter.secrecy import arguments_of


class ToFile(Transport):
    def capture_envelope(self, envelope) -> None:
        for item in envelope.items:
            if item.type == "event":
                with Path(os.environ["RUN_LOG"]).open("a") as file:
                    file.write(json.dumps(item.payload.json) + "\n")


sentry_sdk.init(
    dsn="https://key@tracker.invalid/1",
    transport=ToFile,
    include_local_variables=False,
    default_integrations=False,
)
app = App()


@app.middleware
async def track(claim: Claim, call_next: CallNext) -> Outcome:
    outcome = await call_next()
    if isinstance(outcome, Failed) and outcome.exception is not None:
        with sentry_sdk.new_scope() as scope:
            scope.set_tag("by", "middleware")
            scope.set_tag("job", claim.job.id)
            scope.set_context(
                "job",
                {
                    "arguments": dict(arguments_of(claim)),
                    "metadata": dict(claim.job.extras.metadata),
                },
            )
            sentry_sdk.capture_exception(outcome.exception)
    return outcome


@app.on_failure
def report(report: JobReport) -> None:
    with sentry_sdk.new_scope() as scope:
        scope.set_tag("by", "hook")
        scope.set_tag("job", report.job_id)
        scope.fingerprint = [report.type, report.fingerprint]
        scope.set_context(
            "job", {"arguments": dict(report.arguments), "metadata": dict(report.metadata)}
        )
        if report.exception is not None:
            sentry_sdk.capture_exception(report.exception)
        else:
            sentry_sdk.capture_message(f"{report.error}\n{report.traceback}", "error")


def look_up(order: str) -> None:
    raise LookupError(f"there is no order {order}")


@app.job(secrets=["card"], retry=Retry(max_attempts=1))
async def charge(order: str, card: str) -> None:
    look_up(order)


@app.job(secrets=["card"], retry=Retry(max_attempts=1))
def charge_in_thread(order: str, card: str) -> None:
    look_up(order)


@app.job(secrets=["card"], retry=Retry(max_attempts=1), isolation="process")
def charge_alone(order: str, card: str) -> None:
    look_up(order)
