"""Who is let in."""

import pytest

from lamplighter.model.errors import InvalidOption
from lamplighter.server.auth import check_address, read_keys

KEY = "k" * 32
OTHER = "o" * 40


async def test_either_of_two_keys_opens(make):
    made = make(keys=[KEY, OTHER])
    for key in (KEY, OTHER):
        response = await made.call("GET", "/v1/types", headers={"Authorization": f"Bearer {key}"})
        assert response.status == 200


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, "missing-token"),
        ("", "missing-token"),
        ("Bearer", "missing-token"),
        ("Bearer  ", "missing-token"),
        (f"Basic {KEY}", "missing-token"),
        (KEY, "missing-token"),
        ("Bearer wrong", "invalid-token"),
        (f"Bearer {KEY}x", "invalid-token"),
        (f"Bearer {KEY[:-1]}", "invalid-token"),
        ("Bearer ☃", "invalid-token"),
    ],
)
async def test_other_tokens_do_not_and_are_not_quoted(make, header, code):
    made = make(keys=[KEY])
    headers = {} if header is None else {"Authorization": header}
    response = await made.call("GET", "/v1/types", headers=headers)
    assert (response.status, response.code) == (401, code)
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert KEY[:-1] not in response.body.decode()


async def test_who_has_no_key_is_refused_before_the_body_is_read(make):
    made = make(keys=[KEY])
    response = await made.call("POST", "/v1/jobs", raw=b"{}")
    assert response.status == 401
    assert made.call.unread


async def test_health_and_description_need_no_key(make):
    made = make(keys=[KEY])
    for path in ("/healthz", "/readyz", "/v1/openapi.json"):
        assert (await made.call("GET", path)).status == 200


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "[::1]:8080", "127.1.2.3"])
async def test_without_keys_this_machine_is_served(scene, host):
    assert (await scene.call("GET", "/v1/types", headers={"host": host})).status == 200


@pytest.mark.parametrize("host", ["", "evil.example", "127.0.0.1.evil.example", "[", "10.0.0.1"])
async def test_without_keys_no_other_name_is_served(scene, host):
    response = await scene.call("GET", "/v1/types", headers={"host": host})
    assert (response.status, response.code) == (421, "wrong-host")


async def test_without_keys_pages_of_other_sites_are_refused(scene):
    for origin in ("https://evil.example", "null"):
        response = await scene.call("POST", "/v1/jobs", send={}, headers={"origin": origin})
        assert (response.status, response.code) == (403, "forbidden")
    headers = {"origin": "http://localhost:3000"}
    assert (await scene.call("GET", "/v1/types", headers=headers)).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_without_keys_a_browser_reads_and_changes_nothing_for_other_pages(scene, site):
    job_id = await scene.submit(delay=60)
    headers = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
    response = await scene.call("GET", "/v1/jobs", headers=headers)
    assert (response.status, response.code) == (403, "forbidden")
    headers["origin"] = "http://localhost:3000"
    response = await scene.call("POST", f"/v1/jobs/{job_id}/retry", headers=headers)
    assert (response.status, response.code) == (403, "forbidden")
    assert (await scene.call("GET", f"/v1/jobs/{job_id}")).json["status"] == "scheduled"


async def test_without_keys_the_console_works_and_links_of_other_sites_lead_to_it(scene):
    for site in ("none", "same-origin"):
        headers = {"sec-fetch-site": site}
        assert (await scene.call("GET", "/v1/types", headers=headers)).status == 200
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert (await scene.call("GET", "/", headers=headers)).status == 200


async def test_with_keys_the_name_of_the_host_does_not_matter(make):
    made = make(keys=[KEY])
    headers = {"host": "jobs.example", "Authorization": f"Bearer {KEY}"}
    assert (await made.call("GET", "/v1/types", headers=headers)).status == 200


def test_keys_stand_one_per_line(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"# ours\n{KEY}\n\n  {OTHER}  \n")
    assert read_keys(path) == [KEY, OTHER]


@pytest.mark.parametrize("text", ["", "# nothing\n\n", "short\n", f"{KEY}\nchangeme\n", "ö" * 40])
def test_keys_that_can_be_guessed_are_refused_without_quoting_them(tmp_path, text):
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(InvalidOption) as caught:
        read_keys(path)
    assert "openssl" in caught.value.hint
    assert "changeme" not in str(caught.value)


def test_a_key_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidOption, match="missing"):
        read_keys(tmp_path / "missing")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "jobs.example", ""])
def test_without_keys_no_address_beyond_this_machine_is_served(host):
    with pytest.raises(InvalidOption, match="authentication"):
        check_address(host, asks=False)
    check_address(host, asks=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_without_keys_the_loopback_is_served(host):
    check_address(host, asks=False)
