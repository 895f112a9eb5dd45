"""How a store is named where everybody may read it."""

from pathlib import Path

import pytest

from lamplighter.connect import store_name


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hidden@h/db?password=hidden",
        "redis://:hidden@h:1/0",
        "redis://h?password=hidden&db=1",
        "unix:///tmp/s?password=hidden",
        "sqlite://u:hidden@h/jobs.db",
        "sqlite:///jobs.db?password=hidden",
        "other://u:hidden@h",
    ],
)
def test_no_password_is_shown(url):
    assert "hidden" not in store_name(url)


def test_a_file_is_named_by_its_whole_path():
    assert store_name("sqlite:///jobs.db") == f"sqlite:///{Path.cwd()}/jobs.db"


def test_nobody_has_to_follow_the_path(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert store_name("sqlite:///../jobs.db") == f"sqlite:///{tmp_path.resolve()}/jobs.db"
