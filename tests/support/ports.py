"""Ports for the servers that a test starts."""

import random
import socket
from contextlib import suppress
from itertools import cycle, islice

PORTS = cycle(random.SystemRandom().sample(range(20000, 30000), 10000))
"""Below the range of outgoing connections. A port is not returned again while a test may still reuse it."""


def free_port() -> int:
    """A free loopback port that no other test gets, so that a server can be restarted on it."""
    for port in islice(PORTS, 1000):
        with socket.socket() as listener, suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port on loopback between 20000 and 30000")
