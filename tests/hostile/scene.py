"""A real `lamplighter serve` on a store of its own that has a little of everything."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lamplighter import App
from tests.unit.server.conftest import Scene

ROOT = Path(__file__).parents[2]
OWN, OTHER = "acme", "rival"
SCHEDULES = ("nightly", "a/b c")


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who sends the requests."""

    name: str
    scopes: tuple[str, ...] = ()
    tenant: str | None = None
    asked: bool = True
    """Whether the service asks for a token at all."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A service that runs, and what is in its store."""

    url: str
    pid: int
    jobs: Sequence[str]
    token: str | None
    log: Path


@contextmanager
def site(folder: Path, caller: Caller, **settings: str) -> Iterator[Site]:
    """Fill a store, start the service for this caller, and end it."""
    folder.mkdir(parents=True, exist_ok=True)
    store = f"sqlite:///{folder}/jobs.db"
    jobs = asyncio.run(_fill(store))
    token = _token(store, caller) if caller.scopes else None
    log = folder / "log"
    command = ["serve", "--port", "0", "--json", "--url", store]
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [*_LAMPLIGHTER, *command, *(["--require-token"] if caller.asked else [])],
            cwd=folder,
            env={**_environment(), **settings},
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        try:
            line = process.stdout.readline()
            assert line, log.read_text()
            url = json.loads(line)["url"]
            yield Site(url=url, pid=process.pid, jobs=jobs, token=token, log=log)
        finally:
            process.terminate()


_LAMPLIGHTER = (sys.executable, "-m", "lamplighter")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "LAMPLIGHTER_GRACE": "1"}


def _token(store: str, caller: Caller) -> str:
    command = ["token", "create", "--name", "hostile", "--url", store]
    for scope in caller.scopes:
        command += ["--scope", scope]
    if caller.tenant is not None:
        command += ["--tenant", caller.tenant]
    done = subprocess.run(
        [*_LAMPLIGHTER, *command], env=_environment(), capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


async def _fill(store: str) -> list[str]:
    """Give both tenants jobs of every kind, with logs and results, and schedules."""
    scene = Scene(App(store), [])
    await scene.service.open()
    try:
        await scene.publish("charge")
        found: list[str] = []
        for tenant in (OWN, OTHER):
            for end in ("succeed", "fail", "run", "wait"):
                found.append(await scene.submit(tenant=tenant))
                if end == "wait":
                    continue
                claim = await scene.claim()
                await scene.log(claim, "one line", "another")
                if end != "run":
                    await getattr(scene, end)(claim)
            found.append(await scene.submit(tenant=tenant, delay=3600))
        for tenant, name in zip((OWN, OTHER), SCHEDULES, strict=True):
            await scene.put(name, tenant=tenant)
            path = f"/v1/schedules/{name.replace('/', '%2F')}/trigger?tenant={tenant}"
            made = await scene.call("POST", path)
            assert made.status in {200, 201, 202}, made.body
        return found
    finally:
        await scene.service.close()
