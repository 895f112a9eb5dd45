"""The service inside another application: below its path, and by its word of who is asking."""

import dataclasses
import subprocess
import sys

import pytest
from starlette.applications import Starlette
from starlette.authentication import SimpleUser
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from lamplighter import App
from lamplighter.model.errors import InvalidOption
from lamplighter.server.auth import Principal, Scope
from lamplighter.server.mounting import Mountable, mountable
from tests.unit.server.conftest import Caller

KEY = "k" * 32
USERS = {
    "ada": Principal(name="ada"),
    "bob": Principal(name="bob", tenant="b", scopes=frozenset({Scope.JOBS_READ})),
}


async def who(asking: HTTPConnection) -> Principal | None:
    """Take the word of the application's own middleware."""
    user = asking.scope.get("user")
    return None if user is None else USERS.get(user.display_name)


class Sessions:
    """A middleware of the application: knows users by a cookie."""

    def __init__(self, app) -> None:
        self._app = app

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "http" and (name := HTTPConnection(scope).cookies.get("user")):
            scope["user"] = SimpleUser(name)
        await self._app(scope, receive, send)


@pytest.fixture
async def mounted(tmp_path):
    """Mount services below `/lamp` of an application; closes them at the end."""
    made: list[Mountable] = []

    def mount(**arguments) -> Caller:
        app = App(f"sqlite:///{tmp_path}/jobs.db")
        app.configure(dataclasses.replace(app.settings, http_unknown_types=1))
        service = mountable(app, **arguments)
        made.append(service)
        home = Route("/", lambda _: PlainTextResponse("at home"))
        host = Starlette(routes=[home, Mount("/lamp", service)])
        return Caller(Sessions(host))

    yield mount
    for each in made:
        await each.service.close()


def test_somebody_has_to_say_who_may_call():
    for arguments in ({}, {"keys": [KEY], "door": who}, {"door": who, "open_to_everybody": True}):
        with pytest.raises(InvalidOption) as raised:
            mountable(App("sqlite://"), **arguments)
        for way in ("keys", "door", "open_to_everybody"):
            assert way in raised.value.hint


@pytest.mark.parametrize("keys", [KEY, KEY.encode(), ["short"], [KEY, ""], [KEY, 7], ["ö" * 32]])
def test_keys_that_can_be_guessed_are_refused_and_not_shown(keys):
    with pytest.raises(InvalidOption) as raised:
        mountable(App("sqlite://"), keys=keys)
    assert "keys" in raised.value.cause
    assert "short" not in str(raised.value)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize("way", [{"keys": [KEY]}, {"door": who}, {"open_to_everybody": True}])
def test_a_secret_that_can_be_guessed_is_refused_and_not_shown(way):
    app = App("sqlite://")
    app.configure(dataclasses.replace(app.settings, http_secret="changeme"))
    with pytest.raises(InvalidOption, match="http_secret") as raised:
        mountable(app, **way)
    assert "changeme" not in str(raised.value)


async def test_it_works_below_a_path(mounted):
    call = mounted(open_to_everybody=True)
    away = {"host": "shop.example"}
    body = {"type": "charge", "arguments": {}, "delay": 60}
    made = await call("POST", "/lamp/v1/jobs", send=body, headers=away)
    assert made.status == 201
    job_id = made.json["id"]
    assert made.headers["location"] == f"/lamp/v1/jobs/{job_id}"
    assert (await call("GET", made.headers["location"])).json["id"] == job_id
    schedule = {"id": "t/1", "type": "charge", "arguments": {}, "every": 60}
    made = await call("POST", "/lamp/v1/schedules", send=schedule)
    assert made.headers["location"] == "/lamp/v1/schedules/t%2F1"
    assert (await call("GET", made.headers["location"])).json["id"] == "t/1"
    assert (await call("GET", "/lamp/v1/nothing")).code == "unknown-path"
    assert (await call("GET", "/v1/jobs")).status == 404
    assert (await call("GET", "/")).body == b"at home"


@pytest.mark.parametrize("team", ["%E6%97%A5", "a%0d%0aSet-Cookie: x", "a b%25"])
async def test_a_path_of_any_text_leads_back_to_the_job(tmp_path, team):
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    app.configure(dataclasses.replace(app.settings, http_unknown_types=1))
    service = mountable(app, open_to_everybody=True)
    call = Caller(Starlette(routes=[Mount("/{team}", service)]))
    async with service.opened():
        made = await call("POST", f"/{team}/v1/jobs", send={"type": "charge", "delay": 60})
        assert made.status == 201
        assert made.headers["location"].isascii()
        assert made.headers["location"].isprintable()
        shown = await call("GET", made.headers["location"])
        assert shown.json["id"] == made.json["id"]


async def test_its_pages_load_from_below_that_path(mounted):
    call = mounted(door=who)
    for path in ("/lamp/", "/lamp/v1/reference"):
        page = await call("GET", path, headers={"host": "shop.example"})
        assert page.status == 200
        for attribute in (b'href="/', b'src="/'):
            assert attribute not in page.body


async def test_keys_are_asked_for(mounted):
    call = mounted(keys=[KEY])
    assert (await call("GET", "/lamp/v1/jobs")).code == "missing-token"
    good = {"authorization": f"Bearer {KEY}", "host": "shop.example"}
    assert (await call("GET", "/lamp/v1/jobs", headers=good)).status == 200


async def test_the_application_says_who_is_asking(mounted):
    call = mounted(door=who)
    away = {"host": "shop.example"}
    assert (await call("GET", "/lamp/v1/jobs", headers=away)).code == "missing-token"
    assert (await call("GET", "/lamp/healthz", headers=away)).status == 200
    unknown = {**away, "cookie": "user=eve"}
    assert (await call("GET", "/lamp/v1/jobs", headers=unknown)).status == 401
    ada, bob = {**away, "cookie": "user=ada"}, {**away, "cookie": "user=bob"}
    body = {"type": "charge", "arguments": {}, "delay": 60, "tenant": "a"}
    made = await call("POST", "/lamp/v1/jobs", send=body, headers=ada)
    assert made.status == 201
    assert (await call("GET", f"/lamp/v1/jobs/{made.json['id']}", headers=ada)).status == 200
    assert (await call("GET", f"/lamp/v1/jobs/{made.json['id']}", headers=bob)).status == 404
    assert (await call("POST", "/lamp/v1/jobs", send=body, headers=bob)).code == "forbidden"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "https://shop.example"}, 200),
        ({"origin": "https://shop.example", "sec-fetch-site": "same-origin"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"origin": "https://shop.example.evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"origin": "https://a.shop.example", "sec-fetch-site": "same-site"}, 403),
    ],
)
async def test_a_page_of_another_site_changes_nothing_with_our_cookies(mounted, headers, status):
    call = mounted(door=who)
    ada = {"host": "shop.example", "cookie": "user=ada"}
    body = {"type": "charge", "arguments": {}, "delay": 60}
    made = await call("POST", "/lamp/v1/jobs", send=body, headers=ada)
    path = f"/lamp/v1/jobs/{made.json['id']}/hold"
    assert (await call("POST", path, headers={**ada, **headers})).status == status


async def test_the_store_is_open_for_the_life_of_the_application(tmp_path):
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    service = mountable(app, keys=[KEY])
    async with service.opened():
        assert (tmp_path / "jobs.db").exists()
        assert service.service.client.connections.used
    assert not service.service.client.connections.used


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from lamplighter.server.{module} import {name}
"""


@pytest.mark.parametrize(
    ("missing", "module", "name"),
    [
        ("starlette", "mounting", "mountable"),
        ("starlette", "auth", "Principal"),
        ("jsonschema_rs", "mounting", "mountable"),
        ("jwt", "mounting", "mountable"),
        ("cryptography", "mounting", "mountable"),
    ],
)
def test_without_the_extra_an_import_says_what_to_install(missing, module, name):
    program = WITHOUT.format(missing=missing, module=module, name=name)
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert f"ModuleNotFoundError: the HTTP service needs `{missing}`" in ended.stderr
    assert ended.stderr.endswith("pip install '.[server]'\n")


def test_a_mounted_service_needs_no_server_of_ours():
    program = WITHOUT.format(missing="uvicorn", module="mounting", name="mountable")
    subprocess.run([sys.executable, "-c", program], check=True)
