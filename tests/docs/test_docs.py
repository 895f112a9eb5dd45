"""The documentation names everything there is, and nothing that is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lamplighter
from lamplighter.config import Settings
from lamplighter.model.errors import every_error
from lamplighter.observability import events

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_every_error_code_has_a_heading_and_every_heading_a_code() -> None:
    headings = re.findall(r"^## (\S+)$", page("reference/errors.md"), re.MULTILINE)
    codes = [cls.code for cls in every_error() if "code" in vars(cls)]
    assert sorted(headings) == sorted(codes)
    assert len(set(codes)) == len(codes)


def test_every_setting_is_documented() -> None:
    text = page("reference/settings.md")
    for name in Settings.__slots__:
        assert f"| `{name}` |" in text


def test_every_event_constant_is_described() -> None:
    names = {
        value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)
    }
    assert names == set(events.EVENTS)


def test_the_public_names_are_sorted_and_exist() -> None:
    assert lamplighter.__all__ == sorted(lamplighter.__all__)
    for name in lamplighter.__all__:
        assert hasattr(lamplighter, name)


@pytest.mark.parametrize(
    "path",
    [
        p
        for p in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
        if "0000-template" not in p.name
    ],
    ids=lambda p: p.name,
)
def test_every_link_inside_the_docs_leads_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_files_named_in_the_internals_pages_exist() -> None:
    source = ROOT / "src" / "lamplighter"
    for text in (page("internals/life-of-a-job.md"), page("internals/sqlite.md")):
        for name in re.findall(r"`([a-z_/]+\.(?:py|sql))`", text):
            found = [*source.rglob(Path(name).name)]
            assert any(str(f).endswith(name) for f in found), name
