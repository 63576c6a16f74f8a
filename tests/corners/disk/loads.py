"""Loads of caches with items on a disk."""

import time
from itertools import count
from typing import Final

from corners.client import Client
from corners.loads import MEBIBYTE, WAIT_SECONDS, Cache, Load, connection, every_size, store, wait_until_doubled

SMALL: Final = 600
"""Bytes of a value that memcached moves to the disk, and little more than the smallest one of them."""
FRAGMENT: Final = 20_000
"""Bytes of the values of which most are deleted, so that memcached compacts the pages of its file."""
FRAGMENTS: Final = 60
FROZEN_SECONDS: Final = 1.0
"""Within this time, memcached fills all buffers that it can fill while the disk does not write."""


def small_items() -> Load:
    """Items just above the size from which memcached moves them, more than there is memory for their headers."""

    def run(cache: Cache) -> None:
        with connection(cache) as client:
            store(client, cache.memory * MEBIBYTE // 60, SMALL)
            wait_until_doubled(client)
            _require(client, "extstore_objects_used")

    return Load(f"items of {SMALL} B on the disk", run)


def every_buffer() -> Load:
    """All buffers of extstore: the disk waits and then writes its whole file, and memcached compacts pages."""
    return Load("all buffers", _use_buffers)


def every_buffer_first() -> Load:
    """As `every_buffer`, then items of all sizes while the hash table doubles. memcached keeps the buffers."""

    def run(cache: Cache) -> None:
        _use_buffers(cache)
        every_size().run(cache)

    return Load("all buffers, then all sizes, then doubling", run)


def _use_buffers(cache: Cache) -> None:
    assert cache.volume is not None
    size = cache.item_size - 1024
    with connection(cache) as client:
        with cache.volume.frozen():
            store(client, 2 * cache.memory * MEBIBYTE // size, size)
            time.sleep(FROZEN_SECONDS)
        file = int(client.stats()["extstore_limit_maxbytes"])
        store(client, file // size, size, "b")
        _compact(client)


def _compact(client: Client) -> None:
    """Store items and delete most of them, until memcached has compacted pages. Raises TimeoutError."""
    deadline = time.monotonic() + WAIT_SECONDS
    for number in count():
        if int(client.stats()["extstore_compact_rescues"]):
            return
        if time.monotonic() > deadline:
            raise TimeoutError("memcached has compacted no page")
        keys = range(number * FRAGMENTS, (number + 1) * FRAGMENTS)
        client.send_quiet(b"ms d%d %d q\r\n%b\r\n" % (key, FRAGMENT, bytes(FRAGMENT)) for key in keys)
        if number:
            client.send_quiet(b"md d%d q\r\n" % (key - FRAGMENTS) for key in keys if key % 4)


def _require(client: Client, name: str) -> None:
    """Raise ValueError if a statistic is 0."""
    if not int(client.stats()[name]):
        raise ValueError(f"{name} is 0")
