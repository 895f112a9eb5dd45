"""The fixtures for pytest, in a project of their own."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

APP = """
from lamplighter import App

app = App("sqlite:///production.db")


@app.job
async def greet(name: str) -> str:
    return f"hello {name}"
"""

TESTS = """
from jobs import greet


async def test_async(lamplighter_store, lamplighter_clock):
    await greet.options(delay=3600).submit("you")
    lamplighter_clock.advance(hours=1)
    assert (await lamplighter_store.drain()).succeeded == 1


def test_sync(lamplighter_store_sync):
    greet.submit_sync("you")
    lamplighter_store_sync.assert_submitted(greet, name="you", count=1)
"""

OWN_FIXTURE = """
import pytest
import jobs


@pytest.fixture(scope="session")
def lamplighter_app():
    return jobs.app
"""

OTHERS = ("anyio", "hypothesispytest", "randomly", "timeout", "valkey", "xdist")
"""Plugins that happen to be installed here; loading them is most of what such a run takes."""
ASYNCIO = ["asyncio_mode = auto", "asyncio_default_fixture_loop_scope = function"]


def run_pytest(folder: Path, *, app: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "jobs.py").write_text(APP)
    (folder / "test_jobs.py").write_text(TESTS)
    settings = ["[pytest]", *ASYNCIO, "filterwarnings = error"]
    settings += [f"lamplighter_app = {app}"] if app else []
    (folder / "pytest.ini").write_text("\n".join(settings))
    without = [word for name in ("cacheprovider", *OTHERS) for word in ("-p", f"no:{name}")]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *without, *plugin()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


def plugin() -> list[str]:
    """Name the plugin where the installed package does not announce it."""
    announced = importlib.metadata.entry_points(group="pytest11")
    module = "lamplighter.testing.plugin"
    return [] if any(point.value == module for point in announced) else ["-p", module]


@pytest.mark.parametrize("way", ["ini", "fixture"])
def test_the_fixtures_give_a_store_and_its_clock(tmp_path, way) -> None:
    if way == "fixture":
        (tmp_path / "conftest.py").write_text(OWN_FIXTURE)

    done = run_pytest(tmp_path, app="jobs:app" if way == "ini" else "")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert not (tmp_path / "production.db").exists()


def test_an_app_that_nobody_names_is_asked_for(tmp_path) -> None:
    done = run_pytest(tmp_path)

    assert done.returncode == 1
    assert "pytest does not know which app to test" in done.stdout
    assert 'set lamplighter_app = "module:app"' in done.stdout


def test_what_is_no_app_is_refused(tmp_path) -> None:
    done = run_pytest(tmp_path, app="jobs:greet")

    assert done.returncode == 1
    assert "`jobs:greet` is of type `AsyncJob`, not an App" in done.stdout
