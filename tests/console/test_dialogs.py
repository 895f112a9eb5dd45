"""Dialogs: no key meant for the reason decides, and nothing is lost by what happens below."""

import pytest
from playwright.sync_api import expect


def open_hold(page) -> None:
    page.get_by_role("row", name="payments").get_by_role("button", name="Hold").click()


def open_wait(page) -> None:
    page.get_by_role("row", name="payments").get_by_role("button", name="Set").click()


def open_replay(page) -> None:
    page.get_by_role("row", name="the bank does not answer").get_by_role(
        "button", name="Replay"
    ).click()


def open_purge(page) -> None:
    page.get_by_role("button", name="Purge all").click()


def open_cancel(page) -> None:
    page.get_by_role("button", name="Cancel").click()


def open_weight(page) -> None:
    page.get_by_role("row", name="acme").get_by_role("button", name="Set").click()


def open_run(page) -> None:
    page.get_by_role("button", name="Run now").click()


def open_backfill(page) -> None:
    page.get_by_role("button", name="Backfill").click()


def open_delete(page) -> None:
    page.get_by_role("button", name="Delete").click()


@pytest.fixture
def busy(own):
    own.died(1)
    own.waiting = own.submit("greet", {"name": "Ada"}, delay=3600)
    own.ask("PUT", "/v1/queues/payments", {"max_wait_seconds": 60})
    own.ask("PUT", "/v1/tenants/acme", {"weight": 2})
    nightly = {"id": "nightly", "type": "greet", "arguments": {"name": "Ada"}, "cron": "30 2 * * *"}
    own.ask("POST", "/v1/schedules", nightly)
    return own


DIALOGS = [
    ("#/queues", open_hold, "Reason"),
    ("#/queues", open_wait, "Seconds"),
    ("#/tenants", open_weight, "Weight"),
    ("#/dead", open_replay, "Reason"),
    ("#/dead", open_purge, "Reason"),
    ("job", open_cancel, "Reason"),
    ("#/schedules/nightly", open_run, "Reason"),
    ("#/schedules/nightly", open_delete, "Reason"),
    ("#/schedules/nightly", open_backfill, "After this instant"),
]
NEEDED = {
    open_backfill: {
        "After this instant": "2026-01-01T00:00:00Z",
        "Up to this instant": "2026-01-04T00:00:00Z",
    }
}
"""Fields without which nothing could be sent anyway."""


@pytest.mark.parametrize(("place", "opened", "first"), DIALOGS)
def test_what_is_typed_at_once_is_a_reason_and_no_decision(busy, look, place, opened, first):
    page = look(busy, f"#/jobs/{busy.waiting}" if place == "job" else place)
    opened(page)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label(first)).to_be_focused()
    sent = []
    page.on("request", lambda one: sent.append(one) if is_change(one) else None)
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    for label, text in NEEDED.get(opened, {}).items():
        dialog.get_by_label(label).fill(text)
    dialog.get_by_label("Reason").focus()
    page.keyboard.type("too late for that")
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)  # nothing is to happen
    expect(dialog).to_be_visible()
    expect(dialog.get_by_label("Reason")).to_have_value(" " * (first == "Reason") + TYPED)
    assert sent == []
    assert busy.job(busy.waiting)["status"] == "scheduled"


TYPED = "too late for that"


def is_change(request) -> bool:
    """Whether it does something, and does not only count what it would be about."""
    return request.method != "GET" and '"dry_run":true' not in (request.post_data or "")


def test_a_dialog_is_confirmed_by_keyboard_with_ctrl_and_enter(busy, look):
    page = look(busy, f"#/jobs/{busy.waiting}")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    page.keyboard.press("c")
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
    page.keyboard.type("not needed")
    page.keyboard.press("Control+Enter")
    busy.becomes("cancelled", busy.waiting)
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert busy.ask("GET", f"/v1/jobs/{busy.waiting}/input")["cancel"]["reason"] == "not needed"


def test_a_selection_and_its_dialog_outlive_a_list_that_goes_on(own, look):
    chosen = [own.submit("greet", {"name": "Ada"}, delay=3600) for _ in range(2)]
    page = look(own, "#/jobs")
    expect(page.get_by_title("how changes come to this page")).to_have_text("live")
    page.get_by_label("select all on this page").check()
    page.get_by_role("button", name="Hold", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("wait for ")
    body = [{"type": "greet", "arguments": {"name": str(at)}, "delay": 3600} for at in range(60)]
    own.ask("POST", "/v1/jobs:batch", body)
    # The list shows the newest 50, and so none of the chosen.
    expect(page.locator(f"main a[href='#/jobs/{chosen[0]}']")).to_have_count(0)
    expect(page.locator("tbody tr")).to_have_count(50)
    page.keyboard.type("the audit")
    expect(dialog.get_by_label("Reason")).to_have_value("wait for the audit")
    dialog.get_by_role("button", name="Hold: 2 jobs").click()
    own.becomes("paused", *chosen)
    held = own.ask("GET", "/v1/jobs", status="paused")["jobs"]
    assert {job["id"] for job in held} == set(chosen)


def test_a_selection_tells_what_has_left_the_list(own, look):
    stays, leaves = (own.submit("greet", {"name": "Ada"}, delay=3600) for _ in range(2))
    page = look(own, "#/jobs?status=scheduled")
    page.get_by_label("select all on this page").check()
    expect(page.get_by_text("2 jobs selected")).to_be_visible()
    own.ask("DELETE", f"/v1/jobs/{leaves}")
    expect(page.locator("tbody tr")).to_have_count(1)
    bar = page.get_by_role("toolbar")
    expect(bar).to_contain_text("2 jobs selected")
    expect(bar).to_contain_text("1 not in the list any more")
    bar.get_by_role("button", name="select none").click()
    expect(bar).to_have_count(0)
    assert own.job(stays)["status"] == "scheduled"


@pytest.mark.parametrize("verb", ["Replay", "Purge all"])
def test_a_dialog_outlives_its_row(own, look, verb):
    own.died(1)
    page = look(own, "#/dead")
    page.get_by_role("button", name=verb, exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 job would")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("the bank is back")
    own.ask("POST", "/v1/dlq:purge", {"all": True})
    expect(page.get_by_text("No dead letters.")).to_be_visible()
    expect(dialog.get_by_label("Reason")).to_have_value("the bank is back")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_dialog_of_a_job_outlives_the_buttons_of_its_status(own, look):
    job_id = own.submit("report", {})
    own.becomes("running", job_id)
    page = look(own, f"#/jobs/{job_id}")
    page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("it takes too long")
    own.sign("release")
    expect(page.get_by_label("summary")).to_contain_text("succeeded")
    expect(dialog.get_by_label("Reason")).to_have_value("it takes too long")
    dialog.get_by_role("button", name="Cancel the job").click()
    expect(dialog.get_by_role("alert")).to_contain_text("succeeded")
    look.sins[-1].forgive("status of 409")


def test_whoever_goes_elsewhere_has_left_the_dialog(own, look):
    own.died(1)
    page = look(own, "#/jobs")
    page.goto(f"{own.url}/#/dead")
    page.get_by_role("button", name="Purge all").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    expect(page.get_by_role("dialog")).to_have_count(0)
