"""A program whose jobs run in processes of their own."""

import asyncio
import contextlib
import faulthandler
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from lamplighter import App, Context, Outcome, Reject, Snooze, provided
from lamplighter.context import CancelRequested, TimedOut
from lamplighter.model.isolation import Limits
from lamplighter.model.job import Claim

app = App()
around = App()
broken = App()
hungry = App()
deadly = App()
fickle = App()


class Clerk:
    def __init__(self) -> None:
        self.served = 0


@app.provide
def clerk() -> Iterator[Clerk]:
    yield Clerk()
    if path := os.environ.get("TEST_CLOSED"):
        Path(path).write_text(str(os.getpid()))


@app.job(isolation="process")
def add(a: int, b: int) -> int:
    return a + b


@app.job
def shared(ctx: Context) -> str:
    return f"{ctx.job_id} {threading.current_thread() is threading.main_thread()}"


@app.job(isolation="process")
async def add_later(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


@app.job(isolation="process")
def served(*, clerk: Clerk = provided(Clerk)) -> int:
    clerk.served += 1
    return clerk.served


@app.job(isolation="process")
def fails(secret: str = "") -> None:
    raise ValueError(f"no such thing {secret}")


@app.job(isolation="process", secrets=("secret",))
def leaks(secret: str) -> None:
    print("the secret is", secret)
    raise ValueError(f"no such thing {secret}")


@app.job(isolation="process")
def rejects() -> None:
    raise Reject("never")


@app.job(isolation="process")
def snoozes() -> None:
    raise Snooze(12.5)


@app.job(isolation="process")
def exits() -> None:
    sys.exit(7)


@app.job(isolation="process")
async def exits_in_a_task() -> str:
    async def leave() -> None:
        raise SystemExit(7)

    task = asyncio.create_task(leave())
    await asyncio.wait([task])
    return "still here"


@app.job(isolation="process")
def odd(kind: str) -> object:
    return {
        "surrogate": "\udc80",
        "bytes": b"\xff\xfe",
        "object": object(),
        "nul": "a\0b",
        "nan": float("nan"),
    }[kind]


@app.job(isolation="process")
def waits(path: str, seconds: float = 60.0) -> str:
    """Say how it was stopped."""
    Path(path).write_text(str(os.getpid()))
    try:
        time.sleep(seconds)
    except CancelRequested as error:
        Path(path).write_text(type(error).__name__)
        raise
    return "waited"


@app.job(isolation="process", stalled_after=2.0)
def stalls(path: str) -> None:
    Path(path).write_text("stalling")
    time.sleep(60)


@app.job(isolation="process")
def spins(path: str) -> None:
    Path(path).write_text("spinning")
    try:
        while True:
            pass
    except TimedOut:
        Path(path).write_text("TimedOut")
        raise


@app.job(isolation="process")
async def waits_on_the_loop(path: str) -> str:
    Path(path).write_text("waiting")
    try:
        await asyncio.sleep(60)
    except BaseException as error:
        Path(path).write_text(type(error).__name__)
        raise
    return "waited"


@app.job(isolation="process")
def watches(ctx: Context, path: str) -> str:
    """Look at the flag in a thread, which no exception reaches."""
    seen = threading.Event()

    def look() -> None:
        while not ctx.cancel_requested:
            time.sleep(0.01)
        seen.set()

    threading.Thread(target=look, daemon=True).start()
    Path(path).write_text("looking")
    with contextlib.suppress(CancelRequested):
        seen.wait(60)
    return str(seen.wait(5))


@app.job(isolation="process")
def stubborn(path: str) -> None:
    """Ignore every wish, with descendants that do so, too, one of them in a session of its own."""
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(120)"
    near = subprocess.Popen([sys.executable, "-c", program])
    far = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    forked = os.fork()
    if not forked:
        os.setsid()
        time.sleep(120)
        os._exit(0)
    Path(path).write_text(f"{os.getpid()} {near.pid} {far.pid} {forked}")
    while True:
        with contextlib.suppress(CancelRequested):
            time.sleep(60)


@app.job(isolation="process")
def leaves_processes(path: str) -> None:
    """Leave a child, and a grandchild whose parent has ended."""
    near = subprocess.Popen(["sleep", "120"])
    shell = "setsid sleep 120 >/dev/null 2>&1 & echo $!"
    far = subprocess.run(["sh", "-c", shell], stdout=subprocess.PIPE, check=False, timeout=10)
    Path(path).write_text(f"{near.pid} {far.stdout.decode().strip()}")


@app.job(isolation="process")
def forks() -> str:
    """Come back twice."""
    return "parent" if os.fork() else "copy"


@app.job(isolation="process")
def ends(code: int) -> None:
    os._exit(code)


@app.job(isolation="process")
def segfaults() -> None:
    faulthandler._sigsegv()


@app.job(isolation="process")
def kills_itself(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(10)


@app.job(isolation="process")
def hangs_up() -> None:
    os.closerange(3, 100)
    time.sleep(60)


@app.job(isolation="process")
def ends_after_all(path: str) -> str:
    """Have the process die as soon as the outcome is said."""

    def die() -> None:
        while not Path(path).exists():
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=die, daemon=True).start()
    return "said"


@app.job(isolation="process", limits=Limits(memory_mb=400))
def allocates(megabytes: int) -> int:
    return len(bytearray(megabytes << 20))


@app.job(isolation="process", limits=Limits(cpu_seconds=1))
def burns(seconds: float) -> float:
    begun = time.process_time()
    while time.process_time() - begun < seconds:
        pass
    return seconds


@app.job(isolation="process", limits=Limits(open_files=32))
def opens(count: int) -> int:
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(Path("/dev/null").open())
    return count


@app.job(isolation="process", env={"COLOUR": "red"})
def red() -> str:
    return os.environ["COLOUR"]


@app.job(isolation="process", env={"COLOUR": "blue"})
def blue() -> str:
    return os.environ["COLOUR"]


@app.job(isolation="process", cwd="/usr")
def where() -> str:
    return str(Path.cwd())


@app.job(isolation="process", cwd="/no/such/folder")
def nowhere() -> str:
    return "here"


@app.job(isolation="process", cwd="/usr")
def submits() -> str:
    return add.submit_sync(1, 2).id


@app.job(isolation="process")
async def submits_on_the_loop() -> str:
    return (await add.submit(1, 2)).id


@app.job(isolation="process")
def pid() -> int:
    return os.getpid()


_kept: list[bytes] = []


@app.job(isolation="process")
def grows(megabytes: int) -> int:
    _kept.append(os.urandom(1) * (megabytes << 20))
    return os.getpid()


@app.job(isolation="process")
def talks(ctx: Context, pause: float = 0.0) -> None:
    print("one")
    logging.getLogger("shop").warning("two")
    print("three", file=sys.stderr)
    ctx.progress(1, 2, "half")
    time.sleep(pause)
    print("four", end="")


POLITE = """
trap 'echo bye > $TEST_FILE; exit' TERM
echo up > $TEST_FILE
while sleep 0.05; do :; done
"""
app.command("polite", ["sh", "-c", POLITE], isolation="process")


@around.middleware
async def note(claim: Claim, call_next) -> Outcome:
    await asyncio.sleep(0)
    print("before", claim.job.type)
    outcome = await call_next()
    print("after", type(outcome).__name__)
    return outcome


@around.job(isolation="process")
def inner(a: int) -> int:
    # A plain function may use a loop of its own, also inside of middleware.
    return asyncio.run(_doubled(a))


@around.job(isolation="process")
async def inner_later(a: int) -> int:
    return await _doubled(a)


@around.job(isolation="process")
def inner_waits(path: str) -> None:
    waits(path)


async def _doubled(a: int) -> int:
    await asyncio.sleep(0)
    return 2 * a


@broken.provide
def out_of_order() -> Clerk:
    raise RuntimeError("the clerk is ill")


@broken.job(isolation="process")
def never() -> None:
    pass


@hungry.provide
def hoard() -> Clerk:
    raise MemoryError("no memory is left")


@hungry.job(isolation="process")
def hoards_at_start() -> None:
    pass


@hungry.job(isolation="process", limits=Limits(memory_mb=4096))
def limited_at_start() -> None:
    pass


@deadly.provide
def ends_at_once() -> Clerk:
    os._exit(7)


@deadly.job(isolation="process", name="never")
def never_either() -> None:
    pass


@fickle.provide
def ends_soon() -> Clerk:
    threading.Thread(target=_end_when_ready, daemon=True).start()
    return Clerk()


def _end_when_ready() -> None:
    # The news thread of the slot is started as one of its last steps.
    while "news" not in {thread.name for thread in threading.enumerate()}:
        time.sleep(0.001)
    time.sleep(0.3)
    os._exit(7)


@fickle.job(isolation="process", name="never")
def never_as_well() -> None:
    pass
