"""Workers: they appear, are seen at work, fall silent and vanish while one looks."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import expect

from tests.console.site import PATIENCE, PROGRAM, ROOT, Site, until

SILENCE = 60_000
"""Milliseconds in which a silent worker is noticed for certain."""


@contextmanager
def another_worker(site: Site) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker beside the first; it has joined when the block begins."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lamplighter", "worker", PROGRAM, "--children", "1"],
        cwd=ROOT,
        env={
            **os.environ,
            "LAMPLIGHTER_URL": f"sqlite:///{site.signals}/jobs.db",
            "CONSOLE_SIGNALS": str(site.signals),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: process.pid in pids(site))
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)


def pids(site: Site) -> set[int]:
    return {worker["pid"] for worker in site.ask("GET", "/v1/workers")["workers"]}


def test_workers_appear_and_vanish_while_one_looks(own, look):
    page = look(own, "#/workers")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("healthy")
    with another_worker(own) as process:
        expect(rows).to_have_count(2)
        expect(page.get_by_role("status").filter(has_text="2 workers")).to_be_visible()
        expect(rows.filter(has_text=str(process.pid))).to_contain_text("reports")
    expect(rows).to_have_count(1)
    expect(page.get_by_role("status").filter(has_text="1 worker;")).to_be_visible()


def test_what_is_at_work_is_counted_beside_the_slots(own, look):
    page = look(own, "#/workers")
    row = page.locator("tbody tr")
    slots = own.ask("GET", "/v1/workers")["workers"][0]["slots"]
    expect(row).to_contain_text(f"0 / {slots}")
    own.becomes("running", own.submit("report"), own.submit("report"))
    expect(row).to_contain_text(f"2 / {slots}")
    own.sign("release")
    expect(row).to_contain_text(f"0 / {slots}")


def test_a_worker_that_was_killed_falls_under_suspicion(own, look):
    page = look(own, "#/workers")
    rows = page.locator("tbody tr")
    with another_worker(own) as process:
        row = rows.filter(has_text=str(process.pid))
        expect(row).to_contain_text("healthy")
        process.kill()
        expect(row).to_contain_text("suspect: silent for", timeout=SILENCE)
        expect(rows.filter(has_text="healthy")).to_have_count(1)


def test_the_signs_of_life_grow_old_before_ones_eyes(own, look):
    page = look(own, "#/workers")
    joined = page.locator("tbody tr td:nth-child(7)")
    first = joined.inner_text()
    expect(joined).not_to_have_text(first)
    expect(joined).to_contain_text("ago")
