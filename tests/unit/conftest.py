"""What several parts of the unit tests need."""

import logging

import pytest

from lamplighter.observability import events
from lamplighter.observability.failures import process_log


@pytest.fixture
def told():
    """Give a list that grows with every event: its name, and what it tells."""
    seen = []
    stop = events.listen(lambda name, fields: seen.append((name, fields)))
    yield seen
    stop()


@pytest.fixture(autouse=True)
def _last_resort():
    """Undo what a command that is run inside of the test's own process sets up for logging."""
    formatter = logging.lastResort.formatter
    yield
    logging.lastResort.formatter = formatter


@pytest.fixture(autouse=True)
def _own_failures():
    """Let no test be silent about failures because others have had as many."""
    process_log.cache_clear()
