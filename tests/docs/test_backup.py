"""The guide to SQLite, followed: a backup is taken as it says, and restored as it says."""

import asyncio
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lamplighter import App, Status, UnknownJob

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "sqlite.md"
_, HEADING, REST = GUIDE.read_text(encoding="utf-8").partition("## Backup and restore\n")
SECTION = REST.partition("\n## ")[0]


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    return found


def here(text: str, folder: Path) -> str:
    """Return the text with a folder of ours in place of those it names."""
    told = text.replace("/srv/shop", str(folder / "shop")).replace(
        "/backup", str(folder / "backup")
    )
    assert told.count(str(folder)) == text.count("/srv/shop") + text.count("/backup") >= 2
    return told


def follow(language: str, folder: Path) -> None:
    if language == "sh" and shutil.which("sqlite3") is None:
        pytest.skip("the program sqlite3 is not installed")
    program = ["sh", "-ec"] if language == "sh" else [sys.executable, "-c"]
    subprocess.run([*program, here(block(language), folder)], check=True, timeout=60)


def submit(app: App) -> str:
    async def work() -> str:
        async with app:
            return (await app.submit("charge", {"order": "A-1"}, delay=3600)).id

    return asyncio.run(work())


def status(app: App, job_id: str) -> Status:
    async def work() -> Status:
        async with app:
            return (await app.jobs.get(job_id)).status

    return asyncio.run(work())


@pytest.mark.parametrize("language", ["python", "sh"])
def test_a_backup_is_taken_and_restored_as_the_guide_says(tmp_path, language):
    assert HEADING
    shop, backup = tmp_path / "shop", tmp_path / "backup" / "jobs.db"
    for folder in (shop, backup.parent):
        folder.mkdir()
    app = App(f"sqlite:///{shop}/jobs.db")
    before = submit(app)

    async def while_it_runs() -> str:
        async with app:
            handle = await app.submit("charge", {"order": "A-2"}, delay=3600)
            await asyncio.to_thread(follow, language, tmp_path)
            return handle.id

    open_meanwhile = asyncio.run(while_it_runs())
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    lost = submit(app)

    away = tmp_path / "away"
    away.mkdir()
    for old in shop.glob("jobs.db*"):
        old.rename(away / old.name)
    shutil.copy2(backup, shop / "jobs.db")
    doctor = [sys.executable, "-m", "lamplighter", "doctor", "--url", f"sqlite:///{shop}/jobs.db"]
    checked = subprocess.run(doctor, capture_output=True, check=False, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr

    assert status(app, before) is Status.SCHEDULED
    assert status(app, open_meanwhile) is Status.SCHEDULED
    with pytest.raises(UnknownJob):
        status(app, lost)
