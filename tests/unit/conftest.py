"""What several parts of the unit tests need."""

import pytest

from lamplighter.observability import events


@pytest.fixture
def told():
    """Give a list that grows with every event: its name, and what it tells."""
    seen = []
    stop = events.listen(lambda name, fields: seen.append((name, fields)))
    yield seen
    stop()
