"""A real service and a real worker on a store of their own, and hands to give them work."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from lamplighter import runtime

ROOT = Path(__file__).parents[2]
PROGRAM = "tests.console.program:app"
PATIENCE = 30.0
ENDED = {"succeeded", "dead", "cancelled", "expired"}


class Site:
    """The service, spoken to as any program would."""

    def __init__(self, url: str, folder: Path, key: str | None = None) -> None:
        self.url = url
        self.signals = folder
        self.key = key

    def ask(self, method: str, path: str, body: object = None, **query: Any) -> Any:
        """Send a request and give the answer, which must be a good one."""
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE)
        headers = {"Content-Type": "application/json"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        target = f"{path}?{urlencode(query, doseq=True)}" if query else path
        try:
            connection.request(method, target, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        assert response.status < 300, answer
        return answer

    def submit(self, type: str, arguments: dict[str, Any] | None = None, **options: Any) -> str:
        body = {"type": type, "arguments": arguments or {}, **options}
        return self.ask("POST", "/v1/jobs", body)["id"]

    def job(self, job_id: str) -> dict[str, Any]:
        return self.ask("GET", f"/v1/jobs/{quote(job_id)}")

    def ended(self, job_id: str) -> str:
        """Wait until a job has ended; gives its status."""
        until(lambda: self.job(job_id)["status"] in ENDED)
        return self.job(job_id)["status"]

    def becomes(self, status: str, *job_ids: str) -> None:
        """Wait until jobs have this status."""
        until(lambda: all(self.job(each)["status"] == status for each in job_ids))

    def sign(self, name: str) -> None:
        """Tell the handlers something."""
        (self.signals / name).touch()

    def died(self, count: int, **options: Any) -> list[str]:
        """Let so many jobs fail for good."""
        (self.signals / "mended").unlink(missing_ok=True)
        ids = [self.submit("charge", {"order": f"o-{at}"}, **options) for at in range(count)]
        assert {self.ended(each) for each in ids} == {"dead"}
        return ids


def until(condition: Callable[[], object]) -> None:
    """Look again and again until it is so."""
    end = runtime.monotonic() + PATIENCE
    while not condition():
        assert runtime.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@contextmanager
def site(folder: Path, *arguments: str, key: str | None = None) -> Iterator[Site]:
    """Start a service and a worker; both end with the block."""
    with ExitStack() as stack:
        made = stack.enter_context(service(folder, *arguments, key=key))
        stack.enter_context(_process(folder, "", "worker", PROGRAM, "--children", "1"))
        until(lambda: made.ask("GET", "/v1/workers")["workers"])
        yield made
        made.sign("release")


@contextmanager
def service(folder: Path, *arguments: str, key: str | None = None) -> Iterator[Site]:
    """Start a service that has no worker; it ends with the block."""
    words = ("serve", PROGRAM, "--port", "0", "--json", *arguments)
    with _process(folder, '"url"', *words) as line:
        yield Site(json.loads(line)["url"], folder, key)


@contextmanager
def stage(folder: Path) -> Iterator[tuple[Site, str]]:
    """Run the program as its developer does; also gives the address of the console."""
    words = ("dev", PROGRAM, "--port", "0", "--children", "2")
    with _process(folder, "the console is at", *words) as line:
        address = line.split()[-1]
        url = address.partition("/#code=")[0]
        # The link is for the browser; programs have tokens of the store.
        printed = command(folder, "token", "create", "--name", "t", "--scope", "admin", "--json")
        made = Site(url, folder, json.loads(printed)["token"])
        yield made, address
        made.sign("release")


def command(folder: Path, *arguments: str) -> str:
    """Do something as an operator does, and give what it prints."""
    url = f"sqlite:///{folder}/jobs.db"
    whole = [sys.executable, "-m", "lamplighter", *arguments, "--url", url]
    return subprocess.run(whole, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@contextmanager
def _process(folder: Path, sign: str, *arguments: str) -> Iterator[str]:
    """Run a command until the block ends; gives the first line it prints with the sign in it."""
    env = {
        **os.environ,
        "LAMPLIGHTER_URL": f"sqlite:///{folder}/jobs.db",
        "CONSOLE_SIGNALS": str(folder),
    }
    command = [sys.executable, "-m", "lamplighter", *arguments]
    printed = folder / f"{arguments[0]}.log"
    with printed.open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)

    def told() -> list[str]:
        assert process.poll() is None, printed.read_text()
        return [line for line in printed.read_text().splitlines(keepends=True) if sign in line]

    try:
        if sign:
            until(lambda: any(line.endswith("\n") for line in told()))
        yield told()[0] if sign else ""
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
