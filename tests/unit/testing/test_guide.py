"""Every example of the guide works: its blocks are written to files and run as a project."""

import re
import subprocess
import sys
from pathlib import Path

from tests.unit.testing.test_plugin import ASYNCIO, plugin

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "testing.md"


def blocks() -> dict[str, str]:
    """Each Python block begins with the name of its file."""
    found = re.findall(
        r"^```python\n# (\S+\.py)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    return dict(found)


def test_every_python_block_names_its_file() -> None:
    assert len(blocks()) == GUIDE.read_text().count("```python")


def test_the_examples_pass(tmp_path) -> None:
    for name, code in blocks().items():
        (tmp_path / name).write_text(code)
    settings = ["[pytest]", *ASYNCIO, "filterwarnings = error", "lamplighter_app = shop:app"]
    (tmp_path / "pytest.ini").write_text("\n".join(settings))

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    expected = sum(code.count("\nasync def test_") for code in blocks().values())
    expected += sum(code.count("\ndef test_") for code in blocks().values())
    assert f"{expected} passed" in done.stdout
    assert not (tmp_path / "shop.db").exists()
