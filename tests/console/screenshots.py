"""Draws the pictures of the console that the docs show: `make screenshots`.

A shop at work, as anybody sees it who has run it for some minutes.
"""

import contextlib
import json
import math
import shutil
import socket
import sqlite3
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from lamplighter import runtime
from lamplighter.model.activity import LAGS, MINUTE_MS, Tally, minute_of
from tests.console.site import ROOT, Site, site

IMAGES = ROOT / "docs" / "images"
MINUTES = 65
LARGEST = 200_000
"""Bytes of a picture at most."""
HERE = f"{socket.gethostname()[:24]}-{runtime.boot_id()}"
"""How the names of workers on this machine begin; the pictures show another name."""


def furnish(made: Site) -> str:
    """Give the service a day's work; tells the job that is still running."""
    remember(made.signals / "jobs.db")
    lost = [made.submit("deliver", {"address": f"{at} Gas Lane"}) for at in range(1, 4)]
    made.died(7)
    made.died(2, tenant="harbour-tours")
    made.becomes("dead", *lost)
    body = [
        {
            "type": "greet",
            "arguments": {"name": name},
            "tenant": tenant,
            "delay": delay,
            "tags": ["welcome"],
        }
        for tenant in ("grand-hotel", "city-library", "corner-bakery")
        for name in ("Ada", "Grace", "Linus", "Margaret")
        for delay in (0, 0, 3600)
    ]
    made.ask("POST", "/v1/jobs:batch", body)
    made.ask(
        "POST",
        "/v1/schedules",
        {
            "id": "nightly-report",
            "type": "report",
            "arguments": {"steps": 30},
            "cron": "30 2 * * *",
            "timezone": "Europe/Berlin",
        },
    )
    running = made.submit("report", {"steps": 12}, tags=["monthly"], tenant="grand-hotel")
    made.becomes("running", running)
    return running


def remember(store: Path) -> None:
    """Let the store remember an hour, instead of waiting for one."""
    last = minute_of(runtime.now_ms())
    rows = [
        (last - ago * MINUTE_MS, json.dumps(minute(ago).numbers)) for ago in range(1, MINUTES + 1)
    ]
    with contextlib.closing(sqlite3.connect(store, timeout=30)) as connection, connection:
        connection.executemany("INSERT OR REPLACE INTO activity VALUES (?, ?)", rows)


def minute(ago: int) -> Tally:
    """What a shop does in a minute: it has its waves, and one bad moment."""
    done = round(900 + 420 * math.sin(ago / 7) + 130 * math.sin(ago * 1.7))
    bad = 260 if 21 <= ago <= 25 else 14 + ago % 9
    lags = [0] * LAGS
    for place, share in enumerate((0.55, 0.3, 0.1, 0.03, 0.02)):
        lags[place + (2 if 21 <= ago <= 26 else 0)] = round(done * share)
    return Tally(
        started=done + bad, succeeded=done, retried=bad, failed=bad // 12, lags=tuple(lags)
    )


def draw(page: Page, made: Site, place: str, name: str) -> None:
    """Draw one page, when it is complete."""
    page.goto(f"{made.url}/#/{place}")
    page.get_by_role("heading", level=1).wait_for()
    expect(page.get_by_text("one moment…")).to_have_count(0)
    expect(page.get_by_text("connecting")).to_have_count(0)
    assert HERE not in page.inner_text("body"), f"{name} names this machine"
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path)
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size:,} bytes")
    assert size <= LARGEST, f"{path} is too large"


def elsewhere(route: Route) -> None:
    """Answer with the attempts as if they were made on another machine."""
    answer = route.fetch()
    route.fulfill(response=answer, body=answer.text().replace(HERE, "shop-1-5c1d0a2e"))


def main() -> None:
    """Draw all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, site(Path(folder)) as made:
        running = furnish(made)
        with sync_playwright() as playwright:
            found = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
            draw_all(browser, made, running)
            browser.close()


def draw_all(browser: Browser, made: Site, running: str) -> None:
    """Draw each page in the theme that shows it best."""
    for scheme, width, places in (
        (
            "dark",
            1280,
            {"": "overview", "dead": "dead-letters", "schedules/nightly-report": "schedule"},
        ),
        ("light", 1280, {f"jobs/{running}": "job", "jobs?status=scheduled": "jobs"}),
        ("dark", 390, {"": "phone"}),
    ):
        page = browser.new_context(
            viewport={"width": width, "height": 720}, color_scheme=scheme, reduced_motion="reduce"
        ).new_page()
        page.route("**/attempts", elsewhere)
        for place, name in places.items():
            draw(page, made, place, f"console-{name}")


if __name__ == "__main__":
    main()
