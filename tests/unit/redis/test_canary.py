"""What belongs to one tenant is in nothing that another can read: Redis, one shard and four."""

from tests.unit.redis.test_group_commit import url  # noqa: F401
from tests.unit.server.conftest import make  # noqa: F401
from tests.unit.server.test_canary import *  # noqa: F403
