"""What systemd is told, heard on a real socket."""

import asyncio
import os
import socket
from configparser import ConfigParser
from pathlib import Path
from types import SimpleNamespace

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.observability import events
from lamplighter.observability.health import Health, look
from lamplighter.service import LATE, Service
from lamplighter.worker import systemd
from lamplighter.worker.ledger import Ledger
from lamplighter.worker.systemd import PATIENCE, Notifier
from lamplighter.worker.watch import KILL_AFTER


class Manager:
    """The socket of a service manager."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.setblocking(False)

    def heard(self) -> list[list[str]]:
        messages = []
        while True:
            try:
                messages.append(self._socket.recv(4096).decode().split("\n"))
            except BlockingIOError:
                return messages

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path, monkeypatch):
    if request.param == "path":
        shown = address = f"{tmp_path}/notify"
    else:
        name = f"lamplighter-test-{os.getpid()}"
        shown, address = f"@{name}", f"\0{name}"
    monkeypatch.setenv("NOTIFY_SOCKET", shown)
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    manager = Manager(address)
    yield manager
    manager.close()


class Loop(Service):
    name = "keep leases"

    async def step(self) -> float:
        return 1.0


class Clock(runtime.System):
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock():
    clock = Clock()
    with runtime.install(clock):
        yield clock


class Worker:
    """What a notifier looks at."""

    def __init__(self) -> None:
        self.serving = False
        self.draining = False
        self.size = 1
        self.child = SimpleNamespace(
            ready=True, dead=False, alone=False, replaces=None, ledger=Ledger()
        )
        self.children = [self.child]
        self.loop = Loop()
        self.others: list[Service] = []

    def health(self) -> Health:
        return look(self.others, runtime.monotonic())

    def notifier(self, **given) -> Notifier:
        return Notifier(self, loops=lambda: [self.loop], **given)

    def run(self, count: int) -> None:
        self.child.ledger.claimed(
            "n", 0, [(str(number), 1, "work") for number in range(count)], 0.0
        )
        self.child.ledger.started([(number, 1e9) for number in range(count)], 0.0)


async def test_the_start_is_told_once_when_the_worker_works(manager):
    worker = Worker()
    notifier = worker.notifier()
    await notifier.step()
    await notifier.step()
    worker.serving = True
    await notifier.step()
    await notifier.step()
    worker.run(3)
    await notifier.step()
    assert manager.heard() == [
        ["STATUS=1 of 1 child ready, 0 jobs running"],
        ["READY=1", "STATUS=1 of 1 child ready, 0 jobs running"],
        ["STATUS=1 of 1 child ready, 3 jobs running"],
    ]


async def test_a_reload_lasts_until_no_child_waits_to_be_replaced(manager, clock):
    worker = Worker()
    notifier = worker.notifier()
    worker.serving = True
    await notifier.step()
    stop = events.listen(notifier._on_event)
    try:
        events.emit(events.WORKER_RELOADED, worker="w", children=1)
    finally:
        stop()
    assert manager.heard()[1:] == [["RELOADING=1", "MONOTONIC_USEC=1000000000", "STATUS=reloading"]]
    worker.child.replaces = object()
    await notifier.step()
    assert manager.heard() == []
    worker.child.replaces = None
    await notifier.step()
    await notifier.step()
    assert manager.heard() == [["READY=1", "STATUS=1 of 1 child ready, 0 jobs running"]]


async def test_the_end_is_told_once_however_it_comes(manager):
    worker = Worker()
    notifier = worker.notifier()
    worker.draining = True
    await notifier.step()
    await notifier.step()
    await notifier.stop()
    await Worker().notifier().stop()
    stopping = ["STOPPING=1", "STATUS=running jobs come to their end"]
    assert manager.heard() == [stopping, stopping]


def test_a_reload_is_told_with_its_instant(manager, clock):
    assert systemd.reloading()
    assert systemd.ready()
    assert systemd.stopping("now")
    assert manager.heard() == [
        ["RELOADING=1", "MONOTONIC_USEC=1000000000", "STATUS=reloading"],
        ["READY=1"],
        ["STOPPING=1", "STATUS=now"],
    ]


def test_without_a_manager_nobody_wants_to_hear(manager, monkeypatch):
    assert systemd.wanted()
    monkeypatch.delenv("NOTIFY_SOCKET")
    assert not systemd.wanted()


def test_text_cannot_smuggle_in_another_line(manager):
    systemd.notify("STATUS=a\nSTOPPING=1")
    assert manager.heard() == [["STATUS=a STOPPING=1"]]


async def test_signs_of_life_come_at_half_the_time_and_only_while_the_loops_turn(
    manager, clock, monkeypatch
):
    monkeypatch.setenv("WATCHDOG_USEC", "10000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    worker = Worker()
    notifier = worker.notifier(patience=20.0)
    began, alive = clock.now, []
    while (passed := clock.now - began) < 60:
        if passed <= 30:
            worker.loop.progress = clock.now
        clock.now += await notifier.step()
        alive += [passed for lines in manager.heard() if lines == ["WATCHDOG=1"]]
    assert alive == [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50]


async def test_a_stuck_loop_is_named(manager, clock, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "10000000")
    worker = Worker()
    notifier = worker.notifier()
    clock.now += 100
    await notifier.step()
    assert manager.heard()[1:] == [["STATUS=no progress: keep leases"]]


class Endless(Service):
    """A step that nothing can end."""

    name = "fire"
    patience = 30.0

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.free = asyncio.Event()

    async def step(self) -> float:
        self.begun.set()
        await self.free.wait()
        return 1.0


async def test_a_loop_whose_step_cannot_be_given_up_ends_the_signs_of_life(
    manager, clock, monkeypatch
):
    monkeypatch.setenv("WATCHDOG_USEC", "10000000")
    worker, other = Worker(), Endless()
    worker.others = [other]
    notifier = worker.notifier()
    other.start()
    await other.begun.wait()
    heard = []
    for _ in range(20):
        clock.now += 10
        worker.loop.progress = clock.now
        await notifier.step()
        heard.append([line for lines in manager.heard() for line in lines])
    other.free.set()
    await other.stop()

    late, stuck = (int(limit // 10) for limit in (LATE, Endless.patience + LATE))
    for number, lines in enumerate(heard, 1):
        assert ("WATCHDOG=1" in lines) == (number <= stuck)
    assert heard[late][0].endswith("0 jobs running; no progress: fire")
    assert heard[-1][-1] == "STATUS=no progress: fire"


async def test_a_loop_that_fails_because_the_store_is_away_does_not_end_the_signs_of_life(
    manager, clock, monkeypatch
):
    monkeypatch.setenv("WATCHDOG_USEC", "10000000")
    worker, other = Worker(), Loop()
    worker.others = [other]
    notifier = worker.notifier()
    clock.now += 500
    worker.loop.progress = clock.now
    await notifier.step()

    assert manager.heard() == [
        ["STATUS=1 of 1 child ready, 0 jobs running; no progress: keep leases"],
        ["WATCHDOG=1"],
    ]


@pytest.mark.parametrize(
    ("environment", "limit"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_is_for_the_process_it_names(monkeypatch, environment, limit):
    for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert systemd.watchdog() == limit


@pytest.mark.parametrize("address", [None, "", "/nowhere/at/all", "relative", "@nobody", "/" * 300])
async def test_without_a_socket_that_answers_nothing_happens(monkeypatch, address):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    if address is not None:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert not systemd.ready()
    assert not systemd.reloading()
    assert not systemd.stopping()
    assert await Worker().notifier().step() > 0


def test_the_unit_gives_a_worker_the_time_it_needs():
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(Path(__file__).parents[3] / "deploy" / "lamplighter-worker.service")
    service = unit["Service"]
    assert float(service["TimeoutStopSec"]) > Settings().grace + KILL_AFTER + 5
    assert float(service["WatchdogSec"]) <= PATIENCE
    assert Settings().store_deadline < PATIENCE
    assert service["KillMode"] == "mixed"
    assert service["Type"] == "notify"
