"""The address of the console of a program under development."""

import socket

import pytest

from lamplighter.cli import site
from lamplighter.model.errors import InvalidOption


@pytest.fixture
def taken(monkeypatch):
    """A port that somebody has, and that would be the first to be tried."""
    with socket.create_server((site.HOST, 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setattr(site, "FIRST_PORT", port)
        yield port


def test_a_port_that_is_taken_is_passed_by(taken):
    with site.bound(None) as found:
        host, port = found.getsockname()
        assert host == "127.0.0.1"
        assert port != taken


def test_when_all_are_taken_any_is_good(taken, monkeypatch):
    monkeypatch.setattr(site, "PORTS", 1)
    with site.bound(None) as found:
        assert found.getsockname()[1] != taken


def test_a_port_that_was_asked_for_has_to_be_free(taken):
    with pytest.raises(InvalidOption, match=str(taken)):
        site.bound(taken)
