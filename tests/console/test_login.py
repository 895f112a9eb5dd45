"""Who may look: a token from the address or from the login, kept in one tab, and what it allows."""

import json
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.console.site import ROOT, site


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locked")
    command(folder, "migrate")
    with site(folder, "--require-token", key=token(folder, "admin")) as made:
        yield made


def command(folder, *arguments: str) -> str:
    """Do something as an operator does, and give what it prints."""
    url = f"sqlite:///{folder}/jobs.db"
    whole = [sys.executable, "-m", "lamplighter", *arguments, "--url", url]
    return subprocess.run(whole, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def token(folder, *scopes: str, **more: str) -> str:
    """Make a token."""
    options = [part for scope in scopes for part in ("--scope", scope)]
    options += [part for name, value in more.items() for part in (f"--{name}", value)]
    printed = command(folder, "token", "create", "--name", "tester", "--json", *options)
    return json.loads(printed)["token"]


def refused(look) -> None:
    """Forget what the browser noted about a 401, as it must."""
    look.sins[-1].forgive("status of 401")


def test_without_a_token_one_is_asked_for(locked, look):
    page = look(locked, "#/jobs?status=dead")
    page.get_by_label("Token").fill("wrong" * 10)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("does not take this token")
    page.get_by_label("Token").fill(locked.key)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    expect(page.get_by_label("Status")).to_have_value("dead")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    refused(look)


def test_a_token_in_the_address_is_taken_out_of_it(locked, look):
    page = look(locked, f"#token={locked.key}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    assert locked.key not in page.url
    assert locked.key not in page.content()
    kept = page.evaluate("[localStorage, document.cookie].map((each) => JSON.stringify(each))")
    assert locked.key not in "".join(kept)
    page.go_back()
    assert locked.key not in page.url


def test_whoever_logs_out_is_asked_again(locked, look):
    page = look(locked, f"#token={locked.key}")
    page.get_by_role("button", name="log out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Token")).to_be_visible()
    refused(look)


def test_the_token_travels_in_a_header_only(locked, look):
    page = look(locked, "#/")
    expect(page.get_by_label("Token")).to_be_visible()
    sent = []
    page.context.on(
        "request", lambda request: sent.append((request.url, request.headers.get("authorization")))
    )
    page.get_by_label("Token").fill(locked.key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    asked = [(url, given) for url, given in sent if "/v1/" in url]
    assert asked
    assert not [url for url, _ in asked if locked.key in url]
    assert {given for _, given in asked} == {f"Bearer {locked.key}"}
    refused(look)


def test_whoever_may_only_read_jobs_sees_jobs_and_changes_nothing(locked, look):
    job_id = locked.submit("greet", {"name": "Ada"}, delay=3600)
    page = look(locked, f"#token={token(locked.signals, 'jobs:read')}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    expect(page.get_by_role("navigation", name="pages").get_by_role("link")).to_have_text(["Jobs"])
    page.get_by_role("link", name=f"job {job_id}").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_disabled()
    expect(page.get_by_role("button", name="Cancel")).to_have_attribute(
        "title", "needs the scope jobs:write"
    )
    expect(page.get_by_role("region", name="Attempts")).to_contain_text("the scope operator")
    page.goto(f"{locked.url}/#/dead")
    expect(page.get_by_role("main")).to_contain_text("needs the scope operator")


def test_whoever_has_one_tenant_sees_no_other(locked, look):
    mine = locked.submit("greet", {"name": "Ada"}, delay=3600, tenant="acme")
    other = locked.submit("greet", {"name": "Grace"}, delay=3600, tenant="other")
    held = token(locked.signals, "jobs:read", "jobs:write", tenant="acme")
    page = look(locked, f"#token={held}")
    expect(page.get_by_role("link", name=f"job {mine}")).to_be_visible()
    expect(page.get_by_role("link", name=f"job {other}")).to_have_count(0)
    page.get_by_role("link", name=f"job {mine}").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the job").click()
    locked.becomes("cancelled", mine)
    page.goto(f"{locked.url}/#/jobs/{other}")
    expect(page.get_by_role("alert").first).to_contain_text(other)
    look.sins[-1].forgive("status of 404")


def test_a_token_whose_time_is_over_is_asked_for_again_where_one_was(locked, look):
    page = look(locked, f"#token={token(locked.signals, 'jobs:read', expires='6s')}&/jobs?type=x")
    expect(page.get_by_text("No job fits.")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("token expired", timeout=30_000)
    page.get_by_label("Token").fill(locked.key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    expect(page.get_by_label("Type")).to_have_value("x")
    refused(look)


def test_what_is_about_all_tenants_is_not_shown_to_one(locked, look):
    held = token(locked.signals, "operator", "jobs:read", tenant="acme")
    page = look(locked, f"#token={held}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    menu = page.get_by_role("navigation", name="pages").get_by_role("link")
    expect(menu).to_have_text(["Jobs", "Dead letters", "Schedules"])
    page.goto(f"{locked.url}/#/workers")
    expect(page.get_by_role("main")).to_contain_text("only for the tenant acme")
