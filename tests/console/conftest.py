"""A browser that looks at a real service, and notes whatever a console must never do."""

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect, sync_playwright

from tests.console.site import Site, site

expect.set_options(timeout=15_000)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium")
    assert found, "there is no `chromium`; `make console-test` installs it, or says how"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Iterator[Site]:
    """A service for all tests that do not mind what others have done to it."""
    with site(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture
def own(tmp_path) -> Iterator[Site]:
    """A service for one test."""
    with site(tmp_path) as made:
        yield made


class Sins:
    """What a page has done that it must not do."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.seen: list[str] = []
        self._forgiven: list[str] = []
        self.on_dialog: Callable[[Dialog], None] | None = None
        """Takes the dialogs of the browser, where a test expects one."""
        self._origin = origin
        context.add_init_script(
            "addEventListener('securitypolicyviolation', (event) =>"
            " console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))"
        )
        context.on("dialog", self._dialog)
        context.on("weberror", lambda error: self.seen.append(f"error: {error.error}"))
        context.on("console", self._console)
        context.on("request", self._request)

    def forgive(self, words: str) -> None:
        """Let pass what the browser notes about a refusal that a test asked for."""
        self._forgiven.append(words)

    @property
    def unforgiven(self) -> list[str]:
        return [sin for sin in self.seen if not any(words in sin for words in self._forgiven)]

    def _dialog(self, dialog) -> None:
        if self.on_dialog is not None:
            self.on_dialog(dialog)
            return
        self.seen.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, message) -> None:
        if message.type == "error":
            self.seen.append(f"{message.text} {message.location['url']}")

    def _request(self, request) -> None:
        if not request.url.startswith((self._origin, "data:", "blob:")):
            self.seen.append(f"request to {request.url}")


Look = Callable[..., Page]


@pytest.fixture
def look(browser) -> Iterator[Look]:
    """Open the console of a service; at the end, it has done nothing that it must not do."""
    contexts: list[BrowserContext] = []
    watched: list[Sins] = []

    def look(at: Site, path: str = "#/", *, width: int = 1200, **options) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        watched.append(Sins(context, at.url))
        page = context.new_page()
        page.goto(f"{at.url}/{path}")
        return page

    look.sins = watched
    yield look
    for context in contexts:
        context.close()
    assert [sin for sins in watched for sin in sins.unforgiven] == []
