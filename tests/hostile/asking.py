"""Every declared route, asked with what its description allows and with what it does not."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lamplighter.model.access import Scope
from tests.hostile.scene import OTHER, OWN, ROOT, SCHEDULES, Caller, Site, site

PROGRAM = ROOT / "build" / "hostile" / "bin" / "st"
ALL = tuple(scope.value for scope in Scope)

CALLERS = (
    Caller(name="anybody", asked=False),
    Caller(name="nobody"),
    Caller(name="all scopes", scopes=ALL),
    Caller(name="all scopes of a tenant", scopes=ALL, tenant=OWN),
    *(Caller(name=scope, scopes=(scope,)) for scope in ALL),
)
SHARES = {"anybody": 3, "all scopes": 2, "all scopes of a tenant": 2}
"""Parts of the time for callers who can do more than the others."""
HANGS = 600
"""Seconds after which a caller with a number of requests is given up."""
QUICK = CALLERS[:4]
"""Who asks when there is little time; what single scopes allow is tested elsewhere."""

_SETTINGS = """
max-stream-events = 1
request-timeout = 20.0
continue-on-failure = true
hooks = "tests.hostile.hooks"

# The document does not say every rule: which names there are, or that of two fields only one may be
# given. What is refused although it fits the document is refused with a reason.
[checks.positive_data_acceptance]
enabled = false

# Refused before its fields are read: with another version in mind (412), or too long as a whole
# (413, 414, 431).
[checks.negative_data_rejection]
expected-statuses = [
    "400", "401", "403", "404", "405", "406", "409", "412", "413", "414", "415", "422", "428",
    "429", "431", "5xx",
]

# `DELETE` cancels a job, which then stays for all to see.
[checks.use_after_free]
enabled = false

[dictionaries]
jobs = {{ values = {jobs} }}
schedules = {{ values = {schedules} }}
queues = {{ values = ["payments", "default"] }}
tenants = {{ values = {tenants} }}

# A stream is described as the text that it is, and not by each event alone.
[[operations]]
include-path = "/v1/events"
checks = {{ response_schema_conformance = {{ enabled = false }} }}

[[operations]]
include-path-regex = "^/v1/jobs/"
parameters = {{ "path.id" = {{ dictionary = "jobs", probability = 0.8 }} }}

[[operations]]
include-path-regex = "^/v1/schedules/"
parameters = {{ "path.id" = {{ dictionary = "schedules", probability = 0.8 }} }}

[[operations]]
include-path-regex = "^/v1/queues/"
parameters = {{ "path.name" = {{ dictionary = "queues", probability = 0.5 }} }}

[[operations]]
include-path-regex = "^/v1/tenants/"
parameters = {{ "path.name" = {{ dictionary = "tenants", probability = 0.5 }} }}
"""

# What is sent depends on the seed alone, not on what was answered before.
_FIXED = """
[phases.examples]
extra-data-sources = { responses = false }

[phases.coverage]
extra-data-sources = { responses = false }

[phases.fuzzing]
extra-data-sources = { responses = false }
error-feedback = { enabled = false }

[phases.stateful]
enabled = false
"""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much one caller asks: for some time, or a number of requests of each route."""

    seconds: int
    examples: int | None = None
    """Beside those at the limits of what is allowed; if given, the time does not matter."""

    @property
    def patience(self) -> int:
        """After so many seconds something hangs."""
        return self.seconds + 120 if self.examples is None else HANGS


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What came of the requests of one caller."""

    caller: str
    cases: str
    fault: str
    """All that was found; empty: every answer was one that the document describes."""


def ask(folder: Path, caller: Caller, *, seed: int, effort: Effort) -> Verdict:
    """Let one caller ask everything so much, and say what was wrong with the answers."""
    with site(folder, caller, LAMPLIGHTER_HTTP_UNKNOWN_TYPES="1") as found:
        done = _schemathesis(folder, found, seed=seed, effort=effort)
        log = found.log.read_text()
    fault = "" if done.returncode == 0 else done.stdout + done.stderr
    if "Traceback" in log:
        fault += f"\nthe log of the service:\n{log}"
    told = [line.strip() for line in done.stdout.splitlines() if " generated" in line]
    if not told:
        fault += f"\nnothing was asked:\n{done.stdout}"
    return Verdict(caller=caller.name, cases=told[-1] if told else "nothing", fault=fault)


def _schemathesis(
    folder: Path, found: Site, *, seed: int, effort: Effort
) -> subprocess.CompletedProcess[str]:
    settings = folder / "schemathesis.toml"
    written = _SETTINGS.format(
        jobs=json.dumps(found.jobs),
        schedules=json.dumps(SCHEDULES),
        tenants=json.dumps([OWN, OTHER]),
    )
    settings.write_text(written if effort.examples is None else written + _FIXED)
    command = [PROGRAM, "--config-file", settings, "run", f"{found.url}/v1/openapi.json"]
    command += ["--seed", seed, "--warnings", "off"]
    if effort.examples is None:
        command += ["--max-time", effort.seconds]
    else:
        command += ["--max-examples", effort.examples]
    if found.token is not None:
        command += ["--header", f"Authorization: Bearer {found.token}"]
    given = {"PYTHONPATH": str(ROOT), "LAMPLIGHTER_HOSTILE_JOB": found.jobs[0], "NO_COLOR": "1"}
    return subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=False,
        timeout=effort.patience,
    )
