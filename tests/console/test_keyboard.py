"""Everything can be done without a mouse, and whoever does so sees where they are."""

import pytest
from playwright.sync_api import expect

PLACES = {
    "o": "Overview",
    "j": "Jobs",
    "d": "Dead letters",
    "s": "Schedules",
    "w": "Workers",
    "q": "Queues",
    "t": "Tenants",
}
ACT_ON = "a[href], button, input, select, textarea, summary, [tabindex='0']"


def test_two_keys_lead_to_every_page(shared, look):
    page = look(shared, "#/jobs")
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    for key, name in PLACES.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        expect(page.get_by_role("link", name=name, exact=True)).to_have_attribute(
            "aria-current", "page"
        )


@pytest.mark.parametrize("name", PLACES.values())
def test_tab_reaches_all_that_can_be_acted_on_and_shows_where_it_is(shared, look, name):
    page = look(shared)
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(page.get_by_text("one moment…")).to_have_count(0)
    wanted = page.evaluate(
        """(selector) => {
            const seen = [...document.querySelectorAll(selector)].filter(
                (each) => !each.disabled && each.checkVisibility());
            seen.forEach((each, at) => each.dataset.at = at);
            document.activeElement.blur();
            return seen.length;
        }""",
        ACT_ON,
    )
    reached, unmarked = set(), []
    for _ in range(wanted + 5):
        page.keyboard.press("Tab")
        at, ring, what = page.evaluate(
            """() => { const on = document.activeElement; return [on.dataset.at ?? null,
                getComputedStyle(on).outlineStyle, on.outerHTML.slice(0, 120)]; }"""
        )
        if at is not None:
            reached.add(at)
            if ring == "none":
                unmarked.append(what)
    assert unmarked == []
    assert wanted > len(PLACES)
    missed = {str(at) for at in range(wanted)} - reached
    what = page.evaluate(
        "(missed) => missed.map((at) => document.querySelector(`[data-at='${at}']`)?.outerHTML)",
        sorted(missed),
    )
    # Rows of a live list may have been drawn anew meanwhile; they have lost their mark then.
    assert [each for each in what if each] == []


def test_a_job_is_found_opened_and_replayed_by_keyboard_alone(own, look):
    first, second = own.died(1)[0], own.died(1)[0]
    own.sign("mended")
    page = look(own)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name=f"job {first}")).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name=f"job {second}")).to_be_focused()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name=f"job {first}")).to_be_focused()
    page.keyboard.press("k")
    expect(page.get_by_role("link", name=f"job {second}")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Replay")).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Control+Enter")
    own.becomes("succeeded", second)
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert own.job(first)["status"] == "dead"


def test_rows_are_selected_and_changed_by_keyboard_alone(own, look):
    jobs = [own.submit("greet", {"name": "Ada"}, delay=3600) for _ in range(3)]
    page = look(own, "#/jobs")
    expect(page.get_by_role("link", name=f"job {jobs[0]}")).to_be_visible()
    for key in ("j", "x", "j", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_text("2 jobs selected")).to_be_visible()
    page.get_by_role("button", name="Hold", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("region", name="what became of the selection")).to_be_visible()
    status = [own.job(each)["status"] for each in reversed(jobs)]
    assert status == ["paused", "scheduled", "paused"]


def test_a_slash_leads_to_the_filter_and_escape_out_of_it(shared, look):
    page = look(shared, "#/dead")
    expect(page.get_by_label("Type")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Type")).to_be_focused()
    page.keyboard.type("gjx")
    expect(page.get_by_role("heading", level=1)).to_have_text("Dead letters")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Type")).not_to_be_focused()


def test_the_help_names_every_key_and_gives_the_focus_back(shared, look):
    page = look(shared, "#/jobs")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.get_by_role("link", name="Jobs", exact=True).focus()
    page.keyboard.press("?")
    help_dialog = page.get_by_role("dialog", name="Keyboard")
    for key, name in PLACES.items():
        row = help_dialog.locator(
            ".keys > div", has=page.get_by_text(f"go to {name.lower()}", exact=True)
        )
        expect(row.locator("dt")).to_have_text(f"g{key}")
    for what in ("next row", "row before", "select the row", "filter", "open the row"):
        expect(help_dialog.get_by_text(what, exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(help_dialog).to_have_count(0)
    expect(page.get_by_role("link", name="Jobs", exact=True)).to_be_focused()


def test_the_first_tab_skips_the_menu(shared, look):
    page = look(shared, "#/jobs")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    assert page.url.endswith("#/jobs")
