"""The recipe for a rolling restart, followed: code that does not start ends one worker at most."""

import os
import re
import subprocess
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "deploying.md"
SECTION = GUIDE.read_text(encoding="utf-8").partition("## Rolling restarts\n")[2]


@pytest.mark.parametrize(("code", "restarted"), [(0, ["1", "2", "3"]), (1, ["1"])])
def test_a_rolling_restart_ends_at_the_first_worker_that_does_not_start(tmp_path, code, restarted):
    systemctl = tmp_path / "systemctl"
    systemctl.write_text(f"#!/bin/sh\necho $* >> {tmp_path}/told\nexit {code}\n")
    systemctl.chmod(0o755)
    recipe = re.findall(r"^```sh\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)[0]
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}

    subprocess.run(["sh", "-c", recipe], env=environment, check=True, timeout=60)

    told = (tmp_path / "told").read_text().splitlines()
    assert told == [f"restart lamplighter-worker@{name}" for name in restarted]
