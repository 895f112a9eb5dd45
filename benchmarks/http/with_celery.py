"""FastAPI in front of Celery: `uvicorn benchmarks.http.with_celery:app`."""

from __future__ import annotations

import os
from typing import Any, cast

from celery import Celery
from fastapi import FastAPI

from benchmarks.http.fastapi_side import CHECKED, Submission, Submitted

celery = Celery(broker=os.environ["BENCHMARK_URL"])
celery.conf.update(task_ignore_result=True, worker_send_task_events=False)
app = FastAPI()


@celery.task(name="charge")
def charge(order_id: str, cents: int, customer: str) -> None: ...


# Not a plain `def`, which would be called in a thread each time: that takes half as much CPU again.
@app.post("/v1/jobs", status_code=201, dependencies=CHECKED)
async def submit(given: Submission) -> Submitted:
    sent = cast("Any", charge).apply_async(kwargs=given.arguments.model_dump())
    return Submitted(id=sent.id, answer="created")
