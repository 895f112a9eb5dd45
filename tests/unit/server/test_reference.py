"""The page that describes the interface: complete, escaped, and without anything from outside."""

import copy
import re
from html.parser import HTMLParser

import pytest

from lamplighter.server import openapi, reference
from lamplighter.server.routes import TABLE


class Reader(HTMLParser):
    """Reads a page: its texts, its anchors and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        self.attributes |= set(given)
        if "id" in given:
            self.ids.append(given["id"])
        if "href" in given:
            self.links.append(given["href"])
        if tag not in {"meta", "link"}:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data

    @property
    def whole(self) -> bool:
        return not self._open


@pytest.fixture
def page() -> Reader:
    return Reader(reference.page(openapi.document(TABLE)).content.decode())


def test_every_route_is_there_with_its_scope(page):
    assert page.whole
    for route in TABLE:
        assert route.name in page.ids
        assert f"{route.method} {route.path}" in page.text
        assert route.summary.replace("`", "") in page.text
    scopes = {route.scope.value for route in TABLE if route.scope}
    assert all(f"scope {scope}" in page.text for scope in scopes)


def test_every_link_leads_somewhere(page):
    inside = {link[1:] for link in page.links if link.startswith("#")}
    assert inside <= set(page.ids)
    assert {link for link in page.links if not link.startswith("#")} == {
        "reference.css",
        "openapi.json",
    }


def test_nothing_comes_from_outside_and_nothing_is_inline(page):
    assert not {"script", "style", "img", "iframe"} & set(page.tags)
    assert not {"style", "onclick", "onload", "src"} & page.attributes
    assert not re.search(r"url\(|@import|https?:", reference.style().content.decode())


async def test_it_is_served_with_its_style_sheet(call):
    page = await call("GET", "/v1/reference")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    style = await call("GET", "/v1/reference.css")
    assert style.headers["content-type"] == "text/css; charset=utf-8"
    assert b"prefers-color-scheme: dark" in style.body
    again = await call("GET", "/v1/reference", headers={"if-none-match": page.headers["etag"]})
    assert again.status == 304


HOSTILE = '"><script>alert(1)</script>`<img src=x onerror=alert(1)>`&amp;'


def hostile(value: object) -> object:
    """Put the same text into every field of a document."""
    if isinstance(value, dict):
        return {key: hostile(each) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each) for each in value]
    return HOSTILE if isinstance(value, str) else value


def test_whatever_stands_in_the_document_is_only_text():
    document = copy.deepcopy(openapi.document(TABLE))
    paths = document["paths"].values()
    document["paths"] = {f"{n}{HOSTILE}": hostile(each) for n, each in enumerate(paths)}
    document["components"]["schemas"] = {HOSTILE: hostile({"description": "x", "type": "object"})}
    document["info"] = hostile(document["info"])
    page = Reader(reference.page(document).content.decode())
    assert page.whole
    assert not {"script", "img"} & set(page.tags)
    assert "<script>alert(1)</script>" in page.text
