"""The console's files: fixed, from memory, under a strict policy."""

import gzip

import pytest

from lamplighter.server import assets

PAGE = b'<!doctype html><script type="module" src="./assets/index-1a2b.js"></script>'


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A console that was built."""
    folder = tmp_path / "console"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_bytes(PAGE)
    (folder / "favicon.svg").write_text("<svg/>")
    (folder / "assets" / "index-1a2b.js").write_text("let lamp = 1;")
    (folder / "assets" / "index-1a2b.css").write_text("body {}")
    (folder / "secret.txt").write_text("not a file of the console")
    (tmp_path / "outside.js").write_text("not inside")
    found = assets.built(folder)
    monkeypatch.setattr(assets, "built", lambda: found)
    return folder


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


@pytest.mark.parametrize(
    ("path", "media", "keep"),
    [
        ("/", "text/html; charset=utf-8", "no-cache"),
        ("/favicon.svg", "image/svg+xml", "no-cache"),
        (
            "/assets/index-1a2b.js",
            "text/javascript; charset=utf-8",
            "public, max-age=31536000, immutable",
        ),
        (
            "/assets/index-1a2b.css",
            "text/css; charset=utf-8",
            "public, max-age=31536000, immutable",
        ),
    ],
)
async def test_files_come_with_strict_headers(call, files, path, media, keep):
    response = await call("GET", path)
    assert response.status == 200
    name = path.lstrip("/") or "index.html"
    assert response.body == (files / name).read_bytes()
    assert response.headers["content-type"] == media
    assert response.headers["cache-control"] == keep
    assert response.headers["content-security-policy"] == POLICY
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["cross-origin-opener-policy"] == "same-origin"


async def test_what_a_browser_has_is_not_sent_again(call, files):
    tag = (await call("GET", "/")).headers["etag"]
    for named in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        response = await call("GET", "/", headers={"if-none-match": named})
        assert (response.status, response.body) == (304, b"")
        assert response.headers["etag"] == tag
    assert (await call("GET", "/", headers={"if-none-match": '"other"'})).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/assets/nobody.js",
        "/assets/..%2Findex.html",
        "/assets/..%2F..%2Foutside.js",
        "/assets/%2e%2e/index.html",
        "/assets/",
        "/secret.txt",
        "/console",
        "/index.html",
    ],
)
async def test_there_is_nothing_else(call, files, path):
    response = await call("GET", path)
    assert (response.status, response.code) == (404, "unknown-path")


async def test_a_console_that_was_not_built_is_named(call, monkeypatch):
    monkeypatch.setattr(assets, "built", dict)
    for path in ("/", "/favicon.svg", "/assets/index.js"):
        response = await call("GET", path)
        assert (response.status, response.code) == (404, "unknown-path")
        assert "make console" in response.json["hint"]


async def test_nothing_is_changed_through_it(call, files):
    response = await call("POST", "/")
    assert (response.status, response.headers["allow"]) == (405, "GET, HEAD")


def test_the_files_of_this_package_are_read_once():
    found = assets.built()
    assert found is assets.built()
    assert found["index.html"].content == (assets.CONSOLE / "index.html").read_bytes()


@pytest.mark.parametrize("accepted", ["gzip", "br;q=1, gzip;q=0.5", "*"])
async def test_what_is_built_comes_packed_to_whoever_takes_it(call, accepted):
    for name, asset in assets.built().items():
        path = "/" if name == "index.html" else f"/{name}"
        plain = await call("GET", path)
        packed = await call("GET", path, headers={"accept-encoding": accepted})
        assert "content-encoding" not in plain.headers
        if asset.packed is None:
            assert len(asset.content) < 500, name
            continue
        assert packed.headers["content-encoding"] == "gzip", name
        assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
        assert gzip.decompress(packed.body) == plain.body
        assert len(packed.body) < len(plain.body)
        tag = packed.headers["etag"]
        known = await call("GET", path, headers={"accept-encoding": accepted, "if-none-match": tag})
        assert (known.status, known.body) == (304, b"")
    whole = sum(len(asset.content) for asset in assets.built().values())
    sent = sum(len(asset.packed or asset.content) for asset in assets.built().values())
    assert sent < 0.45 * whole
