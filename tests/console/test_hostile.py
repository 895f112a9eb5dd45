"""Whatever others write into names, arguments, results, errors, logs and reasons is only text."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.console.program import HOSTILE, HOSTILE_QUEUE

SCRIPT = "<script>alert('x')</script>"
IMAGE = "<img src=x onerror=alert('x')>"
LINK = "javascript:alert('x')"
BIDI = "invoice\u202egnp.exe\u2066\u200b"
CONTROLS = "bell\x07 escape\x1b[31m nearly null\x01 return\rdelete\x7f c1\x85"
LONG = "long " * 4000
WORST = f'{SCRIPT}\n{IMAGE}\n{LINK}\n{BIDI}\n{CONTROLS}\n"><svg onload=alert(1)>\n{{{{7*7}}}}'
TENANT = f"{SCRIPT}\u202e"[:40]
TAG = f"{IMAGE}{LINK}"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A service full of the worst."""
    from tests.console.site import site

    with site(tmp_path_factory.mktemp("hostile")) as made:
        options = {"tenant": TENANT, "tags": [TAG], "metadata": {SCRIPT: WORST}}
        made.ids = [
            made.submit(HOSTILE, {"text": text, "fail": fail}, **options)
            for text in (WORST, LONG)
            for fail in (True, False)
        ]
        held = made.submit(HOSTILE, {"text": WORST, "fail": False}, delay=3600, **options)
        made.ask("POST", f"/v1/jobs/{held}/hold", reason=f"{SCRIPT} {BIDI}")
        made.ids.append(held)
        for each in made.ids[:-1]:
            made.ended(each)
        for name, path in ((HOSTILE_QUEUE, "queues"), (TENANT, "tenants")):
            made.ask(
                "PUT", f"/v1/{path}/{quote(name, safe='')}", {"held": True}, reason=f"{IMAGE}{BIDI}"
            )
        made.schedule = f"nightly {SCRIPT}\u202e"
        made.ask(
            "POST",
            "/v1/schedules",
            {
                "id": made.schedule,
                "type": HOSTILE,
                "arguments": {"text": WORST, "fail": True},
                "cron": "30 2 * * *",
                "timezone": "Europe/Berlin",
                **options,
            },
        )
        yield made


PLACES = ["", "jobs", "dead", "schedules", "workers", "queues", "tenants"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("width", [1200, 360])
def test_no_page_believes_what_it_shows(hostile, look, place, width):
    page = look(hostile, f"#/{place}", width=width)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_text("one moment…")).to_have_count(0)
    page.keyboard.press("j")
    harmless(page)


def test_jobs_of_every_fate_show_the_worst_as_text(hostile, look):
    page = look(hostile)
    for job_id in hostile.ids:
        page.goto(f"{hostile.url}/#/jobs/{job_id}")
        expect(page.get_by_role("heading", level=1)).to_contain_text("<script>")
        expect(page.get_by_role("region", name="Arguments").locator("pre")).to_be_visible()
        for folded in page.locator("summary").all():
            folded.click()
        harmless(page)


def test_a_cause_of_death_shows_the_worst_as_text(hostile, look):
    page = look(hostile, "#/dead")
    page.locator("[data-row] a").first.click()
    expect(page.get_by_role("button", name="Replay", exact=True).first).to_be_visible()
    page.get_by_role("button", name="Replay all").click()
    expect(page.get_by_role("dialog")).to_contain_text("would run again")
    harmless(page)


def test_a_schedule_shows_the_worst_as_text(hostile, look):
    where = f"#/schedules/{quote(hostile.schedule, safe='')}?tenant={quote(TENANT, safe='')}"
    page = look(hostile, where)
    expect(page.get_by_label("summary")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_text("one moment…")).to_have_count(0)
    harmless(page)


@pytest.mark.parametrize("name", ["type", "queue", "tenant", "tag", "fingerprint"])
def test_filters_of_the_address_are_only_text(hostile, look, name):
    page = look(hostile, f"#/jobs?{name}={quote(SCRIPT + IMAGE)}")
    expect(page.get_by_text("No jobs match the filter.")).to_be_visible()
    harmless(page)


@pytest.mark.parametrize("path", [f"#/{quote(SCRIPT)}", "#/%E0%A4%A", "#//", "#/jobs/%2e%2e%2f"])
def test_addresses_are_only_text(hostile, look, path):
    page = look(hostile, path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    harmless(page)
    look.sins[-1].forgive("status of 404")


def test_what_cannot_be_seen_is_named(hostile, look):
    page = look(hostile, f"#/jobs/{hostile.ids[0]}")
    arguments = page.get_by_role("region", name="Error")
    for named in ("U+202E", "U+2066", "U+200B", "U+0007", "U+001B", "U+0001", "U+007F", "U+0085"):
        expect(arguments.locator(".odd", has_text=named).first).to_be_visible()
    shown = page.locator("main").inner_text()
    assert not {"\u202e", "\u2066", "\x07", "\x1b", "\x01"} & set(shown)


def test_long_text_is_cut_and_can_be_had_as_a_whole(hostile, look):
    page = look(hostile, f"#/jobs/{hostile.ids[3]}")
    panel = page.get_by_role("region", name="Arguments")
    expect(panel.get_by_role("button", name="show all")).to_be_visible()
    assert len(panel.locator("pre").inner_text()) < 5000
    panel.get_by_role("button", name="show all").click()
    assert len(panel.locator("pre").inner_text()) > len(LONG.strip())


def harmless(page) -> None:
    """Nothing that was written by others has become a part of the page."""
    found = page.evaluate(
        """() => ({
            parts: document.querySelectorAll(
                '#root script, #root img, #root iframe, #root [onload], #root [onerror],' +
                ' #root [onmouseover], #root b[onmouseover]').length,
            links: [...document.querySelectorAll('a[href]')]
                .map((link) => link.getAttribute('href'))
                .filter((href) => !href.startsWith('#')),
            wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        })"""
    )
    assert found == {"parts": 0, "links": [], "wide": 0}
