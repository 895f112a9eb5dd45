"""Schedules for those who may not do everything: readers, and those of one tenant."""

import pytest
from playwright.sync_api import expect

from tests.console.site import command, site
from tests.console.test_login import link, token

GREET = {"type": "greet", "arguments": {"name": "Ada"}, "cron": "30 2 * * *"}


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """A service with a schedule of each of two tenants."""
    folder = tmp_path_factory.mktemp("locked")
    command(folder, "migrate")
    with site(folder, "--require-token", key=token(folder, "admin")) as made:
        for tenant in ("acme", "beta"):
            body = {**GREET, "id": f"{tenant}-nightly", "tenant": tenant}
            made.ask("POST", "/v1/schedules", body)
        yield made


def test_a_reader_sees_everything_and_changes_nothing(locked, look):
    page = look(locked, link(locked.signals, "schedules:read", to="/schedules"))
    page.get_by_role("link", name="acme-nightly").click()
    expect(page.get_by_role("region", name="Next runs").get_by_role("listitem")).to_have_count(10)
    expect(page.get_by_role("link", name="Edit")).to_have_count(0)
    for name in ("Run now", "Hold", "Backfill", "Delete"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    page.goto(f"{locked.url}/#/schedules")
    expect(page.get_by_role("link", name="beta-nightly")).to_be_visible()
    expect(page.get_by_role("link", name="New schedule")).to_have_count(0)
    page.goto(f"{locked.url}/#/schedules?new=1")
    page.get_by_label("Expression", exact=True).fill("30 2 * * *")
    expect(page.get_by_role("region", name="Preview").get_by_role("listitem")).to_have_count(10)
    expect(page.get_by_role("button", name="Create")).to_be_disabled()


def test_a_tenant_sees_and_makes_its_own_only(locked, look):
    scopes = ("schedules:read", "schedules:write", "jobs:read")
    page = look(locked, link(locked.signals, *scopes, to="/schedules", tenant="acme"))
    expect(page.get_by_role("link", name="acme-nightly")).to_be_visible()
    expect(page.get_by_role("link", name="beta-nightly")).to_have_count(0)
    page.get_by_role("link", name="New schedule").click()
    page.get_by_label("Id", exact=True).fill("acme-weekly")
    page.get_by_label("Job type").fill("greet")
    page.get_by_label("Arguments, as JSON").fill('{"name": "Ada"}')
    page.get_by_label("Expression", exact=True).fill("0 9 * * 1")
    expect(page.get_by_role("region", name="Preview").get_by_role("listitem")).to_have_count(10)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_label("summary")).to_contain_text("acme")
    assert locked.ask("GET", "/v1/schedules/acme-weekly", tenant="acme")["tenant"] == "acme"
