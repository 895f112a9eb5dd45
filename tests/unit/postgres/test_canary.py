"""What belongs to one tenant is in nothing that another can read, on PostgreSQL."""

from tests.unit.server.conftest import make  # noqa: F401
from tests.unit.server.test_canary import *  # noqa: F403
