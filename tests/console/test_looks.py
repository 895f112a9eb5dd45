"""It can be read: in both themes, on a phone, and by those who do not see colours well."""

import itertools

import pytest
from playwright.sync_api import expect

PLACES = ["", "jobs", "dead", "schedules", "workers", "queues", "tenants"]
WORDS = ["ink", "dim", "accent", "good", "bad", "warn", "next", "later", "still", "lit"]
GROUNDS = ["ground", "panel", "raised"]
READABLE = 4.5


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    """A service with something on every page."""
    from tests.console.site import site

    with site(tmp_path_factory.mktemp("looks")) as made:
        made.died(2)
        made.job_id = made.submit("report", {"steps": 12}, tags=["monthly"])
        made.becomes("running", made.job_id)
        made.ask(
            "POST",
            "/v1/schedules",
            {"id": "nightly", "type": "greet", "arguments": {"name": "Ada"}, "cron": "30 2 * * *"},
        )
        yield made


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("width", [1440, 768, 360])
def test_no_page_is_wider_than_the_screen(furnished, look, scheme, width):
    page = look(furnished, width=width, color_scheme=scheme)
    for place in [*PLACES, f"jobs/{furnished.job_id}", "schedules/nightly"]:
        page.goto(f"{furnished.url}/#/{place}")
        expect(page.get_by_text("one moment…")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, place
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, place
        page.keyboard.press("Escape")


@pytest.mark.parametrize("width", [1280, 1440])
def test_no_id_and_no_word_of_a_list_is_broken(tmp_path, look, width):
    from tests.console.site import service

    long = {"queue": "a-queue-with-a-long-name", "tenant": "a-customer-with-a-long-name"}
    with service(tmp_path) as made:
        for options in ({}, long):
            made.submit("greet", {"name": "Ada"}, delay=3600, **options)
            made.submit("greet", {"name": "Ada"}, **options)
        page = look(made, "#/jobs", width=width)
        expect(page.locator("tbody tr")).to_have_count(4)
        broken = page.evaluate(
            """() => [...document.querySelectorAll('td .name, td .badge, td time, td .brief')]
                .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height
                    > 1.7 * parseFloat(getComputedStyle(each).fontSize))
                .map((each) => each.textContent)"""
        )
        assert broken == []
        ids = "[...document.querySelectorAll('td a .if-wide .name')]"
        assert page.evaluate(f"{ids}.filter((each) => each.scrollWidth > each.clientWidth)") == []
        hidden = "(box) => box.scrollWidth - box.clientWidth"
        assert page.locator("div.table").evaluate(hidden) == 0


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_words_stand_out_from_what_is_behind_them(furnished, look, scheme):
    page = look(furnished, color_scheme=scheme)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    colours = page.evaluate(
        """(names) => {
            const probe = document.body.appendChild(document.createElement('i'));
            const found = names.map((name) => {
                probe.className = '';
                probe.style.color = `var(--${name})`;
                return getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
            });
            probe.remove();
            return found;
        }""",
        [*WORDS, *GROUNDS, "on-accent", "accent-ground"],
    )
    known = dict(zip([*WORDS, *GROUNDS, "on-accent", "accent-ground"], colours, strict=True))
    pairs = [*itertools.product(WORDS, GROUNDS), ("on-accent", "accent"), ("ink", "accent-ground")]
    pale = {
        pair: round(ratio, 2)
        for pair in pairs
        if (ratio := contrast(known[pair[0]], known[pair[1]])) < READABLE
    }
    assert pale == {}


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_fields_stand_out_from_what_is_around_them(furnished, look, scheme):
    page = look(furnished, color_scheme=scheme)
    faint = {}
    for place in ("jobs", "dead", "schedules", "schedules?new=1", "queues"):
        page.goto(f"{furnished.url}/#/{place}")
        expect(page.get_by_text("one moment…")).to_have_count(0)
        if place == "queues":
            page.get_by_role("button", name="Hold", exact=True).first.click()
            expect(page.get_by_role("dialog")).to_be_visible()
        found = page.evaluate(
            """() => [...document.querySelectorAll(
                    "input:not([type=checkbox]), select, textarea")]
                .filter((each) => each.checkVisibility()).map((each) => {
                    const colour = (value) => value.match(/[\\d.]+/g).map(Number);
                    const own = getComputedStyle(each);
                    const around = [];
                    for (let at = each; at; at = at.parentElement) {
                        const ground = colour(getComputedStyle(at).backgroundColor);
                        if (ground.length === 3 || ground[3] === 1) around.push(ground.slice(0, 3));
                    }
                    return [colour(own.borderTopColor).slice(0, 3), around.slice(0, 2)];
                })"""
        )
        assert found
        for border, grounds in found:
            worst = min(contrast(border, ground) for ground in grounds)
            if worst < 3:
                faint[place] = round(worst, 2)
    assert faint == {}


@pytest.mark.parametrize("width", [1440, 1100, 900, 760, 360])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns"])
def test_facts_keep_to_their_place_in_every_zone(furnished, look, width, zone):
    page = look(furnished, width=width, timezone_id=zone)
    for place in ("schedules/nightly", f"jobs/{furnished.job_id}"):
        page.goto(f"{furnished.url}/#/{place}")
        expect(page.locator(".facts").first).to_be_visible()
        wide = page.evaluate(
            """() => [...document.querySelectorAll('.facts > div')].filter((each) => {
                const range = document.createRange();
                range.selectNodeContents(each);
                return range.getBoundingClientRect().right
                    > each.getBoundingClientRect().right + 1;
            }).map((each) => each.textContent)"""
        )
        assert wide == []


def contrast(one: list[float], other: list[float]) -> float:
    """How well two colours can be told apart, as WCAG counts it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: list[float]) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (each / 255 for each in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_theme_can_be_chosen_and_is_remembered(furnished, look):
    page = look(furnished, color_scheme="light")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    theme = page.get_by_role("button", name="theme")
    expect(theme).to_contain_text("auto")
    paper = page.evaluate(ground)
    theme.click()
    expect(theme).to_contain_text("dark")
    night = page.evaluate(ground)
    assert night != paper
    page.reload()
    expect(theme).to_contain_text("dark")
    assert page.evaluate(ground) == night
    theme.click()
    assert page.evaluate(ground) == paper


def test_every_page_has_its_landmarks_and_one_title(furnished, look):
    page = look(furnished)
    for place in [*PLACES, f"jobs/{furnished.job_id}"]:
        page.goto(f"{furnished.url}/#/{place}")
        expect(page.get_by_text("one moment…")).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        expect(page.get_by_role("main")).to_have_count(1)
        expect(page.get_by_role("navigation", name="pages")).to_have_count(1)
        title = page.get_by_role("heading", level=1).inner_text()
        expect(page).to_have_title(f"{title} · Lamplighter")


def test_all_that_can_be_acted_on_has_a_name(furnished, look):
    page = look(furnished)
    for place in [*PLACES, f"jobs/{furnished.job_id}"]:
        page.goto(f"{furnished.url}/#/{place}")
        expect(page.get_by_text("one moment…")).to_have_count(0)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll('a, button, input, select, textarea')].filter(
                (each) => !each.textContent.trim() && !each.ariaLabel && !each.labels?.length
                    && !each.title).map((each) => each.outerHTML)"""
        )
        assert nameless == []
