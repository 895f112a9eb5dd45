"""`lamplighter dev`: a program at work in one command, until Ctrl-C."""

import asyncio
import codecs
import fcntl
import http.client
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lamplighter import App
from lamplighter.worker.load import load

ROOT = Path(__file__).parents[2]
SOURCES = f"{ROOT}/src{os.pathsep}{ROOT}"
COMMAND = Path(sys.executable).parent / "lamplighter"
PATIENCE = 40.0


class Terminal:
    """A command, its output to one descriptor, and what has come out so far."""

    def __init__(self, process: subprocess.Popen[bytes], source: int) -> None:
        self.process = process
        self.text = ""
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        os.set_blocking(source, False)
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(source, self._read)

    async def shown(self, *parts: str) -> None:
        """Wait until each of these has been shown."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not all(part in self.text for part in parts):
                    assert self.process.poll() is None, self.text
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"waited in vain for {parts}: {self.text}") from None

    def press(self, key: str) -> None:
        """Type a key; what was shown before does not count any more."""
        self.text = ""
        os.write(self._source, key.encode())

    def modes(self) -> list:
        """Give what the terminal does with what is typed."""
        return termios.tcgetattr(self._source)

    async def ended(self) -> int:
        try:
            return await asyncio.to_thread(self.process.wait, PATIENCE)
        finally:
            self._read()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._source)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._source)

    def _read(self) -> None:
        try:
            while chunk := os.read(self._source, 1 << 16):
                self.text += self._decoder.decode(chunk)
        except BlockingIOError:
            pass
        except OSError:
            # A terminal whose last user has gone cannot be read any more.
            asyncio.get_running_loop().remove_reader(self._source)
        self._news.set()


@pytest.fixture
async def dev(tmp_path):
    started: list[Terminal] = []

    def start(
        *arguments: str, terminal: bool = False, keyboard: bool = False, **environment: str
    ) -> Terminal:
        source, sink = pty.openpty() if terminal else os.pipe()
        if terminal:
            fcntl.ioctl(sink, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        process = subprocess.Popen(
            [COMMAND, "dev", *arguments],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT}/src{os.pathsep}{ROOT}",
                "TERM": "xterm",
                **environment,
            },
            stdin=sink if keyboard else subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=keyboard,
        )
        os.close(sink)
        started.append(Terminal(process, source))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


async def test_the_shop_is_at_work_and_stops_in_peace(dev, tmp_path):
    shop = dev("examples.shop:app", "--speed", "28800")

    await shop.shown("succeeded  charge", "retrying   charge", "again in 30 min")
    await shop.shown("succeeded  remind_of_cart", "dead       sync_old_warehouse")
    await shop.shown("tenant=corner-bakery", "tenant=grand-hotel")
    shop.process.send_signal(signal.SIGINT)

    assert await shop.ended() == 0
    # Those of failed jobs are logged, set in.
    assert not [line for line in shop.text.splitlines() if line.startswith("Traceback")]
    assert (tmp_path / "lamplighter.db").exists()


async def test_in_a_terminal_there_is_a_view(dev):
    shop = dev("examples.shop:app", "--speed", "2880", "--children", "1", terminal=True)

    await shop.shown("queues", "workers", "payments", "succeeded", "failures", "jobs/s")
    shop.process.send_signal(signal.SIGTERM)

    assert await shop.ended() == 0
    assert "stopped: " in shop.text


async def test_events_for_programs_are_json(dev):
    shop = dev("examples.shop:app", "--json", "--children", "1", "--url", "sqlite:///other.db")
    await shop.shown('"event": "job.settled"', '"state": "succeeded"')
    shop.process.send_signal(signal.SIGINT)
    assert await shop.ended() == 0
    told = [json.loads(line) for line in shop.text.splitlines() if line.startswith("{")]
    assert {"job.submitted", "job.settled", "child.started"} <= {event["event"] for event in told}


NOISY = """
import sys

from lamplighter import App

app = App()


@app.job
async def hello() -> None:
    print("printed by a handler")


@app.on_dev
async def broken_story(app: App) -> None:
    await hello.submit()
    raise ValueError("this story has no end")
"""


@pytest.mark.parametrize("terminal", [False, True])
async def test_a_story_that_fails_is_told_and_the_worker_goes_on(dev, tmp_path, terminal):
    (tmp_path / "noisy.py").write_text(NOISY)
    noisy = dev("noisy:app", "--children", "1", terminal=terminal)
    await noisy.shown("this story has no end", "printed by a handler", "succeeded")
    noisy.process.send_signal(signal.SIGINT)
    assert await noisy.ended() == 1
    assert "the story broken_story failed" in noisy.text
    assert "noisy.py" in noisy.text


async def test_an_address_that_leads_nowhere_is_told_at_once(dev):
    shop = dev("examples.shop:app", "--url", "sqlite:///no/such/folder.db")
    assert await shop.ended() == 1
    assert "error: the folder" in shop.text
    assert "Traceback" not in shop.text


def test_the_shop_names_what_its_story_uses():
    app = load("examples.shop:app")
    assert isinstance(app, App)
    assert app.registry.names() == (
        *("charge", "close_the_books", "count_the_till", "remind_of_cart", "send_confirmation"),
        *("sync_old_warehouse", "write_invoice"),
    )
    assert list(app.schedules.declared) == [("default", "count_the_till")]
    assert app.registry.get("charge").retry.delays == (60, 300, 1800)
    assert len(app.stories) == 1


SHOW = """
import asyncio

from lamplighter import App, Context

app = App()


@app.job
async def count(ctx: Context) -> None:
    for number in range(1_000):
        ctx.progress(number, 1_000, "of the old code")
        await asyncio.sleep(0.1)


@app.on_dev
async def story(app: App) -> None:
    for tenant in ("ada", "grace"):
        await count.options(tenant=tenant).submit()
"""


@pytest.mark.timeout(120)
async def test_the_show_in_a_terminal_kill_reload_and_quit(dev, tmp_path):
    (tmp_path / "show.py").write_text(SHOW)
    show = dev(
        *("show:app", "--processes", "2"),
        terminal=True,
        keyboard=True,
    )
    before = show.modes()

    await show.shown("running jobs", "ada", "grace", " % ", "of the old code")
    await show.shown("killed 0 · lost 0", "k kill -9 a child")
    assert not show.modes()[3] & termios.ICANON

    show.press("k")
    await show.shown("with -9, which held", "killed 1 · lost 0 · recovered in")
    await show.shown("are in safe hands again after", "is ready")

    show.text = ""
    (tmp_path / "show.py").write_text(SHOW.replace("range(1_000):", "range(1_000: #"))
    await show.shown("not reloaded, the old code runs on", "SyntaxError")

    show.text = ""
    (tmp_path / "show.py").write_text(SHOW.replace("old code", "fresh code"))
    await show.shown("reloaded: show.py changed")

    show.press("p")
    await show.shown("the view is paused")
    show.press("p")
    await show.shown("p pause the view")

    show.press("q")
    await show.shown("stopping: running jobs get 30 s")
    show.press("q")
    assert await show.ended() == 0
    assert "killed 1 · lost 0" in show.text
    assert "Traceback" not in show.text
    assert "\x1b[?1049l" in show.text
    assert show.modes() == before


async def test_without_a_terminal_the_code_is_reloaded_too_unless_told_otherwise(dev, tmp_path):
    (tmp_path / "show.py").write_text(SHOW)
    show = dev("show:app", "--processes", "1")
    await show.shown("is ready", "submitted")
    (tmp_path / "show.py").write_text(SHOW.replace("old code", "fresh code"))
    await show.shown("reloaded: show.py changed", "its code is replaced")
    show.process.send_signal(signal.SIGTERM)
    # Of two signals that come together a busy process sees one, and waits for its jobs.
    await show.shown("stopping: running jobs get 30 s")
    show.process.send_signal(signal.SIGTERM)
    assert await show.ended() == 0


QUIET = """
import asyncio

from lamplighter import App

app = App()


@app.job
async def hello(n: int) -> None:
    pass


@app.on_dev
async def story(app: App) -> None:
    for n in range(1_000_000):
        await hello.submit(n)
        await asyncio.sleep(0.02)
"""


def start(folder: Path, *arguments: str, errors: int) -> subprocess.Popen[bytes]:
    (folder / "quiet.py").write_text(QUIET)
    return subprocess.Popen(
        [COMMAND, *arguments, "--children", "1"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
    )


async def stop_reading(process: subprocess.Popen[bytes]) -> None:
    """Read until the program is at work, and no more."""
    while b" is ready" not in (line := await asyncio.to_thread(process.stdout.readline)):
        assert line
    process.stdout.close()


@pytest.mark.parametrize("command", [["dev"], ["worker", "-v"]])
async def test_when_nobody_reads_the_output_any_more_the_command_ends_in_peace(tmp_path, command):
    process = start(tmp_path, *command, "quiet:app", errors=subprocess.PIPE)
    try:
        await stop_reading(process)
        if "worker" in command:
            submit = [COMMAND, "submit", "hello", "n=1", "--force"]
            await asyncio.to_thread(subprocess.run, submit, cwd=tmp_path, check=True)
        _, errors = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()

    assert process.returncode == 1
    assert b"Error" not in errors


async def test_a_signal_stops_it_though_nobody_reads_its_output(tmp_path):
    process = start(tmp_path, "dev", "quiet:app", errors=subprocess.STDOUT)
    try:
        await stop_reading(process)
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, PATIENCE)
    finally:
        process.kill()
        process.wait()

    assert process.returncode in {0, 1}


# ── the console ──────────────────────────────────────────────────────────────────────────────

CONSOLE = re.compile(r"(http://127\.0\.0\.1:\d+)/#code=([0-9a-f]{40})")


class Console:
    """Calls the console's API as the console does: logged in with the code behind `#`."""

    def __init__(self, text: str) -> None:
        found = CONSOLE.search(text)
        assert found is not None, text
        self.address, self.code = urlsplit(found[1]), found[2]
        self.session: dict[str, str] = {}

    async def ask(self, method: str, path: str, *, token: str | None = "") -> tuple[int, bytes]:
        if token == "" and not self.session:
            await asyncio.to_thread(self.log_in)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return await asyncio.to_thread(
            self._ask, method, path, self.session if token == "" else headers
        )

    def log_in(self) -> int:
        asking = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=30)
        origin = f"http://{self.address.netloc}"
        headers = {"Content-Type": "application/json", "Origin": origin}
        asking.request("POST", "/v1/session", json.dumps({"code": self.code}), headers)
        response = asking.getresponse()
        body = json.loads(response.read())
        if response.status == 201:
            cookie = response.headers["Set-Cookie"].partition(";")[0]
            csrf = body["session"]["csrf"]
            self.session = {"Cookie": cookie, "X-CSRF-Token": csrf, "Origin": origin}
        asking.close()
        return response.status

    async def dev(self) -> dict:
        status, body = await self.ask("GET", "/v1/dev")
        assert status == 200, body
        return json.loads(body)

    async def until(self, condition) -> dict:
        async with asyncio.timeout(PATIENCE):
            while not condition(found := await self.dev()):
                pass
        return found

    def _ask(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        asking = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=30)
        try:
            asking.request(method, path, headers=headers)
            response = asking.getresponse()
            return response.status, response.read()
        finally:
            asking.close()


@pytest.mark.timeout(120)
async def test_the_console_shows_the_program_and_kills_its_children(dev, tmp_path):
    (tmp_path / "show.py").write_text(SHOW)
    show = dev("show:app", "--processes", "2", "--speed", "2")
    await show.shown("the console is at", "is ready")
    console = Console(show.text)

    assert (await console.ask("GET", "/", token=None))[0] == 200
    assert (await console.ask("GET", "/v1/jobs", token=None))[0] == 401
    assert (await console.ask("GET", "/v1/dev", token="0" * 40))[0] == 401
    assert (await console.ask("POST", "/v1/dev/kill-worker", token=None))[0] == 401

    found = await console.until(lambda dev: sum(c["running"] for c in dev["children"]) == 2)
    assert (found["program"], found["speed"]) == ("show:app", 2.0)
    assert (found["killed"], found["lost"], found["recovering"]) == (0, 0, False)

    status, body = await console.ask("POST", "/v1/dev/kill-worker")
    assert status == 200
    victim = json.loads(body)["pid"]
    assert victim in {child["pid"] for child in found["children"]}
    await show.shown(f"killed pid {victim} with -9", "are in safe hands again after")
    found = await console.until(lambda dev: dev["killed"] == 1 and not dev["recovering"])
    assert found["lost"] == 0
    assert found["recovered_seconds"] < PATIENCE
    assert victim not in {child["pid"] for child in found["children"]}

    show.process.send_signal(signal.SIGTERM)
    # Of two signals that come together a busy process sees one, and waits for its jobs.
    await show.shown("stopping: running jobs get 30 s")
    show.process.send_signal(signal.SIGTERM)
    assert await show.ended() == 0
    assert "Traceback" not in show.text


async def test_a_listener_does_not_keep_it_from_ending(dev, tmp_path):
    (tmp_path / "quiet.py").write_text(QUIET)
    quiet = dev("quiet:app", "--processes", "1")
    await quiet.shown("the console is at", "is ready")
    console = Console(quiet.text)
    listening = http.client.HTTPConnection(console.address.hostname, console.address.port)
    assert await asyncio.to_thread(console.log_in) == 201
    listening.request("GET", "/v1/events?topic=overview", headers=console.session)
    response = await asyncio.to_thread(listening.getresponse)
    assert response.status == 200
    quiet.process.send_signal(signal.SIGINT)
    assert await quiet.ended() == 0
    told = await asyncio.to_thread(response.read)
    assert b"event: overview" in told
    listening.close()


async def test_a_port_that_was_asked_for_has_to_be_free(dev, tmp_path):
    (tmp_path / "quiet.py").write_text(QUIET)
    quiet = dev("quiet:app", "--processes", "1", "--port", "0")
    await quiet.shown("the console is at")
    taken = Console(quiet.text).address.port
    other = dev("quiet:app", "--processes", "1", "--port", str(taken), "--url", "sqlite:///b.db")
    assert await other.ended() == 1
    assert f"127.0.0.1:{taken}" in other.text


async def test_it_does_without_a_console_if_told_so(dev, tmp_path):
    (tmp_path / "quiet.py").write_text(QUIET)
    quiet = dev("quiet:app", "--processes", "1", "--no-serve")
    await quiet.shown("is ready", "succeeded")
    assert "console is at" not in quiet.text


async def test_the_console_is_opened_without_showing_its_key_to_others(dev, tmp_path):
    (tmp_path / "quiet.py").write_text(QUIET)
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {tmp_path}/opened.part\n'
        f"mv {tmp_path}/opened.part {tmp_path}/opened\n"
    )
    browser.chmod(0o755)
    quiet = dev("quiet:app", "--processes", "1", "--open", BROWSER=f"{browser} %s")
    await quiet.shown("the console is at", "is ready")
    opened = (tmp_path / "opened").read_text().strip()
    assert opened.startswith("file:///")
    page = Path(urlsplit(opened).path)
    opened_at, printed = Console(page.read_text()), Console(quiet.text)
    assert opened_at.address == printed.address
    # Each link is good for one login, and for one alone.
    assert opened_at.code != printed.code
    tries = [await asyncio.to_thread(each.log_in) for each in (opened_at, printed, printed)]
    assert tries == [201, 201, 401]
    assert page.parent.stat().st_mode & 0o077 == 0
    quiet.process.send_signal(signal.SIGTERM)
    assert await quiet.ended() == 0
    assert not page.exists()


async def test_in_a_terminal_the_board_says_where_the_console_is(dev, tmp_path):
    (tmp_path / "quiet.py").write_text(QUIET)
    quiet = dev("quiet:app", "--processes", "1", terminal=True)
    await quiet.shown("console  http://127.0.0.1:", "#code=", "jobs/s")
    assert (await Console(quiet.text).ask("GET", "/v1/dev"))[0] == 200


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"starlette", "uvicorn"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from lamplighter.cli.main import main
main()
"""


async def test_without_the_extra_it_says_in_a_line_how_to_get_a_console(tmp_path):
    (tmp_path / "quiet.py").write_text(QUIET)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WITHOUT, "dev", "quiet:app", "--processes", "1"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            line = await process.stderr.readline()
            assert b"pip install '.[server]'" in line
            while b"succeeded" not in await process.stdout.readline():
                assert process.returncode is None
    finally:
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    assert process.returncode == 0
