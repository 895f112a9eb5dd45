"""Queues: how much waits, by priority and for how long; held, and let go on."""

import pytest
from playwright.sync_api import expect

from tests.console.site import Site


def queue(site, name: str = "payments") -> dict:
    return site.ask("GET", f"/v1/queues/{name}")


@pytest.fixture
def payments(own) -> Site:
    """A service whose queue has settings, so that it is known before its first job."""
    own.ask("PUT", "/v1/queues/payments", {"max_wait_seconds": 60})
    return own


def test_a_queue_is_held_and_goes_on_with_a_reason(payments, look):
    payments.sign("mended")
    page = look(payments, "#/queues")
    row = page.get_by_role("row", name="payments")
    row.get_by_role("button", name="Hold").click()
    dialog = page.get_by_role("dialog", name="Hold the queue payments")
    dialog.get_by_label("Reason").fill("the bank is closed")
    dialog.get_by_role("button", name="Hold").click()
    expect(row).to_contain_text("the bank is closed")
    assert queue(payments)["hold"]["reason"] == "the bank is closed"
    job_id = payments.submit("charge", {"order": "o-1"})
    expect(row.get_by_role("cell").nth(1)).to_have_text("1")
    row.get_by_role("button", name="Unhold").click()
    page.get_by_role("dialog").get_by_role("button", name="Unhold").click()
    expect(row.get_by_role("button", name="Hold", exact=True)).to_be_visible()
    assert payments.ended(job_id) == "succeeded"
    assert queue(payments)["held"] is False


def test_what_waits_is_told_by_priority_and_age(own, look):
    own.ask("PUT", "/v1/queues/payments", {"held": True, "max_wait_seconds": 0.01})
    for priority in ("critical", "low", "low"):
        own.submit("charge", {"order": "o-1"}, priority=priority)
    own.submit("charge", {"order": "o-1"}, delay=3600)
    page = look(own, "#/queues")
    row = page.get_by_role("row", name="payments")
    for said in ("critical 1", "normal 1", "low 2"):
        expect(row).to_contain_text(said)
    expect(row).not_to_contain_text("high")
    expect(row.get_by_role("cell").nth(1)).to_have_text("3")
    expect(row.get_by_role("cell").nth(2)).to_have_text("1")
    # It has waited for longer than it may, and grows older while one looks.
    oldest = row.get_by_role("cell").nth(4)
    expect(oldest.locator("b")).to_be_visible()
    first = oldest.inner_text()
    expect(oldest).not_to_have_text(first)


def test_the_longest_wait_is_set_by_keyboard_alone(payments, look):
    page = look(payments, "#/queues")
    expect(page.get_by_role("link", name="payments")).to_be_visible()
    page.keyboard.press("j")
    while page.evaluate("document.activeElement.textContent") != "payments":
        page.keyboard.press("j")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Longest wait in the queue payments")
    expect(dialog.get_by_label("Seconds")).to_have_value("60")
    expect(dialog.get_by_label("Seconds")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("90")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("row", name="payments")).to_contain_text("90 s")
    assert queue(payments)["max_wait_seconds"] == 90


def test_a_wait_that_cannot_be_is_refused_in_place(payments, look):
    page = look(payments, "#/queues")
    page.get_by_role("row", name="payments").get_by_role("button", name="Set").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Seconds").fill("0")
    dialog.get_by_role("button", name="Set").click()
    expect(dialog.get_by_role("alert")).to_contain_text("max_wait_seconds")
    assert queue(payments)["max_wait_seconds"] == 60
    look.sins[-1].seen.clear()  # the browser notes the refusal
