"""What `lamplighter dev` lets be seen and done. Nothing else has these routes."""

from __future__ import annotations

from typing import Protocol

import msgspec

from lamplighter.model.errors import WrongState
from lamplighter.server.auth import Scope
from lamplighter.server.route import Answer, Nothing, Reply, Request, Route, route


class DevChild(msgspec.Struct, kw_only=True, frozen=True):
    """A child process of the worker."""

    pid: int
    state: str
    running: int
    """Handlers that run in it."""


class Dev(msgspec.Struct, kw_only=True, frozen=True):
    """A program under development, and what killing its processes has cost."""

    program: str
    speed: float
    """By what every delay and retry pause is divided."""
    children: list[DevChild]
    killed: int
    lost: int
    """Jobs that were seen to start, and that the store does not know any more."""
    recovering: bool
    """Whether jobs of a killed child are still in its hands."""
    recovered_seconds: float | None
    """How long it took until those of the last one were not."""


class Killed(msgspec.Struct, kw_only=True, frozen=True):
    """A child that was killed."""

    pid: int


class Stage(Protocol):
    """A program at work under `lamplighter dev`."""

    def facts(self) -> Dev:
        """Say how it is."""
        ...

    def kill(self) -> int | None:
        """Kill a child of its worker without warning; gives its pid."""
        ...


def routes(stage: Stage) -> tuple[Route, ...]:
    """Declare the routes of one program under development."""

    @route(
        "GET",
        "/v1/dev",
        scope=Scope.ADMIN,
        whole=True,
        summary="Look at the program under development.",
        answers=[
            Answer(
                status=200,
                kind=Dev,
                text="Its processes, and what killing them has cost.",
                example={
                    "program": "shop:app",
                    "speed": 2880.0,
                    "children": [{"pid": 4711, "state": "ready", "running": 4}],
                    "killed": 1,
                    "lost": 0,
                    "recovering": False,
                    "recovered_seconds": 0.2,
                },
            )
        ],
    )
    async def show(_: Request[Nothing, None]) -> Reply:
        """Say how it is."""
        return Reply(200, stage.facts())

    @route(
        "POST",
        "/v1/dev/kill-worker",
        scope=Scope.ADMIN,
        whole=True,
        summary="Kill a child process of the worker with SIGKILL, to see that no job is lost.",
        answers=[
            Answer(status=200, kind=Killed, text="It was killed.", example={"pid": 4711}),
        ],
        errors=[WrongState],
    )
    async def kill_worker(_: Request[Nothing, None]) -> Reply:
        """Kill one."""
        pid = stage.kill()
        if pid is None:
            raise WrongState(
                "no child is ready to be killed",
                hint="wait until the next one has started, and try again",
                value=None,
            )
        return Reply(200, Killed(pid=pid))

    return (show, kill_worker)
