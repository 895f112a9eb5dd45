"""Files that change are noticed."""

import os
import sys
from types import ModuleType

import pytest

from lamplighter.cli.reloader import LOOK, Reloader, folders_of


class Watch:
    """A reloader, stepped by hand."""

    def __init__(self, *folders) -> None:
        self.told: list[list[str]] = []
        self._reloader = Reloader(folders, self.told.append)

    async def look(self) -> float:
        return await self._reloader.step()


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text("1")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "jobs.py").write_text("1")
    return tmp_path


async def test_changes_are_told_once_when_the_last_of_them_is_done(home):
    watch = Watch(home)
    assert await watch.look() >= LOOK
    (home / "shop.py").write_text("12")
    assert await watch.look() < LOOK
    (home / "pkg" / "jobs.py").write_text("12")
    await watch.look()
    assert watch.told == []
    assert await watch.look() >= LOOK
    await watch.look()
    assert watch.told == [["pkg/jobs.py", "shop.py"]]


async def test_new_and_deleted_files_are_changes(home):
    watch = Watch(home)
    await watch.look()
    (home / "new.py").write_text("")
    (home / "shop.py").unlink()
    await watch.look()
    await watch.look()
    assert watch.told == [["new.py", "shop.py"]]


async def test_a_file_written_anew_with_the_same_size_is_a_change(home):
    watch = Watch(home)
    await watch.look()
    before = (home / "shop.py").stat().st_mtime_ns
    (home / "shop.py").write_text("2")
    os.utime(home / "shop.py", ns=(before + 1, before + 1))
    await watch.look()
    await watch.look()
    assert watch.told == [["shop.py"]]


@pytest.mark.parametrize(
    "name", ["notes.txt", ".hidden/x.py", "node_modules/x.py", "__pycache__/x.py", "env/lib/x.py"]
)
async def test_what_is_not_the_programs_own_is_not_watched(home, name):
    (home / "env").mkdir()
    (home / "env" / "pyvenv.cfg").touch()
    watch = Watch(home)
    await watch.look()
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("1")
    await watch.look()
    await watch.look()
    assert watch.told == []


async def test_a_link_in_a_circle_ends(home):
    (home / "pkg" / "again").symlink_to(home)
    watch = Watch(home)
    await watch.look()
    (home / "shop.py").write_text("12")
    await watch.look()
    await watch.look()
    assert watch.told == [["shop.py"]]


def test_the_folder_of_a_package_elsewhere_is_watched_too(home, monkeypatch, tmp_path_factory):
    away = tmp_path_factory.mktemp("away")
    module = ModuleType("outside")
    module.__file__ = str(away / "outside" / "__init__.py")
    monkeypatch.setitem(sys.modules, "outside", module)
    assert folders_of("outside.jobs") == [home, away / "outside"]

    module.__file__ = str(home / "outside" / "__init__.py")
    assert folders_of("outside") == [home]
    assert folders_of("no_such_module") == [home]
