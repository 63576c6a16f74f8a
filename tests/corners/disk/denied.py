"""Why admission rejects settings with which memcached starts although it has items on a disk."""

import time
from itertools import count
from pathlib import Path
from typing import Final

from corners.client import Client
from corners.containers import Spec, container
from corners.disk import volume
from corners.loads import SMALLEST_ITEMS_PER_PAGE
from corners.server import started

DISK: Final[Spec] = {"identity": "Stable", "cache": {"memory": "64Mi", "extstore": {"size": "1Gi"}}}
"""A spec that admission accepts."""
HEADERS: Final = SMALLEST_ITEMS_PER_PAGE
"""Headers of items on the disk in a page of 1 MiB, which memcached allocates in any case."""
SIZE: Final = 10_000
BATCH: Final = 200
ITEMS: Final = 60_000
"""Items of so many bytes fill the memory several times, and not the disk."""
FILL_SECONDS: Final = 150.0
"""memcached 1.6.18 gets a second page for headers only after half a minute of writes."""
Stats = dict[str, int]
NAMES: Final = ("store_no_memory", "evictions", "extstore_pages_free", "extstore_objects_used")


def filled(spec: Spec, release: Path, objects: int = HEADERS - 1) -> Stats:
    """The statistics of memcached after ITEMS were stored, and more until `objects` are on the disk.

    `release`: the directory of the release. -1: a header is allocated, but its item is not written yet.
    """
    with volume.directory(release) as root:
        made = container(spec)
        with started(root, made.command, made.local_port, made.limit) as server:
            assert server.problem() == ""
            client = server.connect()
            with client.socket:
                return _fill(client, objects)


def _fill(client: Client, objects: int) -> Stats:
    deadline = time.monotonic() + FILL_SECONDS
    for number in count():
        keys = range(number * BATCH, (number + 1) * BATCH)
        client.send_quiet(b"ms %07d %d q\r\n%b\r\n" % (key, SIZE, bytes(SIZE)) for key in keys)
        stats = client.stats()
        found = {name: int(stats[name]) for name in NAMES}
        if keys.stop >= ITEMS and found["extstore_objects_used"] >= objects:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"{objects} items are not on the disk: {found}")
    raise AssertionError
