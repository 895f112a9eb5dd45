"""Ports for servers of tests."""

import random
import socket


class ServerFailed(Exception):
    """A server could not be made or started, or did not answer; says why, as far as known."""


# Below the range from which the system takes ports for outgoing connections, so that nobody takes
# a server's port while it is down.
_PORTS = range(20000, 32000)
_chance = random.SystemRandom()
"""Not the one that Hypothesis sets to the same seed in every process: two would draw one port."""


def free_port() -> int:
    """Return a port on which nobody listens on the loopback interface."""
    for port in _chance.sample(_PORTS, 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ServerFailed("none of 100 ports between 20000 and 32000 is free on 127.0.0.1")
