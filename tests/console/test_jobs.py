"""The list of jobs and the page of one: filters, bulk actions, what happens while one looks."""

import json
import re

import pytest
from playwright.sync_api import expect


def test_filters_stand_in_the_address_and_are_links(shared, look):
    marked = shared.submit("greet", {"name": "Ada"}, tags=["find-me"])
    shared.ended(marked)
    page = look(shared, "#/jobs?tag=find-me")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(page.get_by_label("Tag")).to_have_value("find-me")
    page.get_by_label("Status").select_option("dead")
    expect(page.get_by_text("No jobs match the filter.")).to_be_visible()
    assert "status=dead" in page.url
    assert "tag=find-me" in page.url
    page.get_by_label("Status").select_option("")
    expect(rows).to_have_count(1)
    page.get_by_label("Tag").fill("nobody")
    expect(page.get_by_text("No jobs match the filter.")).to_be_visible()
    page.get_by_role("link", name="clear").click()
    expect(page.get_by_label("Tag")).to_have_value("")


def test_a_filter_that_cannot_be_is_explained(shared, look):
    page = look(shared, "#/jobs?status=nonsense")
    expect(page.get_by_role("alert")).to_contain_text("nonsense")
    look.sins[-1].forgive("status of 400")


def test_a_selection_is_changed_and_each_job_has_its_outcome(own, look):
    waiting = [own.submit("greet", {"name": "Ada"}, delay=3600) for _ in range(2)]
    ended = own.submit("greet", {"name": "Grace"})
    own.ended(ended)
    page = look(own, "#/jobs")
    page.get_by_label("select all on this page").check()
    page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Applies to 2 of them")
    dialog.get_by_label("Reason").fill("not needed")
    dialog.get_by_role("button", name="Cancel: 3 jobs").click()
    outcomes = page.get_by_role("region", name="what became of the selection")
    expect(outcomes.get_by_role("listitem")).to_have_count(3)
    for each in waiting:
        expect(outcomes.get_by_role("listitem").filter(has_text=each)).to_contain_text("cancelled")
        assert own.ask("GET", f"/v1/jobs/{each}/input")["cancel"]["reason"] == "not needed"
    refused = outcomes.get_by_role("listitem").filter(has_text=ended)
    expect(refused).to_have_class("bad")
    look.sins[-1].forgive("status of 409")


def test_many_jobs_are_read_page_by_page(own, look):
    body = [{"type": "greet", "arguments": {"name": str(at)}, "delay": 3600} for at in range(60)]
    own.ask("POST", "/v1/jobs:batch", body)
    page = look(own, "#/jobs?type=greet")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_role("link", name="older").click()
    expect(rows).to_have_count(10)
    assert "type=greet" in page.url
    page.get_by_role("link", name="newest").click()
    expect(rows).to_have_count(50)


def test_a_running_job_is_followed_to_its_end(own, look):
    job_id = own.submit("report", {"steps": 12}, metadata={"for": "the board"}, tags=["monthly"])
    own.becomes("running", job_id)
    page = look(own, f"#/jobs/{job_id}")
    expect(page.get_by_label("summary")).to_contain_text("running")
    expect(page.get_by_role("log")).to_contain_text("report begins")
    expect(page.get_by_label("progress of the job")).to_have_attribute("value", "3")
    expect(page.get_by_label("summary")).to_contain_text("reading the books")
    expect(page.get_by_role("list", name=re.compile("timeline"))).to_contain_text("running")
    expect(page.get_by_role("region", name="Arguments")).to_contain_text('"steps": 12')
    own.sign("release")
    expect(page.get_by_label("summary")).to_contain_text("succeeded")
    expect(page.get_by_role("log")).to_contain_text("report ends")
    expect(page.get_by_role("region", name="Result")).to_contain_text("written")
    expect(page.get_by_role("list", name=re.compile("timeline"))).to_contain_text("succeeded")


def test_a_failed_job_tells_where_and_runs_again_with_a_reason(own, look):
    (job_id,) = own.died(1)
    page = look(own, f"#/jobs/{job_id}")
    expect(page.get_by_role("region", name="Error")).to_contain_text("the bank does not answer")
    trace = page.get_by_text("where it failed")
    expect(page.get_by_text("raise ConnectionRefusedError")).to_be_hidden()
    trace.click()
    expect(page.get_by_text("raise ConnectionRefusedError")).to_be_visible()
    own.sign("mended")
    page.get_by_role("button", name="Replay").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("mended")
    page.get_by_role("dialog").get_by_role("button", name="Replay").click()
    expect(page.get_by_label("summary")).to_contain_text("succeeded")
    assert own.job(job_id)["status"] == "succeeded"


def test_a_held_job_says_why_it_does_not_run(own, look):
    job_id = own.submit("greet", {"name": "Ada"}, delay=3600)
    page = look(own, f"#/jobs/{job_id}")
    expect(page.get_by_role("region", name="Why it is not running")).to_contain_text("due in")
    page.get_by_role("button", name="Hold").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("wait for the audit")
    page.get_by_role("dialog").get_by_role("button", name="Hold").click()
    expect(page.get_by_label("summary")).to_contain_text("paused")
    expect(page.get_by_label("summary")).to_contain_text("wait for the audit")
    page.get_by_role("button", name="Unhold").click()
    page.get_by_role("dialog").get_by_role("button", name="Unhold").click()
    expect(page.get_by_label("summary")).to_contain_text("scheduled")


def test_a_job_that_has_no_result_says_why(own, look):
    waiting = own.submit("greet", {"name": "Ada"}, delay=3600)
    running = own.submit("report", {})
    own.becomes("running", running)
    (dead,) = own.died(1)
    page = look(own, f"#/jobs/{dead}")
    result = page.get_by_role("region", name="Result")
    expect(result).to_contain_text("None: it failed for good.")
    page.goto(f"{own.url}/#/jobs/{running}")
    expect(result).to_contain_text("None yet: it is running.")
    page.goto(f"{own.url}/#/jobs/{waiting}")
    expect(result).to_contain_text("None yet")
    expect(page.get_by_role("region", name="Attempts")).to_contain_text("None yet.")
    own.ask("DELETE", f"/v1/jobs/{waiting}")
    expect(result).to_contain_text("None: it was cancelled.")
    expect(page.get_by_role("region", name="Attempts")).to_contain_text("It was never started.")
    expect(page.get_by_role("region", name="Log")).to_contain_text("It has logged nothing.")


def test_a_job_that_is_not_there_is_said_so(shared, look):
    page = look(shared, "#/jobs/nobody")
    expect(page.get_by_role("alert").first).to_contain_text("nobody")
    expect(page.get_by_text("It has logged nothing.")).to_have_count(0)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(11_000)
    # Whoever is not there now will not be there soon: it is asked about once more, then seldom.
    # Whether the store is there is asked beside it, where no stream tells.
    others = ("/v1/events", "/readyz")
    assert len([url for url in asked if not any(each in url for each in others)]) <= 1
    look.sins[-1].forgive("status of 404")


def test_a_job_that_waits_for_its_next_attempt_runs_for_nothing(own, look):
    policy = {"max_attempts": 3, "fixed": 3600}
    job_id = own.submit("deliver", {"address": "nowhere"}, retry=policy)
    own.becomes("retrying", job_id)
    page = look(own, f"#/jobs/{job_id}")
    summary = page.get_by_label("summary")
    expect(summary).to_contain_text("retrying")
    expect(summary).to_contain_text("Started")
    expect(summary.get_by_text("Runs for")).to_have_count(0)
    empty = "() => [...document.querySelectorAll('.facts dd')].filter((e) => !e.textContent).length"
    assert page.evaluate(empty) == 0


@pytest.mark.parametrize(
    ("verb", "sentence", "generation"),
    [("Retry", "same effect keys", 0), ("Replay", "new effect keys", 1)],
)
def test_a_dead_job_goes_on_or_starts_over_and_each_button_says_which(
    own, look, verb, sentence, generation
):
    (job_id,) = own.died(1)
    own.sign("mended")
    page = look(own, f"#/jobs/{job_id}")
    offered = page.locator("main header button")
    expect(offered).to_have_text(["Retry", "Replay", "Erase…"])
    expect(offered.first).to_have_class("primary")
    page.get_by_role("button", name=verb).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(sentence)
    expect(dialog).not_to_contain_text("waiting")
    dialog.get_by_role("button", name=verb).click()
    own.becomes("succeeded", job_id)
    last = own.ask("GET", f"/v1/jobs/{job_id}/attempts")["attempts"][-1]
    assert last["generation"] == generation


def test_a_waiting_job_is_run_now_and_not_retried(own, look):
    job_id = own.submit("greet", {"name": "Ada"}, delay=3600)
    page = look(own, f"#/jobs/{job_id}")
    page.get_by_role("button", name="Run now").click()
    page.get_by_role("dialog").get_by_role("button", name="Run now").click()
    own.becomes("succeeded", job_id)


def test_a_job_that_is_claimed_but_not_started_is_shown_so(own, look):
    job_id = own.submit("report", {})
    own.becomes("running", job_id)

    def claimed(route) -> None:
        answer = route.fetch()
        told = json.dumps(answer.json())
        told = told.replace('"status": "running"', '"status": "claimed"')
        route.fulfill(response=answer, body=told)

    page = look(own, "#/workers")
    expect(page.get_by_role("heading", level=1)).to_have_text("Workers")
    page.route("**/v1/events*", lambda route: route.fulfill(status=502, body=""))
    page.route("**/v1/jobs?*", claimed)
    page.route(f"**/v1/jobs/{job_id}", claimed)
    page.goto(f"{own.url}/#/jobs")
    page.get_by_label("Status").select_option("claimed")
    row = page.get_by_role("row", name=job_id)
    expect(row).to_have_count(0)  # the service knows better
    page.get_by_label("Status").select_option("running")
    expect(row).to_contain_text("claimed")
    expect(row).to_contain_text("not started yet")
    row.get_by_role("link").first.click()
    expect(page.get_by_label("summary")).to_contain_text("claimed")
    expect(page.get_by_role("region", name="Why it is not running")).to_contain_text("on worker")
    attempts = page.get_by_role("region", name="Attempts")
    expect(attempts.locator(".head").first).to_contain_text("claimed")
    expect(attempts).not_to_contain_text("running")
    look.sins[-1].forgive("status of 502")
