"""Commands that only look, or are refused, make no store on a server."""

import pytest
from click.testing import CliRunner

from lamplighter.cli.main import main
from tests.servers.valkey import Server


@pytest.mark.parametrize(
    "command",
    [
        ("schedules", "list"),
        ("schedules", "show", "nightly"),
        ("schedules", "runs", "nightly"),
        ("schedules", "hold", "nightly", "--reason", "a test"),
        ("schedules", "put", "nightly", "report", "--cron", "0 2 * * *"),
        ("submit", "report"),
        ("jobs", "list"),
    ],
    ids=" ".join,
)
def test_no_store_is_made_by(server: Server, command: tuple[str, ...]):
    result = CliRunner().invoke(main, [*command, "--url", server.url()])

    assert result.exit_code != 0
    assert "there is no store" in result.stderr
    with server.client() as client:
        assert client.keys("*") == []
