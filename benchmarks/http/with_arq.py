"""FastAPI in front of arq: `uvicorn benchmarks.http.with_arq:app`."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from arq import create_pool
from arq.connections import RedisSettings
from fastapi import FastAPI

from benchmarks.http.fastapi_side import CHECKED, Submission, Submitted


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    app.state.pool = await create_pool(RedisSettings.from_dsn(os.environ["BENCHMARK_URL"]))
    yield
    await app.state.pool.aclose()


app = FastAPI(lifespan=lifespan)


@app.post("/v1/jobs", status_code=201, dependencies=CHECKED)
async def submit(given: Submission) -> Submitted:
    job = await app.state.pool.enqueue_job("charge", **given.arguments.model_dump())
    return Submitted(id=job.job_id, answer="created")
