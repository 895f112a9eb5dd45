"""Dead letters: found and run again, one or many, at once or slowly."""

import re

import pytest
from playwright.sync_api import expect

from tests.console.site import command, site
from tests.console.test_login import token

VERBS = [("Retry", "same effect keys", 0), ("Replay", "new effect keys", 1)]
"""What runs a dead letter again, what its dialog says, and the generation of the job after it."""


class Clicks:
    """Counts what a hand does."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, target) -> None:
        target.click()
        self.count += 1


def generation(site, job_id: str) -> int:
    return site.ask("GET", f"/v1/jobs/{job_id}/attempts")["attempts"][-1]["generation"]


@pytest.mark.parametrize(("verb", "sentence", "lives"), VERBS)
def test_a_failed_job_is_found_and_run_again_in_three_clicks_from_the_start_page(
    own, look, verb, sentence, lives
):
    (job_id,) = own.died(1)
    own.sign("mended")
    page, click = look(own), Clicks()
    click(page.get_by_role("link", name=re.compile("the bank does not answer")))
    expect(page.get_by_role("link", name=f"job {job_id}")).to_be_visible()
    offered = page.get_by_role("row", name=re.compile(job_id)).get_by_role("button")
    expect(offered).to_have_text(["Retry", "Replay"])
    click(offered.filter(has_text=verb))
    expect(page.get_by_role("dialog")).to_contain_text(sentence)
    click(page.get_by_role("dialog").get_by_role("button", name=verb))
    own.becomes("succeeded", job_id)
    assert generation(own, job_id) == lives
    assert click.count <= 3
    expect(page.get_by_text("None is left.")).to_be_visible()


@pytest.mark.parametrize(("verb", "sentence", "lives"), VERBS)
def test_a_whole_cause_is_run_again_in_two_clicks_from_the_start_page(
    own, look, verb, sentence, lives
):
    ids = own.died(3)
    own.sign("mended")
    page, click = look(own), Clicks()
    expect(page.locator("tbody").get_by_role("button")).to_have_text(["Retry", "Replay"])
    click(page.get_by_role("button", name=verb))
    expect(page.get_by_role("dialog")).to_contain_text("3 jobs would run again")
    expect(page.get_by_role("dialog")).to_contain_text(sentence)
    click(page.get_by_role("dialog").get_by_role("button", name=verb))
    own.becomes("succeeded", *ids)
    assert {generation(own, each) for each in ids} == {lives}
    assert click.count == 2
    expect(page.get_by_text("No dead letters.")).to_be_visible()


def test_a_replay_can_be_throttled_and_stopped(own, look):
    ids = own.died(12)
    own.sign("mended")
    page = look(own, "#/dead")
    page.get_by_role("button", name="Replay all").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Jobs per second").fill("2")
    dialog.get_by_label("Reason").fill("the bank is back")
    dialog.get_by_role("button", name="Replay").click()
    tray = page.get_by_role("complementary", name="in the background")
    expect(tray).to_contain_text("2/s")
    expect(tray).to_contain_text("4 of 12")
    # It goes on while other pages are looked at.
    page.get_by_role("link", name="Workers").click()
    expect(tray).to_contain_text("6 of 12")
    tray.get_by_role("button", name="Stop").click()
    expect(tray).to_contain_text("stopped")
    left = own.ask("GET", "/v1/dlq")["groups"][0]["count"]
    assert 2 <= left <= 6
    done = [each for each in ids if own.job(each)["status"] != "dead"]
    assert len(done) == 12 - left


def test_what_is_purged_is_counted_first_and_then_gone(own, look):
    (gone,), (stays,) = own.died(1), own.died(1, tenant="acme")
    page = look(own, "#/dead?tenant=default")
    page.get_by_role("button", name="Purge all").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 job would be removed")
    expect(dialog).to_contain_text("cannot be undone")
    assert own.job(gone)["status"] == "dead"
    dialog.get_by_role("button", name="Purge", exact=True).click()
    expect(page.get_by_text("No dead letters match the filter.")).to_be_visible()
    groups = own.ask("GET", "/v1/dlq")["groups"]
    assert [group["example"] for group in groups] == [stays]


def test_whoever_reloads_during_a_replay_is_asked_first(own, look):
    own.died(6)
    own.sign("mended")
    page = look(own, "#/dead")
    page.get_by_role("button", name="Replay all").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Jobs per second").fill("1")
    dialog.get_by_role("button", name="Replay").click()
    tray = page.get_by_role("complementary", name="in the background")
    expect(tray).to_contain_text("2 of 6")
    asked = []

    def stay(dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    look.sins[-1].on_dialog = stay
    page.evaluate("setTimeout(() => location.reload(), 0)")
    expect(tray).to_contain_text("4 of 6")
    assert asked == ["beforeunload"]
    tray.get_by_role("button", name="Stop").click()
    expect(tray).to_contain_text("stopped")
    page.wait_for_timeout(1_500)  # the part that was under way
    # Then nobody is asked any more.
    page.reload()
    expect(page.get_by_role("button", name="Replay all")).to_be_visible()
    assert asked == ["beforeunload"]


@pytest.fixture
def locked(tmp_path):
    """A service for one test that wants a login."""
    command(tmp_path, "migrate")
    with site(tmp_path, "--require-token", key=token(tmp_path, "admin")) as made:
        yield made


def test_whoever_logs_out_during_a_replay_is_asked_first(locked, look):
    locked.died(12)
    locked.sign("mended")
    page = look(locked)
    page.get_by_label("Token").fill(locked.key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.goto(f"{locked.url}/#/dead")
    page.get_by_role("button", name="Replay all").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Jobs per second").fill("1")
    dialog.get_by_role("button", name="Replay").click()
    tray = page.get_by_role("complementary", name="in the background")
    expect(tray).to_contain_text("1/s")
    asked = []

    def stay(dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    look.sins[-1].on_dialog = stay
    page.get_by_role("button", name="log out").click()
    expect(tray).to_contain_text("4 of 12")
    assert len(asked) == 1
    assert "stops" in asked[0]
    look.sins[-1].on_dialog = lambda dialog: dialog.accept()
    page.get_by_role("button", name="log out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.wait_for_timeout(1_500)  # the part that was under way
    assert locked.ask("GET", "/v1/dlq")["groups"][0]["count"] > 0
    look.sins[-1].forgive("status of 401")


def test_whoever_reloads_while_a_selection_is_changed_is_asked_first(own, look):
    jobs = [own.submit("greet", {"name": "Ada"}, delay=3600) for _ in range(2)]
    page = look(own, "#/jobs")
    page.get_by_label("select all on this page").check()
    page.get_by_role("button", name="Hold", exact=True).click()
    waiting = []

    def late(route) -> None:
        waiting.append(route)

    page.route("**/hold*", late)
    page.get_by_role("dialog").get_by_role("button", name="Hold: 2 jobs").click()
    asked = []

    def stay(dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    look.sins[-1].on_dialog = stay
    while len(waiting) < 2:
        page.wait_for_timeout(20)
    page.evaluate("setTimeout(() => location.reload(), 0)")
    page.wait_for_timeout(500)
    assert asked == ["beforeunload"]
    for route in waiting:
        route.continue_()
    own.becomes("paused", *jobs)


def test_the_page_of_dead_letters_tells_retry_from_replay(own, look):
    own.died(1)
    page = look(own, "#/dead")
    actions = page.locator("main header button")
    expect(actions).to_have_text(["Retry all", "Replay all", "Purge all"])
    expect(actions.first).to_have_class("primary")
    told = page.get_by_role("list", name="ways to run them again").get_by_role("listitem")
    expect(told).to_have_count(2)
    expect(told.first).to_contain_text("same effect keys")
    expect(told.last).to_contain_text("new effect keys")


def test_a_retry_of_many_is_shown_as_one(own, look):
    own.died(4)
    own.sign("mended")
    page = look(own, "#/dead")
    page.get_by_role("button", name="Retry all").click()
    dialog = page.get_by_role("dialog", name="Retry all dead letters")
    dialog.get_by_label("Jobs per second").fill("2")
    dialog.get_by_role("button", name="Retry").click()
    tray = page.get_by_role("complementary", name="in the background")
    expect(tray).to_contain_text("Retry all dead letters")
    expect(page.get_by_text("4 jobs retried")).to_be_visible()
