"""The console: its page and the files that the page loads."""

from __future__ import annotations

from lamplighter.model.names import shown
from lamplighter.server import assets
from lamplighter.server.assets import ASK_AGAIN, FOR_EVER, HEADERS, Asset
from lamplighter.server.errors import UnknownPath
from lamplighter.server.gate import header
from lamplighter.server.route import HTML, Answer, Nothing, Reply, Request, route


def file_answers(media: str, text: str, example: str) -> tuple[Answer, Answer]:
    """Declare how a file is answered: with what is in it, or that it is known already."""
    tag = {"ETag": "Tells this content from others, for `If-None-Match`."}
    whole = Answer(status=200, kind=str, media=media, text=text, example=example, headers=tag)
    known = Answer(
        status=304, kind=str, media=None, text="It is what `If-None-Match` names.", example=""
    )
    return whole, known


@route(
    "GET",
    "/",
    scope=None,
    summary="Give the page of the console.",
    answers=file_answers(HTML, "The page.", "<!doctype html>"),
    errors=[UnknownPath],
)
async def page(request: Request[Nothing, None]) -> Reply:
    """Return the page; whoever has no token is asked for one there."""
    return sent(request, _file("index.html"), ASK_AGAIN)


@route(
    "GET",
    "/favicon.svg",
    scope=None,
    summary="Give the sign of the console.",
    answers=file_answers("image/svg+xml", "The picture.", "<svg/>"),
    errors=[UnknownPath],
)
async def sign(request: Request[Nothing, None]) -> Reply:
    """Return the picture."""
    return sent(request, _file("favicon.svg"), ASK_AGAIN)


@route(
    "GET",
    "/assets/{name}",
    scope=None,
    summary="Give a file that the console's page loads.",
    answers=file_answers("*/*", "The file, in the media type of its kind.", "body {}"),
    errors=[UnknownPath],
)
async def file(request: Request[Nothing, None]) -> Reply:
    """Return one of the files; their names change with their content."""
    return sent(request, _file(f"assets/{request.path['name']}"), FOR_EVER)


def sent(request: Request[Nothing, None], asset: Asset, keep: str) -> Reply:
    """Return what is served as it is, unless whoever asks has it already."""
    given = request.scope["headers"]
    content, encoding = asset.for_(header(given, b"accept-encoding"))
    headers = {**HEADERS, **encoding, "ETag": asset.tag, "Cache-Control": keep}
    if assets.is_known(header(given, b"if-none-match"), asset.tag):
        headers.pop("Content-Encoding", None)
        return Reply(304, b"", headers, media=asset.media)
    return Reply(200, content, headers, media=asset.media)


def _file(name: str) -> Asset:
    found = assets.built()
    if name in found:
        return found[name]
    if "index.html" not in found:
        raise UnknownPath(
            "the console is not part of this installation",
            hint="`make console` builds it in a checkout of the sources; the API is all there",
            value=name,
        )
    raise UnknownPath(
        f"the console has no file {shown(name)}", hint="load the page anew", value=name
    )
