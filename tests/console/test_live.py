"""Pages follow what happens: by the stream of changes, and without it by asking again."""

from playwright.sync_api import expect


def test_the_overview_follows_what_happens(own, look):
    page = look(own)
    expect(page.get_by_title("how changes come to this page")).to_have_text("live")
    expect(page.get_by_text("No dead letters.")).to_be_visible()
    own.died(2)
    expect(page.get_by_role("link", name="Dead letters 2")).to_be_visible()
    row = page.get_by_role("row", name="the bank does not answer")
    expect(row.get_by_role("cell").first).to_have_text("2")


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
    page = look(own, "#/jobs")
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
    expect(page.get_by_text("No job fits.")).to_be_visible()
    page.context.set_offline(True)
    expect(page.get_by_role("alert")).to_contain_text("the service does not answer")
    page.context.set_offline(False)
    expect(page.get_by_role("alert")).to_have_count(0)
    look.sins[-1].forgive("ERR_INTERNET")
