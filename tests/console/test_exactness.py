"""Every action on a row or a selection is about what is shown there, and about nothing else."""

import itertools
import json
import re

import pytest
from playwright.sync_api import expect


@pytest.fixture
def letters(own):
    """Dead letters of one cause and of none, of two tenants, some with a tag; by all of that."""
    found = {}
    for tenant in ("acme", "default"):
        for tags in ([], ["vip"]):
            (found[tenant, "failed", bool(tags)],) = own.died(1, tenant=tenant, tags=tags)
            refused = own.submit("charge", {"order": ""}, tenant=tenant, tags=tags)
            assert own.ended(refused) == "dead"
            found[tenant, "refused", bool(tags)] = refused
    own.sign("mended")
    own.letters = found
    return own


CAUSES = {"failed": "the bank does not answer", "refused": "there is no order"}


def row(page, cause: str):
    return page.get_by_role("row", name=CAUSES[cause])


def revived(site) -> set:
    """Which dead letters are so no longer."""
    return {key for key, job in site.letters.items() if site.job(job)["status"] != "dead"}


FILTERS = [
    ("tenant=acme", lambda tenant, vip: tenant == "acme"),
    ("tag=vip", lambda tenant, vip: vip),
    ("tenant=acme&tag=vip", lambda tenant, vip: tenant == "acme" and vip),
    ("type=charge", lambda tenant, vip: True),
    ("queue=payments&tenant=default", lambda tenant, vip: tenant == "default"),
]


VERBS = pytest.mark.parametrize("verb", ["Retry", "Replay"])


@pytest.mark.parametrize("act", list(itertools.product(CAUSES, ["Retry", "Replay"])))
@pytest.mark.parametrize(("query", "meant"), FILTERS)
def test_what_runs_a_row_again_runs_what_the_row_counts(letters, look, query, meant, act):
    cause, verb = act
    wanted = {key for key in letters.letters if key[1] == cause and meant(key[0], key[2])}
    page = look(letters, f"#/dead?{query}")
    expect(row(page, cause).get_by_role("cell").first).to_have_text(str(len(wanted)))
    row(page, cause).get_by_role("button", name=verb).click()
    dialog = page.get_by_role("dialog")
    many = "1 job" if len(wanted) == 1 else f"{len(wanted)} jobs"
    expect(dialog).to_contain_text(f"{many} would run again")
    dialog.get_by_role("button", name=verb).click()
    expect(dialog).to_have_count(0)
    assert revived(letters) == wanted


@pytest.mark.parametrize("cause", ["failed", "refused"])
def test_the_jobs_behind_a_row_are_those_of_the_row(letters, look, cause):
    wanted = [job for key, job in letters.letters.items() if key[:2] == ("acme", cause)]
    page = look(letters, "#/dead?tenant=acme")
    row(page, cause).get_by_role("link").first.click()
    expect(page.locator("tbody tr")).to_have_count(2)
    for job in wanted:
        expect(page.get_by_role("link", name=f"job {job}")).to_be_visible()
    page.get_by_role("button", name="Purge all").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 jobs would be removed")
    dialog.get_by_role("button", name="Purge", exact=True).click()
    expect(page.get_by_text("None is left.")).to_be_visible()
    left = letters.ask("GET", "/v1/jobs", status="dead", limit=50)["jobs"]
    assert {job["id"] for job in left} == set(letters.letters.values()) - set(wanted)


@VERBS
def test_what_runs_one_dead_letter_again_runs_that_one(letters, look, verb):
    page = look(letters, "#/dead?tenant=acme")
    row(page, "failed").get_by_role("link").first.click()
    job = letters.letters["acme", "failed", False]
    page.get_by_role("row", name=job).get_by_role("button", name=verb).click()
    page.get_by_role("dialog").get_by_role("button", name=verb).click()
    expect(page.locator("tbody tr")).to_have_count(1)
    assert revived(letters) == {("acme", "failed", False)}


@VERBS
@pytest.mark.parametrize(("query", "meant"), FILTERS)
def test_all_that_is_run_again_is_what_the_filter_shows(letters, look, query, meant, verb):
    page = look(letters, f"#/dead?{query}")
    page.get_by_role("button", name=f"{verb} all").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("would run again")
    dialog.get_by_role("button", name=verb).click()
    expect(dialog).to_have_count(0)
    assert revived(letters) == {key for key in letters.letters if meant(key[0], key[2])}


def test_a_selection_of_jobs_is_all_that_is_changed(own, look):
    mine = [own.submit("greet", {"name": "Ada"}, delay=3600, tags=["mine"]) for _ in range(2)]
    others = [own.submit("greet", {"name": "Bob"}, delay=3600) for _ in range(2)]
    page = look(own, "#/jobs?tag=mine")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("select all on this page").check()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel: 2 jobs").click()
    own.becomes("cancelled", *mine)
    assert {own.job(each)["status"] for each in others} == {"scheduled"}
    # Another filter shows other jobs: nothing of the selection before is left.
    page.goto(f"{own.url}/#/jobs?status=scheduled")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.get_by_role("toolbar")).to_have_count(0)


@pytest.mark.parametrize("kind", ["queues", "tenants"])
def test_a_dialog_does_what_it_said_when_it_was_opened(own, look, kind):
    for name in ("b-middle", "c-last"):
        own.ask("PUT", f"/v1/{kind}/{name}", {"held": False})
    page = look(own, f"#/{kind}")
    place = page.get_by_role("row", name="b-middle")
    place.get_by_role("button", name="Hold").click()
    dialog = page.get_by_role("dialog", name=re.compile("^Hold the .* b-middle"))
    expect(dialog).to_be_visible()
    # Somebody else is quicker, and another row takes the place of this one.
    own.ask("PUT", f"/v1/{kind}/a-first", {"held": False})
    own.ask("PUT", f"/v1/{kind}/b-middle", {"held": True}, reason="theirs")
    expect(place).to_contain_text("theirs", timeout=30_000)
    dialog.get_by_role("button", name="Hold").click()
    expect(dialog).to_have_count(0)
    held = {name: own.ask("GET", f"/v1/{kind}/{name}")["held"] for name in NAMES}
    assert held == {"a-first": False, "b-middle": True, "c-last": False}


NAMES = ("a-first", "b-middle", "c-last")


def test_the_actions_of_a_schedule_are_about_that_one(own, look):
    for name in NAMES:
        body = {"id": name, "type": "greet", "arguments": {"name": "Ada"}, "cron": "0 3 * * *"}
        own.ask("POST", "/v1/schedules", body)
    page = look(own, "#/schedules?prefix=b")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="b-middle").click()
    page.get_by_role("button", name="Hold").click()
    dialog = page.get_by_role("dialog", name="Hold b-middle")
    expect(dialog).to_be_visible()
    own.ask("POST", "/v1/schedules/b-middle/hold", reason="theirs")
    expect(page.get_by_label("summary")).to_contain_text("theirs", timeout=30_000)
    dialog.get_by_role("button", name="Hold").click()
    expect(dialog).to_have_count(0)
    held = {name: own.ask("GET", f"/v1/schedules/{name}")["hold"] for name in NAMES}
    assert [name for name, hold in held.items() if hold] == ["b-middle"]


def test_counts_that_may_be_too_small_are_said_to_be(own, look):
    own.died(2)
    page = look(own, "#/workers")
    expect(page.get_by_title("how changes come to this page")).to_have_text("live")

    def more(route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=json.dumps({**answer.json(), "at_least": True}))

    page.route("**/v1/dlq*", more)
    page.route("**/v1/events*", lambda route: route.fulfill(status=502, body=""))
    page.goto(f"{own.url}/#/dead?tenant=default")
    expect(row(page, "failed").get_by_role("cell").first).to_have_text("≥ 2")
    expect(page.get_by_text("Only the newest 10,000 dead letters are counted.")).to_be_visible()
    row(page, "failed").get_by_role("button", name="Replay").click()
    expect(page.get_by_role("dialog")).to_contain_text("≥ 2 jobs would run again")
    page.keyboard.press("Escape")
    page.goto(f"{own.url}/#/")
    expect(row(page, "failed").get_by_role("cell").first).to_have_text("≥ 2")
    page.goto(f"{own.url}/#/dead?tenant=nobody")
    expect(
        page.get_by_text("None of the newest dead letters match the filter; older ones may.")
    ).to_be_visible()
    expect(page.get_by_text("No dead letters match the filter.")).to_have_count(0)
    look.sins[-1].forgive("status of 502")


def test_filters_that_are_typed_in_quickly_are_all_kept(letters, look):
    page = look(letters, "#/dead")
    expect(row(page, "failed").get_by_role("cell").first).to_have_text("4")
    page.get_by_label("Type").fill("charge")
    page.get_by_label("Tenant").fill("acme")
    expect(row(page, "failed").get_by_role("cell").first).to_have_text("2")
    expect(page.get_by_label("Type")).to_have_value("charge")
    expect(page.get_by_label("Tenant")).to_have_value("acme")
    assert "type=charge" in page.url
    assert "tenant=acme" in page.url


def test_what_is_done_at_once_after_a_filter_is_typed_is_about_what_it_chooses(letters, look):
    page = look(letters, "#/dead")
    expect(row(page, "failed").get_by_role("cell").first).to_have_text("4")
    page.get_by_label("Tenant").fill("acme")
    page.get_by_role("button", name="Purge all").click()
    dialog = page.get_by_role("dialog", name="Purge dead letters of tenant acme")
    expect(dialog).to_contain_text("4 jobs would be removed")
