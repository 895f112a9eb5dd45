"""The programs of the guide do what the guide says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.server.test_serve import DEADLINE, serving

GUIDES = Path(__file__).parents[3] / "docs" / "guides"


def programs(name: str) -> list[str]:
    text = (GUIDES / name).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def address(tmp_path):
    """The worker and the service of the guide to the service."""
    (tmp_path / "shop.py").write_text(programs("http.md")[0])
    environment = {**os.environ, "LAMPLIGHTER_URL": "sqlite:///jobs.db"}
    with serving(tmp_path, "shop:app") as (_, url):
        worker = subprocess.Popen(
            [sys.executable, "-m", "lamplighter", "worker", "shop:app"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield url.geturl()
        finally:
            worker.terminate()
            worker.wait(DEADLINE)


def test_the_programs_print_what_the_guide_shows(address, tmp_path):
    shown = re.search(
        r"\$ python orders.py\n(.*?)\n```", (GUIDES / "http-client.md").read_text(encoding="utf-8")
    )[1]
    found = [each for each in programs("http-client.md") if "HttpApp(" in each]
    assert len(found) == 2
    for program in found:
        (tmp_path / "orders.py").write_text(program.replace("http://127.0.0.1:8080", address))
        ended = subprocess.run(
            [sys.executable, "orders.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.stdout.strip(), ended.stderr) == (shown, "")
