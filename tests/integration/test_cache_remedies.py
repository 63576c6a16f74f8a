"""Problems of a cache under load, with real memcached: each ends with the remedy of the pages for users.

The operator builds the command from the spec before and after it.
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from corners import server
from corners.client import Client
from corners.containers import container
from integration.control_plane import until
from support.ports import free_port

Spec = dict[str, Any]
Load = Callable[[Client, int], int]
"""Puts a load on memcached, given a connection and its port; returns the size of the problem."""
KB: Final = b"x" * 1000
LARGE: Final = 10 * KB


def store(client: Client, number: int, value: bytes = KB, expires: int = 0, prefix: str = "k") -> list[bytes]:
    """Store items; returns the errors."""
    replies = [
        client.request(b"set %s-%d 0 %d %d\r\n%b\r\n" % (prefix.encode(), n, expires, len(value), value))
        for n in range(number)
    ]
    return [reply for reply in replies if reply != b"STORED\r\n"]


def evictions(client: Client, _: int) -> int:
    """Store 20 MB; returns the items that were evicted."""
    store(client, 2000, LARGE)
    return int(client.stats()["evictions"])


def errors(client: Client, _: int) -> int:
    """Store 20 MB; returns the items that were rejected for a lack of memory."""
    found = store(client, 2000, LARGE)
    assert set(found) <= {b"SERVER_ERROR out of memory storing object\r\n"}
    return len(found)


def lost_small_items(client: Client, _: int) -> int:
    """Store small items, then large ones until small ones are lost, as memcached moves their memory, or large ones are
    rejected; returns the small ones that are lost.
    """
    store(client, 6500)
    until(lambda: store(client, 4, 900 * KB, prefix="large") or int(client.stats()["slabs_moved"]) > 0)
    return 6500 - sum(client.request(b"mg k-%d\r\n" % n) == b"HD\r\n" for n in range(6500))


def refused_connections(_: Client, port: int) -> int:
    """Open 60 more connections; returns those that are not served."""
    refused = 0
    with ExitStack() as stack:
        for _number in range(60):
            try:
                client = Client(port, 1)
                stack.enter_context(client.socket)
                refused += not client.request(b"version\r\n").startswith(b"VERSION")
            except OSError:
                refused += 1
    return refused


def expiring(seconds: int) -> Load:
    """Store 4 MB, with an expiration time, and 4 MB when memcached has removed them; returns the evicted items.

    memcached looks for expired items itself, but only every few minutes.
    """

    def load(client: Client, _: int) -> int:
        store(client, 400, LARGE, seconds)
        if seconds:
            until(lambda: client.request(b"lru_crawler crawl all\r\n") and client.stats()["curr_items"] == "0")
        store(client, 400, LARGE, prefix="later")
        return int(client.stats()["evictions"])

    return load


class Case(NamedTuple):
    """The cache and the load before and after the remedy."""

    cache: Spec
    load: Load
    fixed: Spec
    fixed_load: Load


CASES: Final = {
    "raise spec.cache.memory": Case({"memory": "8Mi"}, evictions, {"memory": "64Mi"}, evictions),
    "set expiration times": Case({"memory": "8Mi"}, expiring(0), {"memory": "8Mi"}, expiring(1)),
    "lower cache.maxItemSize": Case(
        {"memory": "8Mi"}, lost_small_items, {"memory": "8Mi", "maxItemSize": "512Ki"}, lost_small_items
    ),
    "set cache.evictions: false": Case({"memory": "8Mi"}, evictions, {"memory": "8Mi", "evictions": False}, evictions),
    "raise cache.memory with cache.evictions: false": Case(
        {"memory": "8Mi", "evictions": False}, errors, {"memory": "64Mi", "evictions": False}, errors
    ),
    "raise spec.cache.maxConnections": Case(
        {"maxConnections": 40, "threads": 1},
        refused_connections,
        {"maxConnections": 128, "threads": 1},
        refused_connections,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_problem_ends_with_the_remedy(root: Path, case: Case) -> None:
    for cache, load, ends in ((case.cache, case.load, False), (case.fixed, case.fixed_load, True)):
        made = container({"containerPort": free_port(), "cache": cache})
        with server.started(root, made.command, made.port) as live:
            live.wait_until_started()
            client = live.connect()
            with client.socket:
                assert (load(client, made.port) == 0) == ends, cache
