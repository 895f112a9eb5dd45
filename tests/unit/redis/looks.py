"""How tests look at a server."""

import redis


def clients(admin: redis.Redis) -> set[int]:
    """The numbers of our connections."""
    return {int(one["id"]) for one in admin.client_list() if one["name"] == "lamplighter"}
