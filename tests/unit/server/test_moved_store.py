"""A service whose store is taken away says so, and takes no jobs that would be lost."""

import pytest

from lamplighter import client
from lamplighter.backoff import Backoff
from lamplighter.engines.sqlite import identity


@pytest.fixture
async def moved(scene, tmp_path, monkeypatch):
    """A service that has taken a job, and whose store was moved away then."""
    monkeypatch.setattr(identity, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(client, "_BACKOFF", Backoff(0.001, 0.01))
    await scene.submit()
    (tmp_path / "jobs.db").rename(tmp_path / "elsewhere.db")
    return scene


async def test_it_is_not_ready(moved, caplog):
    response = await moved.call("GET", "/readyz")
    assert (response.status, response.code) == (503, "not-ready")
    assert "moved or deleted while it was open" in caplog.text
    assert (await moved.call("GET", "/healthz")).status == 200


async def test_it_takes_no_jobs(moved, caplog):
    body = {"type": "charge", "arguments": {"order_id": "o-1"}}
    for path, send in (("/v1/jobs", body), ("/v1/jobs:batch", [body])):
        response = await moved.call("POST", path, send=send)
        assert (response.status, response.code) == (503, "store-unreachable")
        assert response.headers["retry-after"] == "1"
        assert "jobs.db" not in response.body.decode()
    assert "jobs.db` is not there any more" in caplog.text
    assert "put it back" in caplog.text


async def test_it_goes_on_when_the_store_is_back(moved, tmp_path):
    (tmp_path / "elsewhere.db").rename(tmp_path / "jobs.db")
    assert (await moved.call("GET", "/readyz")).status == 200
    await moved.submit()
    assert len((await moved.call("GET", "/v1/jobs")).json["jobs"]) == 2
