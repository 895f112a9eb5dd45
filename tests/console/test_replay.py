"""Dead letters: found and run again, one or many, at once or slowly."""

import re

from playwright.sync_api import expect


class Clicks:
    """Counts what a hand does."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, target) -> None:
        target.click()
        self.count += 1


def test_a_failed_job_is_found_and_replayed_in_three_clicks_from_the_start_page(own, look):
    (job_id,) = own.died(1)
    own.sign("mended")
    page, click = look(own), Clicks()
    click(page.get_by_role("link", name=re.compile("the bank does not answer")))
    expect(page.get_by_role("link", name=f"job {job_id}")).to_be_visible()
    click(page.get_by_role("row", name=re.compile(job_id)).get_by_role("button", name="Replay"))
    click(page.get_by_role("dialog").get_by_role("button", name="Replay"))
    own.becomes("succeeded", job_id)
    assert click.count <= 3
    expect(page.get_by_text("None is left.")).to_be_visible()


def test_a_whole_cause_is_replayed_in_two_clicks_from_the_start_page(own, look):
    ids = own.died(3)
    own.sign("mended")
    page, click = look(own), Clicks()
    click(page.get_by_role("button", name="Replay"))
    expect(page.get_by_role("dialog")).to_contain_text("3 jobs would run again")
    click(page.get_by_role("dialog").get_by_role("button", name="Replay"))
    own.becomes("succeeded", *ids)
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
    expect(dialog).to_contain_text("1 job would be removed for ever")
    assert own.job(gone)["status"] == "dead"
    dialog.get_by_role("button", name="Purge", exact=True).click()
    expect(page.get_by_text("No dead letter fits.")).to_be_visible()
    groups = own.ask("GET", "/v1/dlq")["groups"]
    assert [group["example"] for group in groups] == [stays]
