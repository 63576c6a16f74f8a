"""What the alerts about extstore show of a real memcached, and that their remedies end it."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from corners.client import Client
from support.kube import eventually
from support.memcacheds import memcached
from support.ports import free_port
from support.waiting import STEP

OPTIONS: Final = "ext_page_size=8,ext_wbuf_size=2,ext_item_age=0,ext_path="
SMALL: Final = 600
"""Bytes of a value that memcached writes to the disk. Its header needs a sixth of the memory."""
LARGE: Final = 500_000
NUMBER: Final = 100
FEW: Final = 5
HELD: Final = 10
"""The most items that memcached keeps in memory: a buffer that is not full is not written."""
RAISED: Final = b"cache_memlimit 128\r\n"
"""What the agent sends after `spec.cache.memory` was raised."""


@contextmanager
def cache(root: Path, items: str, memory: int) -> Generator[Client]:
    """A client of a memcached with so many MiB of memory, and a disk on which pages are left."""
    words = ["-m", str(memory), "-o", f"{OPTIONS}{items}/file:128m"]
    with memcached(root, free_port(), *words) as live:
        client = live.connect()
        with client.socket:
            yield client


def store(client: Client, keys: Iterable[int], size: int) -> None:
    """Store items."""
    client.send_quiet(b"ms %08d %d q\r\n%b\r\n" % (key, size, bytes(size)) for key in keys)


def get(client: Client, keys: range) -> tuple[int, bool]:
    """How many items one command returns, and whether it fails then."""
    client.send(b"get %b\r\n" % b" ".join(b"%08d" % key for key in keys))
    reply = b""
    while not (reply.endswith(b"END\r\n") or b"SERVER_ERROR out of memory" in reply[-200:]):
        received = client.socket.recv(2**20)
        assert received, "memcached closed the connection"
        reply += received
    return reply.count(b"VALUE "), not reply.endswith(b"END\r\n")


def store_large(client: Client) -> None:
    """Store NUMBER large items, which are then on the disk but for the last ones.

    A few at a time: memcached evicts those for which it has no memory before it writes them, above all if it has to
    wait for CPU.
    """
    for start in range(0, NUMBER, FEW):
        store(client, range(start, start + FEW), LARGE)
        wait_until_written(client, start + FEW - HELD)


def wait_until_written(client: Client, number: int) -> None:
    """Wait until so many items are on the disk."""
    eventually(lambda: int(client.stats()["extstore_objects_used"]) >= number, STEP, f"{number} items are on the disk")


def is_full(stats: Mapping[str, str]) -> bool:
    """Whether headers fill the memory. memcached reports their share from 1.6.34 on."""
    reports_share = stats["version"] != "1.6.18"
    return int(stats["evictions"]) > 0 and (not reports_share or stats["extstore_memory_pressure"] == "100.00")


def test_headers_that_fill_the_memory(root: Path, items: str) -> None:
    with cache(root, items, memory=8) as client:
        store(client, range(120_000), SMALL)
        eventually(lambda: is_full(client.stats()), STEP, "headers fill the memory")
        stats = client.stats()
        assert int(stats["extstore_pages_free"]) > 0, "the disk has space"
        assert client.request(RAISED) == b"OK\r\n"
        before = client.stats()  # memcached evicts beside the commands, too
        store(client, range(120_000, 130_000), SMALL)
        after = client.stats()
        assert after["evictions"] == before["evictions"]
        assert int(after["curr_items"]) == int(before["curr_items"]) + 10_000


def test_gets_without_memory_to_read_the_disk(root: Path, items: str) -> None:
    with cache(root, items, memory=16) as client:
        store_large(client)
        found, failed = get(client, range(20, 80))
        assert (found < 60, failed) == (True, True)
        assert client.stats()["get_oom_extstore"] != "0"
    with cache(root, items, memory=16) as client:
        store_large(client)
        assert get(client, range(20, 25)) == (5, False), "fewer keys with one command"
        assert client.request(RAISED) == b"OK\r\n"
        assert get(client, range(20, 80)) == (60, False)
        assert client.stats()["get_oom_extstore"] == "0"


def test_items_with_wrong_checksums(root: Path, items: str) -> None:
    file = root / items[1:] / "file"
    with cache(root, items, memory=64) as client:
        store_large(client)
        with file.open("r+b") as disk:
            disk.write(bytes(file.stat().st_size))
        assert get(client, range(20, 25)) == (0, False)
        stats = client.stats()
        assert [stats[name] for name in ("badcrc_from_extstore", "miss_from_extstore")] == ["5", "5"]
        assert stats["extstore_page_evictions"] == "0"
    file.unlink()
    with cache(root, items, memory=64) as client:
        store_large(client)
        assert get(client, range(20, 25)) == (5, False), "the pod was deleted, and the new one has another volume"
        assert client.stats()["miss_from_extstore"] == "0"
