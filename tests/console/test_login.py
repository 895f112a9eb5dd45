"""Who may look: a session that a token or a one-time link begins, and what it allows."""

import json

import pytest
from playwright.sync_api import expect

from tests.console.site import command, site

REFUSED = (401, 403)


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locked")
    command(folder, "migrate")
    with site(folder, "--require-token", key=token(folder, "admin")) as made:
        yield made


def token(folder, *scopes: str, **more: str) -> str:
    """Make a token."""
    options = [part for scope in scopes for part in ("--scope", scope)]
    options += [part for name, value in more.items() for part in (f"--{name}", value)]
    printed = command(folder, "token", "create", "--name", "tester", "--json", *options)
    return json.loads(printed)["token"]


def link(folder, *scopes: str, to: str = "/", **more: str) -> str:
    """Make a link that logs in once; gives what stands behind the address."""
    options = [part for scope in scopes for part in ("--scope", scope)]
    options += [part for name, value in more.items() for part in (f"--{name}", value)]
    printed = command(folder, "token", "login", "--name", "tester", "--json", *options)
    return f"#code={json.loads(printed)['code']}&{to}"


def refused(look) -> None:
    """Forget what the browser noted about a 401, as it must."""
    look.sins[-1].forgive("status of 401")


def test_without_a_token_one_is_asked_for(locked, look):
    page = look(locked, "#/jobs?status=dead")
    page.get_by_label("Token").fill("wrong" * 10)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("does not take this")
    page.get_by_label("Token").fill(locked.key)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    expect(page.get_by_label("Status")).to_have_value("dead")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    refused(look)


def test_a_link_logs_in_once_and_is_of_no_use_afterwards(locked, look):
    once = link(locked.signals, "admin")
    page = look(locked, once)
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    code = once.partition("=")[2].partition("&")[0]
    assert code not in page.url
    assert code not in page.content()
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    other = look(locked, once)
    expect(other.get_by_role("alert")).to_contain_text("used before")
    refused(look)


def test_no_script_can_read_what_the_session_is(locked, look):
    page = look(locked, link(locked.signals, "admin"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    kept = page.evaluate(
        "JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}, name])"
    )
    assert cookie["value"] not in kept
    assert "llc_" not in kept


def test_another_link_does_not_replace_who_is_logged_in_unasked(locked, look):
    page = look(locked, link(locked.signals, "jobs:read"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    look.sins[-1].forgive("status of 409")
    page.goto(f"{locked.url}/{link(locked.signals, 'admin')}")
    expect(page.get_by_role("alert")).to_contain_text("logged in as somebody else")
    page.get_by_role("button", name="Stay logged in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    page.goto(f"{locked.url}/{link(locked.signals, 'admin')}")
    page.get_by_role("button", name="Log in as the other").click()
    expect(page.get_by_role("navigation", name="pages")).to_contain_text("Overview")


def test_whoever_logs_out_is_asked_again(locked, look):
    page = look(locked, link(locked.signals, "admin"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    kept = page.context.cookies()
    page.get_by_role("button", name="log out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    # The service knows that it is over, whoever has the cookie.
    page.context.add_cookies(kept)
    page.reload()
    expect(page.get_by_label("Token")).to_be_visible()
    refused(look)


def test_the_token_travels_once_and_only_to_log_in(locked, look):
    page = look(locked, "#/")
    expect(page.get_by_label("Token")).to_be_visible()
    sent = []
    page.context.on("request", lambda request: sent.append(request))  # noqa: PLW0108
    page.get_by_label("Token").fill(locked.key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("live")
    asked = [request for request in sent if "/v1/" in request.url]
    assert len(asked) > 1
    assert not [request for request in asked if "authorization" in request.headers]
    carried = [request for request in asked if locked.key in f"{request.url}{request.post_data}"]
    assert [(one.method, one.url) for one in carried] == [("POST", f"{locked.url}/v1/session")]
    refused(look)


def test_whoever_may_only_read_jobs_sees_jobs_and_changes_nothing(locked, look):
    job_id = locked.submit("greet", {"name": "Ada"}, delay=3600)
    page = look(locked, link(locked.signals, "jobs:read"))
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


@pytest.mark.parametrize(
    ("scope", "pages"),
    [
        ("operator:read", ["Overview", "Workers", "Queues", "Tenants"]),
        ("jobs:read", ["Jobs"]),
        ("jobs:write", []),
        ("schedules:read", ["Schedules"]),
        ("schedules:write", []),
    ],
)
def test_with_one_scope_no_page_asks_for_what_is_refused(locked, look, scope, pages):
    job_id = locked.submit("greet", {"name": "Ada"}, delay=3600)
    nightly = {"id": "nightly", "type": "greet", "arguments": {"name": "Ada"}, "every": 86_400}
    locked.ask("POST", "/v1/schedules", nightly)
    page = look(locked, link(locked.signals, scope))
    refusals = []
    page.on("response", lambda one: refusals.append(one.url) if one.status in REFUSED else None)
    expect(page.get_by_title("how changes come to this page")).to_be_visible()
    menu = page.get_by_role("navigation", name="pages").get_by_role("link")
    expect(menu).to_have_text(pages)
    offered = [each.get_attribute("href") for each in menu.all()]
    # Others are reached by a link, and say what they need.
    for place in (
        *offered,
        "#/dead",
        f"#/jobs/{job_id}",
        "#/schedules/nightly",
        "#/schedules/nightly?edit=1",
        "#/schedules?new=1",
    ):
        page.goto(f"{locked.url}/{place}")
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
        expect(page.get_by_title("how changes come to this page")).not_to_have_text("connecting")
        expect(page.get_by_role("alert")).to_have_count(0)
    assert refusals == []


def test_whoever_may_only_look_on_sees_an_overview_without_dead_letters(locked, look):
    page = look(locked, link(locked.signals, "operator:read"))
    expect(page.get_by_role("link", name="Waiting")).to_be_visible()
    expect(page.get_by_role("region", name="throughput")).to_be_visible()
    expect(page.get_by_role("region", name="Dead letters")).to_have_count(0)
    # Who may listen to changes may read jobs.
    expect(page.get_by_title("how changes come to this page")).to_have_text("every 5 s")
    page = look(locked, link(locked.signals, "operator"))
    expect(page.get_by_role("region", name="Dead letters")).to_be_visible()
    expect(page.get_by_title("how changes come to this page")).to_have_text("live")


def test_whoever_has_one_tenant_sees_no_other(locked, look):
    mine = locked.submit("greet", {"name": "Ada"}, delay=3600, tenant="acme")
    other = locked.submit("greet", {"name": "Grace"}, delay=3600, tenant="other")
    page = look(locked, link(locked.signals, "jobs:read", "jobs:write", tenant="acme"))
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
    page = look(locked, "#/jobs?type=x")
    page.get_by_label("Token").fill(token(locked.signals, "jobs:read", expires="6s"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("No jobs match the filter.")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("token expired", timeout=30_000)
    page.get_by_label("Token").fill(locked.key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    expect(page.get_by_label("Type")).to_have_value("x")
    refused(look)


def test_what_is_about_all_tenants_is_not_shown_to_one(locked, look):
    page = look(locked, link(locked.signals, "operator", "jobs:read", tenant="acme"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    menu = page.get_by_role("navigation", name="pages").get_by_role("link")
    expect(menu).to_have_text(["Jobs", "Dead letters", "Schedules"])
    page.goto(f"{locked.url}/#/workers")
    expect(page.get_by_role("main")).to_contain_text("only for the tenant acme")


def test_a_link_in_another_tab_needs_no_other_login(locked, look):
    page = look(locked, link(locked.signals, "admin"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Queues", exact=True).click(modifiers=["Control"])
    expect(opened.value.get_by_role("heading", level=1)).to_have_text("Queues")
    expect(opened.value.get_by_label("Token")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
