"""Erasing a job: who is offered it, what is said first, and that nothing of it is left to see."""

import re

import pytest
from playwright.sync_api import expect

from tests.console.site import command, site
from tests.console.test_login import link, token

CANARY = "canary-51b2"


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locked")
    command(folder, "migrate")
    with site(folder, "--require-token", key=token(folder, "admin")) as made:
        yield made


def test_a_finished_job_is_erased_and_the_page_says_so(own, look):
    job_id = own.submit("greet", {"name": CANARY})
    own.ended(job_id)
    page = look(own, f"#/jobs/{job_id}")
    expect(page.get_by_role("log")).to_contain_text(CANARY)
    page.get_by_role("button", name="Erase…").click()
    dialog = page.get_by_role("dialog", name=re.compile(job_id))
    for part in ("arguments", "result", "attempts", "logs", "idempotency key"):
        expect(dialog).to_contain_text(part)
    expect(dialog).to_contain_text("cannot be undone")
    expect(dialog).to_contain_text("audit log")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("the customer has asked")
    dialog.get_by_role("button", name="Erase the job").click()
    expect(page.get_by_role("main")).to_contain_text(f"The job {job_id} was erased")
    expect(page.get_by_role("main").get_by_role("status")).to_be_focused()
    expect(page.get_by_role("main")).not_to_contain_text(CANARY)
    expect(page.get_by_role("button")).not_to_contain_text(["Replay"])
    entries = own.ask("GET", "/v1/audit")["entries"]
    noted = [one for one in entries if one["action"] == "job.erase"]
    assert [(one["object"], one["reason"]) for one in noted] == [(job_id, "the customer has asked")]
    page.get_by_role("main").get_by_role("link", name="Jobs").click()
    expect(page.get_by_text("There are no jobs.")).to_be_visible()


def test_an_erased_dead_letter_is_in_no_list(own, look):
    gone, stays = own.died(2)
    page = look(own, f"#/jobs/{gone}")
    page.get_by_role("button", name="Erase…").click()
    page.get_by_role("dialog").get_by_role("button", name="Erase the job").click()
    expect(page.get_by_role("main")).to_contain_text("was erased")
    for place in ("jobs", "dead?open=1&type=charge"):
        page.goto(f"{own.url}/#/{place}")
        expect(page.get_by_role("link", name=f"job {stays}")).to_be_visible()
        expect(page.get_by_role("link", name=f"job {gone}")).to_have_count(0)


def test_a_key_meant_for_the_reason_erases_nothing(own, look):
    job_id = own.submit("greet", {"name": "Ada"})
    own.ended(job_id)
    page = look(own, f"#/jobs/{job_id}")
    page.get_by_role("button", name="Erase…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("asked ")
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)  # nothing is to happen
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Erase…")).to_be_focused()
    assert own.job(job_id)["status"] == "succeeded"


def test_only_a_job_that_has_ended_can_be_erased(own, look):
    job_id = own.submit("greet", {"name": "Ada"}, delay=3600)
    page = look(own, f"#/jobs/{job_id}")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    expect(page.get_by_role("button", name="Erase…")).to_have_count(0)
    own.ask("DELETE", f"/v1/jobs/{job_id}")
    expect(page.get_by_role("button", name="Erase…")).to_be_enabled()


def test_whoever_may_not_erase_is_not_offered_it(locked, look):
    job_id = locked.submit("greet", {"name": "Ada"})
    locked.ended(job_id)
    to = f"/jobs/{job_id}"
    page = look(locked, link(locked.signals, "operator", to=to))
    expect(page.get_by_role("button", name="Replay")).to_be_enabled()
    expect(page.get_by_role("button", name="Erase…")).to_have_count(0)
    page = look(locked, link(locked.signals, "jobs:read", "jobs:erase", to=to))
    expect(page.get_by_role("button", name="Replay")).to_be_disabled()
    page.get_by_role("button", name="Erase…").click()
    page.get_by_role("dialog").get_by_role("button", name="Erase the job").click()
    expect(page.get_by_role("main")).to_contain_text("was erased")


def test_whoever_looks_on_while_it_is_erased_sees_nothing_of_it_any_more(own, look):
    job_id = own.submit("greet", {"name": CANARY})
    own.ended(job_id)
    page = look(own, f"#/jobs/{job_id}")
    expect(page.get_by_role("region", name="Arguments")).to_contain_text(CANARY)
    own.ask("POST", f"/v1/jobs/{job_id}/erase")
    expect(page.get_by_role("alert").first).to_contain_text(job_id, timeout=30_000)
    expect(page.get_by_role("main")).not_to_contain_text(CANARY)
    look.sins[-1].forgive("status of 404")
