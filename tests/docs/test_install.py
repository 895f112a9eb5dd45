"""No shipped text says that a package index has Lamplighter: it is installed from a clone."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {
    ".css",
    ".html",
    ".js",
    ".json",
    ".md",
    ".py",
    ".rst",
    ".sh",
    ".toml",
    ".txt",
    ".yaml",
    ".yml",
}
SHIPPED = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "examples", "src")
FROM_INDEX = re.compile(
    r"\b(?:pip3?|pipx|uv|poetry|pdm|conda|uvx)\b(?:\s+(?:pip|tool|install|add|run))*"
    r"(?:\s+-\S+)*\s+['\"]?lamplighter\b(?!/)"
)


def shipped() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *SHIPPED],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.suffix in TEXTS and path.is_file()]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pip install lamplighter", True),
        ("python -m pip install -U 'lamplighter[postgres]'", True),
        ("uv tool install lamplighter", True),
        ("uvx lamplighter dev", True),
        ("pip install '.[server]'", False),
        ("pip install .", False),
        ("git clone … lamplighter && cd lamplighter", False),
    ],
)
def test_a_command_that_asks_an_index_is_known_from_others(text, found):
    assert bool(FROM_INDEX.search(text)) is found


def test_no_shipped_text_installs_it_from_an_index():
    paths = shipped()
    assert ROOT / "README.md" in paths
    found = [
        f"{path.relative_to(ROOT)}: {hit[0]}"
        for path in paths
        for hit in FROM_INDEX.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []
