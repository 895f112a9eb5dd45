"""Pages follow what happens: by the stream of changes, and without it by asking again."""

import os
import re
import signal
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.console.site import service
from tests.faults.processes import tree_of

LISTS = {"jobs": "/v1/jobs", "tenants": "/v1/tenants", "": "/v1/stats"}
"""Pages that read something again when the stream says that it has changed, and what."""


def test_the_overview_follows_what_happens(own, look):
    page = look(own)
    expect(page.get_by_title("how changes come to this page")).to_have_text("live")
    expect(page.get_by_text("No dead letters.")).to_be_visible()
    own.died(2)
    expect(page.get_by_role("link", name="Dead letters 2")).to_be_visible()
    row = page.get_by_role("row", name="the bank does not answer")
    expect(row.get_by_role("cell").first).to_have_text("2")
    chart = page.get_by_role("img", name="Jobs per minute")
    expect(chart).to_have_attribute("aria-label", re.compile(r"failed: last \d, at most [12]\."))


def test_the_list_of_jobs_follows_what_happens(own, look):
    page = look(own, "#/jobs?type=greet")
    expect(page.get_by_title("how changes come to this page")).to_have_text("live")
    expect(page.get_by_text("No jobs match the filter.")).to_be_visible()
    job_id = own.submit("greet", {"name": "Ada"}, delay=3600)
    row = page.get_by_role("row").filter(has_text=job_id)
    expect(row).to_contain_text("scheduled")
    own.ask("DELETE", f"/v1/jobs/{job_id}")
    expect(row).to_contain_text("cancelled")


def test_the_tenants_follow_what_happens(own, look):
    page = look(own, "#/tenants")
    expect(page.get_by_title("how changes come to this page")).to_have_text("live")
    own.submit("greet", {"name": "Ada"}, delay=3600, tenant="acme")
    expect(page.get_by_role("row", name="acme")).to_be_visible()


def test_while_nothing_happens_nothing_is_asked(own, look):
    own.submit("greet", {"name": "Ada"}, delay=3600)
    pages = [look(own, f"#/{place}") for place in LISTS]
    for page in pages:
        expect(page.get_by_title("how changes come to this page")).to_have_text("live")
    pages[0].wait_for_timeout(4_000)  # the first word of the stream is news
    asked = []
    for page in pages:
        page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    pages[0].wait_for_timeout(11_000)  # longer than any pause between two questions
    # Once in a minute they are asked for anyway, and a minute may have begun.
    assert set(asked) <= set(LISTS.values())
    assert len(asked) == len(set(asked))


def test_a_page_asks_again_where_there_is_no_stream(own, look):
    page = look(own, "#/jobs")
    page.route("**/v1/events*", lambda route: route.fulfill(status=502, body="a proxy's page"))
    job_id = own.submit("greet", {"name": "Ada"}, delay=3600)
    page.goto(f"{own.url}/#/jobs/{job_id}")
    expect(page.get_by_label("summary")).to_contain_text("scheduled")
    expect(page.get_by_title("how changes come to this page")).to_have_text("every 5 s")
    own.ask("DELETE", f"/v1/jobs/{job_id}")
    expect(page.get_by_label("summary")).to_contain_text("cancelled")
    look.sins[-1].forgive("status of 502")


def test_a_stream_that_breaks_comes_back(own, look):
    page = look(own, "#/nowhere")
    expect(page.get_by_title("how changes come to this page")).to_have_text("every 5 s")
    broken = []

    def breaking(route) -> None:
        broken.append(route.request.url)
        if len(broken) == 1:
            route.abort()
        else:
            route.continue_()

    page.route("**/v1/events*", breaking)
    page.goto(f"{own.url}/#/")
    expect(page.get_by_title("how changes come to this page")).to_have_text("live")
    assert len(broken) > 1
    own.died(1)
    expect(page.get_by_role("link", name="Dead letters 1")).to_be_visible()
    look.sins[-1].forgive("ERR_FAILED")


def test_a_hidden_tab_asks_for_nothing(own, look):
    page = look(own)
    expect(page.get_by_title("how changes come to this page")).to_have_text("live")
    page.evaluate(
        """() => {
            Object.defineProperty(document, 'hidden', { get: () => window.isHidden });
            window.isHidden = true;
            document.dispatchEvent(new Event('visibilitychange'));
        }"""
    )
    expect(page.get_by_title("how changes come to this page")).to_have_text("paused")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(6_500)  # longer than any pause between two questions
    assert asked == []
    page.evaluate(
        "() => { window.isHidden = false; document.dispatchEvent(new Event('visibilitychange')) }"
    )
    expect(page.get_by_title("how changes come to this page")).to_have_text("live")


def test_a_service_that_is_away_is_said_so_and_comes_back(own, look):
    page = look(own, "#/jobs")
    expect(page.get_by_text("There are no jobs.")).to_be_visible()
    expect(page.get_by_title("how changes come to this page")).to_have_text("live")
    page.context.set_offline(True)
    expect(page.get_by_role("alert")).to_contain_text("The service does not answer")
    expect(page.get_by_text("There are no jobs.")).to_have_count(0)
    page.context.set_offline(False)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_text("There are no jobs.")).to_be_visible()
    look.sins[-1].forgive("ERR_")


def test_nothing_is_said_of_now_while_the_service_is_gone(tmp_path, look):
    with service(tmp_path) as made:
        page = look(made)
        expect(page.get_by_text("No dead letters.")).to_be_visible()
        expect(page.get_by_title("how changes come to this page")).to_have_text("live")
        expect(page.get_by_text("this minute")).to_have_count(2)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(re.compile(r"The service does not answer, since \d\d:\d\d:\d\d"))
    expect(page.get_by_title("how changes come to this page")).to_have_text("no answer")
    for claim in ("No dead letters.", "All is well", "this minute", "now"):
        expect(page.get_by_text(claim, exact=True)).to_have_count(0)
    expect(page.get_by_text(re.compile(r"Nothing was here at \d\d:"))).to_be_visible()
    page.goto(f"{made.url}/#/workers")
    expect(page.get_by_text("Nothing is known yet.")).to_be_visible()
    with service(tmp_path, "--port", str(urlsplit(made.url).port)):
        expect(alert).to_have_count(0)
        expect(page.get_by_text("There is no worker")).to_be_visible()
        expect(page.get_by_title("how changes come to this page")).to_have_text("live")
    look.sins[-1].forgive("ERR_")


def test_a_service_that_stands_still_is_said_not_to_answer(tmp_path, look):
    with service(tmp_path) as made:
        page = look(made)
        status = page.get_by_title("how changes come to this page")
        expect(status).to_have_text("live")
        expect(page.get_by_text("No dead letters.")).to_be_visible()
        (serving,) = [one for one in tree_of(os.getpid()) if "lamplighter serve" in one.command()]
        os.kill(serving.pid, signal.SIGSTOP)
        try:
            alert = page.get_by_role("alert")
            expect(alert).to_contain_text("The service does not answer", timeout=25_000)
            expect(status).to_have_text("no answer")
            expect(page.get_by_text("No dead letters.")).to_have_count(0)
        finally:
            os.kill(serving.pid, signal.SIGCONT)
        expect(alert).to_have_count(0, timeout=30_000)
        expect(status).to_have_text("live", timeout=30_000)
        expect(page.get_by_text("No dead letters.")).to_be_visible()
    look.sins[-1].forgive("ERR_")


def test_a_service_that_is_gone_when_one_comes_is_waited_for(tmp_path, look):
    with service(tmp_path) as made:
        page = look(made)
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        page.route("**/v1/me", lambda route: route.abort())
        page.reload()
        expect(page.get_by_role("alert")).to_contain_text("the service does not answer")
        page.unroute("**/v1/me")
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    look.sins[-1].forgive("ERR_")


def test_who_asks_too_often_is_told_so_and_goes_on_later(tmp_path, look, monkeypatch):
    monkeypatch.setenv("LAMPLIGHTER_HTTP_RATE", "1")
    monkeypatch.setenv("LAMPLIGHTER_HTTP_BURST", "3")
    with service(tmp_path) as made:
        page = look(made)
        expect(page.get_by_role("alert").first).to_contain_text("requests per second")
        expect(page.get_by_role("alert").locator("code").first).to_have_text("http_rate")
        expect(page.get_by_role("alert")).to_have_count(0, timeout=60_000)
        expect(page.get_by_text("No dead letters.")).to_be_visible()
    look.sins[-1].forgive("status of 429")
    look.sins[-1].forgive("ERR_")
