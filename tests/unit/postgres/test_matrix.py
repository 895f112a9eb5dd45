"""Every route there is, asked by everybody there is, on PostgreSQL."""

from tests.unit.server.conftest import make  # noqa: F401
from tests.unit.server.test_matrix import *  # noqa: F403
