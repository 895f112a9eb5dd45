"""Under `lamplighter dev` the console opens logged in, and shows that killing costs no job."""

import pytest
from playwright.sync_api import expect

from tests.console.site import stage


@pytest.fixture
def development(tmp_path):
    with stage(tmp_path) as made:
        yield made


def test_a_worker_is_killed_from_the_overview_and_no_job_is_lost(development, look):
    site, address = development
    job_id = site.submit("report", {"steps": 12})
    site.becomes("running", job_id)
    page = look(site, address.removeprefix(f"{site.url}/"))
    panel = page.get_by_role("region", name="In development")
    expect(panel).to_contain_text("0 jobs lost, 0 processes killed")
    panel.get_by_role("button", name="Kill a worker").click()
    expect(panel).to_contain_text("0 jobs lost, 1 process killed")
    expect(panel).to_contain_text("back after")
    site.sign("release")
    site.becomes("succeeded", job_id)
    expect(panel).to_contain_text("0 jobs lost, 1 process killed")
