"""The reference as a page: the OpenAPI document in HTML, with everything in it escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, cast

from lamplighter.server.assets import Asset, asset
from lamplighter.server.problem import MEDIA_TYPE
from lamplighter.server.route import CSS, HTML

Part = Mapping[str, Any]

_STYLE = Path(__file__).with_name("reference.css")
_REFERENCE = "#/components/schemas/"
_METHODS = ("get", "post", "put", "patch", "delete")

_INTRO = """\
<p>Send and receive JSON. Where the service asks for tokens, send yours as
<code>Authorization: Bearer TOKEN</code>; each route names the scope that it needs. Whatever is
refused is answered as <code>application/problem+json</code> with a stable <code>code</code>, what
is wrong and what to do about it. Every answer has the header <code>X-Request-Id</code>; where
requests are limited, the <code>RateLimit-</code> headers tell what is left. Programs read the
same as <a href="openapi.json">OpenAPI 3.1</a>.</p>"""


@cache
def style() -> Asset:
    """Return the style sheet."""
    return asset(_STYLE.read_bytes(), CSS)


def page(document: Part) -> Asset:
    """Write the page that describes all routes of a document."""
    info = document["info"]
    operations = [
        (method, path, methods[method])
        for path, methods in document["paths"].items()
        for method in _METHODS
        if method in methods
    ]
    schemas: Mapping[str, Part] = document["components"]["schemas"]
    text = "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(info['title'])}: HTTP reference</title>",
            '<link rel="stylesheet" href="reference.css">\n</head>\n<body>',
            f"<header><h1>{escape(info['title'])}</h1>",
            f"<p>HTTP reference, version {escape(info['version'])}</p></header>",
            f'<nav aria-label="Routes">{_contents(operations)}</nav>\n<main>',
            _INTRO,
            *(_operation(*operation) for operation in operations),
            '<h2 id="schemas">Schemas</h2>',
            *(_component(name, schema) for name, schema in sorted(schemas.items())),
            "</main>\n</body>\n</html>\n",
        )
    )
    return asset(text.encode(), HTML)


def _contents(operations: Iterable[tuple[str, str, Part]]) -> str:
    items = (
        f'<li><a href="#{escape(found["operationId"])}">{_method(method)} '
        f"<code>{escape(path)}</code></a></li>"
        for method, path, found in operations
    )
    return f'<ul>{"".join(items)}<li><a href="#schemas">Schemas</a></li></ul>'


def _operation(method: str, path: str, found: Part) -> str:
    scope = found.get("x-scope")
    needs = f"scope <code>{escape(scope)}</code>" if scope else "no token needed"
    refusals = {
        status: answer
        for status, answer in found["responses"].items()
        if MEDIA_TYPE in answer["content"]
    }
    answers = {s: a for s, a in found["responses"].items() if s not in refusals}
    return "\n".join(
        (
            f'<section id="{escape(found["operationId"])}">',
            f"<h2>{_method(method)} <code>{escape(path)}</code></h2>",
            f'<p>{_words(found["summary"])} <span class="scope">{needs}</span></p>',
            _parameters(found.get("parameters", ())),
            _body(found.get("requestBody")),
            "<h3>Answers</h3>",
            *(_answer(status, answer) for status, answer in answers.items()),
            "<details><summary>Refusals</summary><ul>",
            *(_refusal(status, answer) for status, answer in refusals.items()),
            "</ul></details>\n</section>",
        )
    )


def _parameters(parameters: Iterable[Part]) -> str:
    rows = [
        _row(
            f"<code>{escape(each['name'])}</code>",
            escape(each["in"]) + (", required" if each.get("required") else ""),
            _kind(each["schema"]),
            _words(each.get("description") or each["schema"].get("description", "")),
        )
        for each in parameters
    ]
    return _table("Parameters", ("name", "in", "type", "meaning"), rows)


def _body(body: Part | None) -> str:
    if body is None:
        return ""
    return "<h3>Body</h3>" + "".join(_media(media, each) for media, each in body["content"].items())


def _answer(status: str, answer: Part) -> str:
    content = "".join(_media(media, each) for media, each in answer["content"].items())
    headers = [
        _row(f"<code>{escape(name)}</code>", _words(each.get("description", "")))
        for name, each in answer.get("headers", {}).items()
        if "$ref" not in each
    ]
    said = _table("Headers", ("header", "meaning"), headers)
    return f"<h4>{escape(status)}</h4><p>{_words(answer['description'])}</p>{said}{content}"


def _refusal(status: str, answer: Part) -> str:
    codes = answer["content"][MEDIA_TYPE]["examples"]
    said = "; ".join(
        f"<code>{escape(code)}</code> {_words(each['value']['detail'])}"
        for code, each in codes.items()
    )
    return f"<li><b>{escape(status)}</b> {said}</li>"


def _media(media: str, content: Part) -> str:
    example: object = content.get("example")
    text = example if isinstance(example, str) else json.dumps(example, indent=2)
    return (
        f"<p><code>{escape(media)}</code>: {_kind(content['schema'])}</p>"
        f"<pre><code>{escape(text)}</code></pre>"
    )


def _component(name: str, schema: Part) -> str:
    required = frozenset(cast("list[str]", schema.get("required", [])))
    properties: Mapping[str, Part] = schema.get("properties", {})
    rows = [
        _row(
            f"<code>{escape(field)}</code>",
            _kind(each) + ("" if field in required else ", optional"),
            _words(each.get("description", "")),
        )
        for field, each in properties.items()
    ]
    about = f"<p>{_words(schema['description'])}</p>" if "description" in schema else ""
    table = _table("", ("field", "type", "meaning"), rows) or f"<p>{_kind(schema)}</p>"
    return f'<section id="schema-{escape(name)}"><h3>{escape(name)}</h3>{about}{table}</section>'


def _kind(schema: Part) -> str:
    """Say in a few words what a value may be."""
    if "$ref" in schema:
        name = escape(str(schema["$ref"]).removeprefix(_REFERENCE))
        return f'<a href="#schema-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"<code>{escape(json.dumps(each))}</code>" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {_kind(schema.get('items', {}))}"
    name = escape(str(schema.get("format") or schema.get("type") or "any value"))
    limits = [
        f"{word} {escape(str(schema[key]))}"
        for key, word in (("minimum", "from"), ("maximum", "to"), ("maxLength", "at most"))
        if key in schema
    ]
    default = schema.get("default")
    if default not in (None, [], {}, ""):
        limits.append(f"default {escape(json.dumps(default))}")
    return ", ".join((name, *limits))


def _words(text: str) -> str:
    """Escape a text; what stands between backticks is code."""
    parts = text.split("`")
    return "".join(
        f"<code>{escape(part)}</code>" if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def _method(method: str) -> str:
    return f'<span class="method {escape(method)}">{escape(method.upper())}</span>'


def _row(*cells: str) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _table(title: str, columns: Iterable[str], rows: list[str]) -> str:
    if not rows:
        return ""
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    above = f"<h3>{escape(title)}</h3>" if title else ""
    return (
        f'{above}<div class="wide"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
