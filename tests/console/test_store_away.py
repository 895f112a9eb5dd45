"""A store that does not answer is said to be away, and nothing from before is shown as of now."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.site import Site, service
from tests.faults.processes import tree_of
from tests.servers import postgres, valkey

AT_MOST = 5_000
"""Milliseconds within which the console says that the store is away."""


@dataclass
class Fault:
    """A service on a store that can be taken away and brought back."""

    site: Site
    begin: Callable[[], object]
    end: Callable[[], object]


@contextmanager
def moved(folder: Path) -> Iterator[Fault]:
    with service(folder) as site:
        here, elsewhere = folder / "jobs.db", folder / "elsewhere.db"
        yield Fault(site, lambda: here.rename(elsewhere), lambda: elsewhere.rename(here))


@contextmanager
def killed_valkey(folder: Path) -> Iterator[Fault]:
    with (
        valkey.start(valkey.any_program(), folder) as server,
        service(folder, "--url", server.url()) as site,
    ):
        yield Fault(site, server.kill9, server.restart)


@contextmanager
def frozen_valkey(folder: Path) -> Iterator[Fault]:
    with (
        valkey.start(valkey.any_program(), folder) as server,
        service(folder, "--url", server.url()) as site,
    ):
        yield Fault(site, server.freeze, server.thaw)


@contextmanager
def killed_postgres(folder: Path) -> Iterator[Fault]:
    with (
        postgres.start(postgres.newest_server(), folder) as server,
        service(folder, "--url", server.url()) as site,
    ):
        yield Fault(site, server.kill9, server.run)


@contextmanager
def frozen_postgres(folder: Path) -> Iterator[Fault]:
    with (
        postgres.start(postgres.newest_server(), folder) as server,
        service(folder, "--url", server.url()) as site,
        ExitStack() as stack,
    ):

        def tell(number: int) -> None:
            # Stopped first, it starts no more children while they are counted.
            os.kill(server.pid, number)
            for child in tree_of(server.pid):
                with suppress(ProcessLookupError):
                    os.kill(child.pid, number)

        stack.callback(tell, signal.SIGCONT)  # else it could not be stopped in the end
        yield Fault(site, lambda: tell(signal.SIGSTOP), lambda: tell(signal.SIGCONT))


FAULTS = [moved, killed_valkey, frozen_valkey, killed_postgres, frozen_postgres]


def link(page: Page):
    return page.get_by_title("how changes come to this page")


def tile(page: Page):
    return page.get_by_role("link", name=re.compile("^Waiting"))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_store_that_is_gone_is_said_so_in_every_tab(tmp_path, look, fault):
    with fault(tmp_path) as found:
        found.site.submit("greet", {"name": "Ada"}, delay=3600)
        page = look(found.site)
        look.sins[-1].forgive("status of 503")
        look.sins[-1].forgive("ERR_")
        expect(link(page)).to_have_text("live")
        expect(tile(page)).to_contain_text("1 later")
        found.begin()
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text(
            re.compile(r"The store does not answer, since \d\d:\d\d:\d\d"), timeout=AT_MOST
        )
        expect(link(page)).to_have_text("no store")
        for claim in ("No dead letters.", "this minute", "now"):
            expect(page.get_by_text(claim, exact=True)).to_have_count(0)
        expect(page.get_by_role("main")).to_have_class("old")
        # A new tab is told nothing that was known before.
        tab = page.context.new_page()
        tab.goto(f"{found.site.url}/")
        expect(tab.get_by_role("alert")).to_contain_text(
            "The store does not answer", timeout=AT_MOST
        )
        expect(tile(tab)).to_have_count(0)
        expect(tab.get_by_text("No dead letters.")).to_have_count(0)
        expect(link(tab)).to_have_text("no store")
        found.end()
        for each in (page, tab):
            expect(each.get_by_role("alert")).to_have_count(0, timeout=30_000)
            expect(tile(each)).to_contain_text("1 later", timeout=30_000)
            expect(link(each)).to_have_text("live", timeout=45_000)


@pytest.mark.parametrize("fault", [moved, frozen_valkey])
def test_it_is_said_also_where_no_stream_tells(tmp_path, look, fault):
    with fault(tmp_path) as found:
        page = look(found.site, "#/nowhere")
        look.sins[-1].forgive("status of 50")
        look.sins[-1].forgive("ERR_")
        page.route("**/v1/events*", lambda route: route.fulfill(status=502, body=""))
        page.goto(f"{found.site.url}/#/jobs")
        expect(page.get_by_text("There are no jobs.")).to_be_visible()
        expect(link(page)).to_have_text("every 5 s")
        found.begin()
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("The store does not answer", timeout=AT_MOST)
        expect(page.get_by_text("There are no jobs.")).to_have_count(0)
        found.end()
        expect(alert).to_have_count(0, timeout=30_000)
        expect(page.get_by_text("There are no jobs.")).to_be_visible(timeout=30_000)
