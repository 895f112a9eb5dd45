"""Clients that are made from the OpenAPI document fit the service, in their types and at work."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lamplighter.server import openapi
from lamplighter.server.routes import TABLE
from tests.console.site import command, service

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MAKER = ROOT / "build" / "clients" / "bin"
NODE = HERE / "node_modules" / ".bin"
PATIENCE = 60


def run(*words: object, **more: object) -> str:
    """Run a program that must end well; gives what it prints."""
    done = subprocess.run(
        list(map(str, words)),
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        **more,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def document(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_text(json.dumps(openapi.document(TABLE)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A service that asks for tokens; gives its address and one of these."""
    folder = tmp_path_factory.mktemp("served")
    command(folder, "migrate")
    words = ("token", "create", "--name", "client", "--scope", "operator", "--json")
    token = json.loads(command(folder, *words))["token"]
    with service(folder, "--require-token", key=token) as made:
        yield made.url, token


def check(said: str) -> None:
    told = json.loads(said.splitlines()[-1])
    assert (told["same"], told["status"], told["created"]) == (True, "scheduled", True)
    assert told["id"] in told["listed"]
    assert told["arguments"] == {"name": "Ada"}
    assert (told["patched"], told["refused"]) == (5, "precondition-failed")


def test_a_client_in_typescript_fits_in_its_types_and_at_work(document, served, tmp_path):
    for name in ("use.ts", "globals.d.ts", "tsconfig.json", "package.json"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")
    run(NODE / "openapi-typescript", document, "-o", tmp_path / "schema.d.ts")
    run(NODE / "tsc", "-p", tmp_path)
    check(run("node", tmp_path / "use.js", *served))


WRONG = (
    "{ arguments: {} }",
    "{ type: 5 }",
    '{ type: "a", priority: "soon" }',
    '{ type: "a", unknown: 1 }',
)


def test_a_client_in_typescript_is_told_of_what_does_not_fit(document, tmp_path):
    for name in ("globals.d.ts", "tsconfig.json", "package.json"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")
    lines = (
        f'export const wrong{number}: components["schemas"]["Submission"] = {each};'
        for number, each in enumerate(WRONG)
    )
    text = 'import type { components } from "./schema.js";\n' + "\n".join(lines) + "\n"
    (tmp_path / "use.ts").write_text(text, encoding="utf-8")
    run(NODE / "openapi-typescript", document, "-o", tmp_path / "schema.d.ts")
    done = subprocess.run(
        [str(NODE / "tsc"), "--noEmit", "-p", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("use.ts(")]
    found = {line.partition("(")[2].partition(",")[0] for line in told}
    assert found == {str(number + 2) for number in range(len(WRONG))}, done.stdout


def test_a_client_in_python_fits_at_work(document, served, tmp_path):
    usual = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    env = {**usual, "PATH": f"{MAKER}{os.pathsep}{os.environ['PATH']}"}
    target = tmp_path / "lamplighter_client"
    make = MAKER / "openapi-python-client"
    run(make, "generate", "--path", document, "--meta", "none", "--output-path", target, env=env)
    env["PYTHONPATH"] = str(tmp_path)
    check(run(MAKER / "python", HERE / "use.py", *served, env=env))
