"""Sessions of browsers: begun with a token or a one-time code, kept in a cookie, ended for good."""

import asyncio
import base64
from http.cookies import SimpleCookie

import pytest

from lamplighter import runtime
from lamplighter.model.access import code_of, digest_of, prefix_of
from lamplighter.port.access import NewToken
from lamplighter.server.auth import Principal
from tests.unit.server.clocks import Clock
from tests.unit.server.test_tokens import issue, revoke

HOST = "127.0.0.1:8080"
PAGE = {"sec-fetch-site": "same-origin", "origin": f"http://{HOST}"}
SECRET = "0123456789abcdef" * 4
KEY = "k" * 20 + "0123456789abcdefghij"


@pytest.fixture
def clock():
    made = Clock()
    with runtime.install(made):
        yield made


@pytest.fixture
async def service(make):
    made = make(tokens=True, keys=[KEY], http_secret=SECRET)
    await made.publish("charge")
    return made


class Browser:
    """Keeps cookies, and sends what a page of the console sends."""

    def __init__(self, scene, page: dict[str, str] = PAGE, host: str = HOST) -> None:
        self.scene = scene
        self.page = {**page, "host": host}
        self.cookies: dict[str, str] = {}
        self.csrf = ""
        self.set: list[str] = []

    async def __call__(self, method: str, path: str, send=None, **headers: str):
        sent = {**self.page, **{name.replace("_", "-"): text for name, text in headers.items()}}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
        if method != "GET" and self.csrf:
            sent.setdefault("x-csrf-token", self.csrf)
        answer = await self.scene.call(
            method, path, send=send, headers={k: v for k, v in sent.items() if v}
        )
        given = answer.headers.get("set-cookie")
        if given is not None:
            self.set.append(given)
            for name, morsel in SimpleCookie(given).items():
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value
        return answer

    async def login(self, **with_what):
        answer = await self("POST", "/v1/session", with_what)
        if answer.status == 201:
            self.csrf = answer.json["session"]["csrf"]
        return answer

    async def me(self):
        return await self("GET", "/v1/me")


async def put_code(scene, *scopes: str, lifetime_ms: int = 300_000, **more) -> str:
    prefix, text = code_of(runtime.random_bits(48), runtime.random_bits(256))
    new = NewToken(
        prefix=prefix,
        digest=digest_of(text),
        name="ada",
        scopes=scopes,
        lifetime_ms=lifetime_ms,
        **more,
    )
    await (await scene.engine()).access.put_token(new, by="test")
    return text


# ── login ────────────────────────────────────────────────────────────────────────────────────


async def test_a_token_is_exchanged_for_a_cookie_that_no_script_can_read(service):
    token = await issue(service, "jobs:read", tenant="acme")
    browser = Browser(service)
    answer = await browser.login(token=token)
    assert answer.status == 201
    assert token not in answer.body.decode() + "".join(browser.set)
    (cookie,) = browser.set
    assert cookie.startswith("lamplighter-8080=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    me = (await browser.me()).json
    assert (me["name"], me["scopes"], me["tenant"]) == (
        f"shop/{prefix_of(token)}",
        ["jobs:read"],
        "acme",
    )
    assert (await browser("GET", "/v1/jobs")).status == 200
    assert (await browser("GET", "/v1/schedules")).code == "forbidden"


async def test_over_tls_the_cookie_is_bound_to_its_host(service):
    browser = Browser(service, {"origin": "https://jobs.example"}, host="jobs.example")
    await browser.login(token=await issue(service, "admin"))
    (cookie,) = browser.set
    assert cookie.startswith("__Host-lamplighter=")
    assert "; Path=/; Secure; HttpOnly; SameSite=Strict" in cookie
    assert (await browser.me()).status == 200
    # Anybody who can set a cookie for the domain can set one without the prefix.
    browser.cookies = {"lamplighter": browser.cookies["__Host-lamplighter"]}
    assert (await browser.me()).code == "missing-token"


async def test_a_code_logs_in_once(service):
    code = await put_code(service, "operator")
    first, second = Browser(service), Browser(service)
    assert (await first.login(code=code)).status == 201
    refused = await second.login(code=code)
    assert refused.code == "invalid-token"
    assert "used before" in refused.json["detail"]
    assert (await first.me()).json["name"].startswith("ada/")
    assert not second.cookies


async def test_of_many_who_use_a_code_at_once_one_is_let_in(service, make):
    other = make(tokens=True, http_secret=SECRET)
    code = await put_code(service, "operator")
    tries = [Browser(scene).login(code=code) for scene in (service, other) * 5]
    statuses = [answer.status for answer in await asyncio.gather(*tries)]
    assert sorted(statuses) == [201] + [401] * 9


async def test_a_code_is_no_token_and_a_token_is_no_code(service):
    code, token = await put_code(service, "admin"), await issue(service, "admin")
    headers = {"Authorization": f"Bearer {code}"}
    assert (await service.call("GET", "/v1/me", headers=headers)).code == "invalid-token"
    assert (await Browser(service).login(token=code)).code == "invalid-token"
    assert (await Browser(service).login(code=token)).code == "invalid-token"
    assert (await Browser(service).login(token=token, code=code)).code == "invalid-option"
    assert (await Browser(service).login()).code == "invalid-option"


async def test_a_code_whose_time_is_over_lets_nobody_in(service, clock):
    code = await put_code(service, "admin", lifetime_ms=1)
    clock.later += 1
    assert (await Browser(service).login(code=code)).code == "invalid-token"


async def test_a_code_that_a_process_has_made_is_good_once_and_for_a_while(service, clock):
    codes = service.service.codes
    code, late = (codes.issue(Principal(name="dev")) for _ in range(2))
    browser = Browser(service)
    assert (await browser.login(code=code)).status == 201
    assert (await browser.me()).json["name"] == "dev"
    assert (await Browser(service).login(code=code)).code == "invalid-token"
    clock.later += 15 * 60
    assert (await Browser(service).login(code=late)).code == "invalid-token"


async def test_a_key_logs_in_too(service):
    browser = Browser(service)
    assert (await browser.login(token=KEY)).status == 201
    assert "admin" in (await browser.me()).json["scopes"]


async def test_a_wrong_token_logs_nobody_in(service):
    for wrong in ("x", "☃" * 40, f"ll_{7:012x}_{8:064x}", "a.b.c"):
        answer = await Browser(service).login(token=wrong)
        assert (answer.status, "set-cookie" in answer.headers) == (401, False)


async def test_where_nobody_is_asked_there_is_nothing_to_log_in_to(scene):
    assert (await Browser(scene).login(token="x")).code == "wrong-state"


async def test_a_login_is_noted_in_the_audit_log_without_its_secret(service):
    code = await put_code(service, "admin")
    browser = Browser(service)
    await browser.login(code=code)
    await browser("DELETE", "/v1/session")
    records = (await (await service.engine()).access.audit(limit=10)).records
    assert [each.entry.action for each in records] == ["session.end", "session.begin"]
    assert {each.entry.by for each in records} == {f"ada/{code[4:16]}"}
    assert code[-64:] not in repr(records)


# ── whose session it is ──────────────────────────────────────────────────────────────────────


async def test_a_login_does_not_replace_that_of_somebody_else_unasked(service):
    mine, other = await issue(service, "jobs:read"), await put_code(service, "admin")
    browser = Browser(service)
    await browser.login(token=mine)
    before = dict(browser.cookies)
    refused = await browser("POST", "/v1/session", {"code": other})
    assert refused.code == "signed-in"
    assert browser.cookies == before
    assert (await browser.me()).json["name"] == f"shop/{prefix_of(mine)}"
    # The code is not used up by that.
    assert (await browser.login(code=other, replace=True)).status == 201
    assert (await browser.me()).json["name"].startswith("ada/")
    browser.cookies = before
    assert (await browser.me()).code == "session-over"


async def test_every_login_has_an_id_of_its_own(service):
    token = await issue(service, "jobs:read")
    browser = Browser(service)
    await browser.login(token=token)
    before, csrf = dict(browser.cookies), browser.csrf
    assert (await browser.login(token=token)).status == 201
    assert (browser.cookies, browser.csrf) != (before, csrf)
    browser.cookies = before
    assert (await browser.me()).code == "session-over"


async def test_services_on_two_ports_of_a_host_have_cookies_of_their_own(service):
    browser = Browser(service)
    await browser.login(token=await issue(service, "jobs:read"))
    browser.page = {"origin": "http://127.0.0.1:9090", "host": "127.0.0.1:9090"}
    assert (await browser.login(token=await issue(service, "admin"))).status == 201
    assert set(browser.cookies) == {"lamplighter-8080", "lamplighter-9090"}


# ── its end ──────────────────────────────────────────────────────────────────────────────────


async def test_logging_out_ends_the_session_for_all_processes(service, make):
    other = make(tokens=True, http_secret=SECRET)
    browser = Browser(service)
    await browser.login(token=await issue(service, "jobs:read"))
    kept = dict(browser.cookies)
    assert (await browser("DELETE", "/v1/session")).status == 200
    assert not browser.cookies
    for scene in (service, other):
        thief = Browser(scene)
        thief.cookies = kept
        assert (await thief.me()).code == "session-over"


async def test_a_logout_is_noticed_within_a_minute_where_the_session_was_in_use(
    service, make, clock
):
    other = make(tokens=True, http_secret=SECRET)
    browser = Browser(service)
    await browser.login(token=await issue(service, "jobs:read"))
    thief = Browser(other)
    thief.cookies = dict(browser.cookies)
    assert (await thief.me()).status == 200
    await browser("DELETE", "/v1/session")
    clock.later += 59
    assert (await thief.me()).code == "session-over"


async def test_a_session_ends_with_its_token(service, clock):
    token = await issue(service, "jobs:read")
    code = await put_code(service, "jobs:read")
    browsers = [Browser(service), Browser(service)]
    await browsers[0].login(token=token)
    await browsers[1].login(code=code)
    await revoke(service, token)
    engine = await service.engine()
    await engine.access.revoke_token(code[4:16], by="test", reason="lost")
    clock.later += 59
    for browser in browsers:
        assert (await browser.me()).code == "invalid-token"


async def test_a_session_that_began_with_a_code_outlives_it(service, clock):
    browser = Browser(service)
    await browser.login(code=await put_code(service, "jobs:read", lifetime_ms=60_000))
    clock.later += 600
    assert (await browser.me()).status == 200


async def test_a_session_in_which_nothing_is_done_ends(make, clock):
    service = make(tokens=True, http_session_idle=600.0)
    browser = Browser(service)
    await browser.login(token=await issue(service, "jobs:read"))
    for _ in range(5):
        # What a page asks by itself keeps nothing alive.
        clock.later += 100
        assert (await browser.me()).status == 200
    clock.later += 100
    assert (await browser.me()).code == "session-over"
    assert len(browser.set) == 1


async def test_whoever_does_something_keeps_the_session_until_its_longest_time(make, clock):
    service = make(tokens=True, http_session_idle=600.0, http_session_lifetime=3_600.0)
    browser = Browser(service)
    await browser.login(token=await issue(service, "jobs:read"))
    for _ in range(7):
        clock.later += 500
        assert (await browser("GET", "/v1/me", x_user_active="1")).status == 200
    clock.later += 500
    assert (await browser.me()).code == "session-over"
    assert len(browser.set) == 8


async def test_without_a_shared_secret_no_other_service_takes_the_session(service, make):
    browser = Browser(service)
    await browser.login(token=await issue(service, "jobs:read"))
    browser.scene = make(tokens=True)
    assert (await browser.me()).code == "missing-token"


@pytest.mark.parametrize("change", ["flip", "cut", "empty", "garbage"])
async def test_a_cookie_that_was_changed_is_no_session(service, change):
    browser = Browser(service)
    await browser.login(token=await issue(service, "jobs:read"))
    ((name, value),) = browser.cookies.items()
    forged = {
        "flip": value[:60] + ("A" if value[60] != "A" else "B") + value[61:],
        "cut": value[:-8],
        "empty": "",
        "garbage": "!" * 50,
    }
    browser.cookies = {name: forged[change]}
    assert (await browser.me()).code == "missing-token"


# ── changes ──────────────────────────────────────────────────────────────────────────────────

JOB = {"type": "charge", "arguments": {"order_id": "o-1"}}


async def logged_in(service) -> Browser:
    browser = Browser(service)
    await browser.login(token=await issue(service, "operator"))
    return browser


async def test_a_page_of_the_session_may_change_things(service):
    browser = await logged_in(service)
    assert (await browser("POST", "/v1/jobs", JOB)).status == 201


@pytest.mark.parametrize(
    "page",
    [
        {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
        {"sec-fetch-site": "same-site", "origin": f"http://{HOST}"},
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {},
    ],
)
async def test_the_page_of_another_site_may_not(service, page):
    browser = await logged_in(service)
    browser.page = {**page, "host": HOST}
    assert (await browser("POST", "/v1/jobs", JOB)).code == "forbidden"
    assert (await browser("DELETE", "/v1/session")).code == "forbidden"
    if page:
        assert (await browser.login(token=KEY, replace=True)).code == "forbidden"


@pytest.mark.parametrize("csrf", ["", "0" * 32, "☃"])
async def test_a_change_without_the_proof_of_its_page_is_refused(service, csrf):
    browser = await logged_in(service)
    browser.csrf = ""
    answer = await browser("POST", "/v1/jobs", JOB, x_csrf_token=csrf)
    assert answer.code == "forbidden"
    assert "X-CSRF-Token" in answer.json["detail"]


async def test_the_proof_of_one_session_is_none_of_another(service):
    first, second = await logged_in(service), await logged_in(service)
    second.csrf = first.csrf
    assert (await second("POST", "/v1/jobs", JOB)).code == "forbidden"


async def test_a_token_in_the_header_needs_no_proof_and_goes_before_the_cookie(service):
    browser = await logged_in(service)
    token = await issue(service, "jobs:read", name="other")
    answer = await browser("GET", "/v1/me", authorization=f"Bearer {token}")
    assert answer.json["name"] == f"other/{prefix_of(token)}"
    assert "session" not in answer.json


async def test_whoever_has_no_session_has_none_to_end(service):
    token = await issue(service, "jobs:read")
    headers = {"Authorization": f"Bearer {token}"}
    assert (await service.call("DELETE", "/v1/session", headers=headers)).code == "wrong-state"


# ── headers ──────────────────────────────────────────────────────────────────────────────────


async def test_two_authorization_headers_are_refused(service):
    token = await issue(service, "admin")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/v1/me",
        "raw_path": b"/v1/me",
        "query_string": b"",
        "root_path": "",
        "headers": [
            (b"host", HOST.encode()),
            (b"authorization", f"Bearer {token}".encode()),
            (b"authorization", f"Bearer {KEY}".encode()),
        ],
        "client": ("127.0.0.1", 4711),
    }
    answer = await service.call._exchange(scope, [b""])
    assert (answer.status, answer.code) == (401, "invalid-token")
    assert "2 headers" in answer.json["detail"]


async def test_a_cookie_of_another_version_of_the_service_is_no_session(make):
    made = make(keys=[KEY])
    text = b'["of", "old"]'
    signed = made.service.sessions._signature(text) + text
    value = base64.urlsafe_b64encode(signed).decode().rstrip("=")

    answer = await made.call("GET", "/v1/me", headers={"cookie": f"lamplighter-8080={value}"})

    assert (answer.status, answer.code) == (401, "missing-token")
