"""Tenants: their weights beside what they get, and holding them."""

import re

import pytest
from playwright.sync_api import expect


def tenant(site, name: str) -> dict:
    return site.ask("GET", f"/v1/tenants/{name}")


@pytest.fixture
def two(own):
    """Two tenants: one has three times the weight, the other three times the jobs."""
    own.ask("PUT", "/v1/tenants/heavy", {"weight": 3})
    jobs = [own.submit("report", {}, tenant=name) for name in ("heavy", "light", "light", "light")]
    own.becomes("running", *jobs)
    return own


def test_shares_of_the_weights_stand_beside_shares_of_what_runs(two, look):
    page = look(two, "#/tenants")
    heavy, light = (page.get_by_role("row", name=name) for name in ("heavy", "light"))
    expect(heavy).to_contain_text("75 % of weights")
    expect(heavy).to_contain_text("25 % of running")
    expect(light).to_contain_text("25 % of weights")
    expect(light).to_contain_text("75 % of running")
    meter = light.get_by_role("meter", name="share: running of light")
    assert float(meter.get_attribute("value")) == 0.75
    two.sign("release")
    # Nobody has anything to run any more, but what was is remembered for a minute.
    expect(heavy.get_by_role("cell").nth(4)).to_have_text("0")
    expect(light).to_have_count(0)
    expect(heavy).to_contain_text(re.compile(r"[1-4]\d % of running"))


def test_a_weight_is_set_and_moves_the_shares(two, look):
    page = look(two, "#/tenants")
    light = page.get_by_role("row", name="light")
    light.get_by_role("button", name="Set").click()
    dialog = page.get_by_role("dialog", name="Weight of the tenant light")
    dialog.get_by_label("Weight").fill("9")
    dialog.get_by_label("Reason").fill("they pay more")
    dialog.get_by_role("button", name="Set").click()
    expect(light).to_contain_text("75 % of weights")
    assert tenant(two, "light")["weight"] == 9


def test_a_weight_that_cannot_be_is_refused_in_place(two, look):
    page = look(two, "#/tenants")
    page.get_by_role("row", name="light").get_by_role("button", name="Set").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Weight").fill("100000000")
    dialog.get_by_role("button", name="Set").click()
    expect(dialog.get_by_role("alert")).to_contain_text("weight")
    assert tenant(two, "light")["weight"] == 1
    look.sins[-1].seen.clear()  # the browser notes the refusal


def test_a_tenant_is_held_and_leaves_its_share_to_others(two, look):
    page = look(two, "#/tenants")
    heavy, light = (page.get_by_role("row", name=name) for name in ("heavy", "light"))
    heavy.get_by_role("button", name="Hold").click()
    dialog = page.get_by_role("dialog", name="Hold the tenant heavy")
    dialog.get_by_label("Reason").fill("their bill is open")
    dialog.get_by_role("button", name="Hold").click()
    expect(heavy).to_contain_text("their bill is open")
    expect(heavy).to_contain_text("– of weights")
    expect(light).to_contain_text("100 % of weights")
    assert tenant(two, "heavy")["hold"]["reason"] == "their bill is open"
    heavy.get_by_role("button", name="Unhold").click()
    page.get_by_role("dialog").get_by_role("button", name="Unhold").click()
    expect(heavy).to_contain_text("75 % of weights")
